"""All measures by name."""

import pyarrow as pa
from duckdb import DuckDBPyConnection

from ethnos.analytics.measures import activity, demography, inequality, words
from ethnos.analytics.measures.measure import Measure, lacking
from ethnos.errors import QueryError

REGISTRY: dict[str, Measure] = {m.name: m for part in (demography, inequality, activity, words) for m in part.MEASURES}


def measure(con: DuckDBPyConnection, name: str, by: str | None = None) -> pa.Table:
    """A measure of the run behind a connection. Raises QueryError where its world lacks what it needs."""
    one = REGISTRY.get(name)
    if one is None:
        raise QueryError(f"there is no measure {name!r}; ethnos measures lists them")
    if by is not None and by not in one.by:
        raise QueryError(f"{name} goes over the whole run" + f", or by {' or '.join(one.by)}" * bool(one.by))
    if missing := lacking(con, one):
        raise QueryError(f"{name} means nothing here: this world has no events {', '.join(missing)}")
    return one.function(con, by)

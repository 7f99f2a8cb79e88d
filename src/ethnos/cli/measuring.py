"""`ethnos measures`, `ethnos measure` and `ethnos network`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from ethnos.analytics import network as networks
from ethnos.analytics.measures import REGISTRY
from ethnos.analytics.measures import measure as measured
from ethnos.cli.asking import Form, answer
from ethnos.cli.output import print_json, print_table
from ethnos.errors import EthnosError
from ethnos.record.reader import open_run


def measures(*, as_json: bool) -> None:
    """List what can be measured."""
    rows = [{k: v for k, v in asdict(m).items() if k != "function"} for m in REGISTRY.values()]
    if as_json:
        print_json({"measures": rows})
        return
    columns = ("name", "title", "formula", "unit", "source", "by")
    print_table(columns, [[", ".join(r[c]) if c == "by" else r[c] for c in columns] for r in rows])


def measure(run: str, name: str, by: str | None, form: Form) -> None:
    """Measure a run."""
    with open_run(run) as con:
        found = measured(con, name, by)
    answer(found.schema, iter(found.to_batches()), form)


def network(run: str, show: str, window: int | None, weights: Sequence[str], form: Form) -> None:
    """A table of the network of a run."""
    with open_run(run) as con:
        edges = networks.edges(con, _weights(weights), window)
    if show == "edges":
        found = edges
    else:
        groups = networks.communities(edges)
        found = {
            "communities": lambda: groups,
            "structure": lambda: networks.structure(edges, groups),
            "participation": lambda: networks.participation(edges, groups),
            "changes": lambda: networks.changes(groups),
        }[show]()
    answer(found.schema, iter(found.to_batches()), form)


def _weights(given: Sequence[str]) -> Mapping[str, float]:
    weights = {}
    for one in given:
        kind, _, value = one.partition("=")
        try:
            weights[kind] = float(value)
        except ValueError:
            raise EthnosError(f"--weight {one}: such as gift=2") from None
        if kind not in networks.WEIGHTS:
            raise EthnosError(f"--weight {one}: one of {', '.join(networks.WEIGHTS)}")
    return weights

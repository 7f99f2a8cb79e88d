"""Several runs side by side: the same curve of each, and their mean with its interval."""

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev

from ethnos.analytics.asking import Row

NORMAL = 1.96
"""Standard errors to either side of a mean within which it lies with 95 %, if it is about normal."""


def mean(curves: Mapping[str, Sequence[Row]], name: str) -> list[Row]:
    """Mean over runs of a column at the ticks that all of them have, with its 95 % interval: tick, mean, low, high.

    >>> mean({"a": [{"tick": 1, "n": 1}], "b": [{"tick": 1, "n": 3}]}, "n")[0]["mean"]
    2.0
    """
    values = [{r["tick"]: float(r[name]) for r in rows if r.get(name) is not None} for rows in curves.values()]
    shared = sorted(set.intersection(*map(set, values))) if values else []
    return [_mean(tick, [v[tick] for v in values]) for tick in shared]


def _mean(tick: int, values: Sequence[float]) -> Row:
    middle = fmean(values)
    half = NORMAL * stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
    return {"tick": tick, "mean": middle, "low": middle - half, "high": middle + half}

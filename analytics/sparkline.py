"""A curve in one line of text."""

from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """The curve of `values`, from 0 to its maximum, in at most `width` characters.

    >>> sparkline([0, 1, 2, 3, 4, 5, 6, 7])
    '▁▂▃▄▅▆▇█'
    >>> sparkline([5, 5, 0, 0], width=2)
    '█▁'
    """
    values = shorten(values, width)
    top = max(values, default=0) or 1
    return "".join(BARS[min(round(max(v, 0) / top * (len(BARS) - 1)), len(BARS) - 1)] for v in values)


def shorten(values: Sequence[float], length: int) -> list[float]:
    """At most `length` values: means of equal stretches, all there are if they are few enough."""
    count = min(len(values), length)
    cuts = [i * len(values) // count for i in range(count + 1)] if count else []
    return [sum(values[a:b]) / (b - a) for a, b in zip(cuts, cuts[1:], strict=False)]

"""A plot of lines and dots over two axes, as SVG that needs nothing else: for pages about worlds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ethnos.analytics.svg import Point, element, label, line, num

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 48, 56
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito: people see them apart whatever their colour vision."""

STYLE = """
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#24292f;font-size:13px}
.title{font-size:15px;font-weight:600}.paper{fill:#fff}.axis{stroke:#8c959f;fill:none}.rule{stroke:#eaeef2;fill:none}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.dashed{stroke-dasharray:5 4}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#0d1117}.rule{stroke:#21262d}}
"""


@dataclass(frozen=True)
class Series:
    """One line of a plot; `expected` ones are dashed."""

    name: str
    points: Sequence[Point]
    expected: bool = False


@dataclass(frozen=True)
class Plot:
    """What is drawn against what."""

    title: str
    across: str
    up: str
    series: Sequence[Series] = field(default_factory=tuple)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers that divide a range.

    >>> ticks(0, 10)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    step = (high - low) / most or 1.0
    size = 10.0 ** math.floor(math.log10(step))
    step = next(size * m for m in (1, 2, 5, 10) if size * m >= step)
    first = math.ceil(low / step)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def draw(plot: Plot) -> str:
    """The plot as SVG."""
    points = [p for s in plot.series for p in s.points]
    xs, ys = [x for x, _ in points] or [0.0], [y for _, y in points] or [0.0]
    x0, x1, y0, y1 = min(xs), max(xs), min(0.0, *ys, 0.0), max(ys)
    x1, y1 = x1 if x1 > x0 else x0 + 1, y1 if y1 > y0 else y0 + 1

    def at(x: float, y: float) -> Point:
        across = LEFT + (WIDTH - LEFT - RIGHT) * (x - x0) / (x1 - x0)
        return across, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - y0) / (y1 - y0)

    body = [element("rect", class_="paper", width=WIDTH, height=HEIGHT, rx=8), label(LEFT, 24, plot.title, "title")]
    for y in ticks(y0, y1, 5):
        px, py = at(x0, y)
        body += [element("path", class_="rule", d=f"M{num(px)} {num(py)}H{num(WIDTH - RIGHT)}")]
        body += [label(px - 8, py + 4, f"{y:g}", anchor="end")]
    for x in ticks(x0, x1):
        body.append(label(at(x, y0)[0], HEIGHT - BOTTOM + 18, f"{x:g}", anchor="middle"))
    body.append(element("path", class_="axis", d=f"M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"))
    body.append(label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, plot.across, anchor="middle"))
    body.append(label(LEFT, TOP - 8, plot.up))
    for number, one in enumerate(plot.series):
        body += _series(one, COLOURS[number % len(COLOURS)], number, [at(x, y) for x, y in one.points])
    box = f"0 0 {WIDTH} {HEIGHT}"
    drawn = "\n".join([element("style", STYLE), *body])
    return element(
        "svg", drawn, xmlns="http://www.w3.org/2000/svg", viewBox=box, width=WIDTH, height=HEIGHT, role="img"
    )


def _series(one: Series, colour: str, number: int, points: list[Point]) -> list[str]:
    style = "line dashed" if one.expected else "line"
    y = TOP + 12 + 18 * number
    return [
        element("path", class_=style, stroke=colour, d=line(points)),
        element("path", class_=style, stroke=colour, d=f"M{num(WIDTH - 210)} {num(y - 4)}h24"),
        label(WIDTH - 180, y, one.name, limit=28),
    ]


__all__ = ["Plot", "Series", "draw", "ticks"]

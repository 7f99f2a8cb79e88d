"""Small charts over the ticks of a run, as SVG."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from duckdb import DuckDBPyConnection

from ethnos.analytics.sparkline import shorten
from ethnos.analytics.svg import element, label, line, num, words

POINTS = 160
BINS = 48

STOCKS = """
SELECT coalesce(CAST(CAST(stocks AS JSON) AS MAP(VARCHAR, DOUBLE))[$name], 0) FROM ticks ORDER BY tick
"""
BINNED = """
SELECT CAST(floor(tick / $width) AS BIGINT) AS bin, count(*) FROM events
WHERE kind = $kind AND tick > 0 GROUP BY bin
"""


@dataclass(frozen=True)
class Frame:
    """Where a chart goes, and the ticks it spans."""

    x: float
    y: float
    width: float
    height: float
    ticks: int
    """The last tick of the run."""
    tick: int
    """The tick that the picture shows."""

    def at(self, tick: float) -> float:
        return self.x + self.width * tick / max(1, self.ticks)


@dataclass(frozen=True)
class Curve:
    """How something went, one value per tick from 0."""

    title: str
    class_: str
    values: Sequence[float]


@dataclass(frozen=True)
class Bars:
    """Two counts over stretches of ticks, one drawn upwards and one downwards."""

    title: str
    up: tuple[str, Sequence[int]]
    down: tuple[str, Sequence[int]]
    """(class, counts)."""


Chart = Curve | Bars


def curves(con: DuckDBPyConnection, quantities: Sequence[str]) -> list[Curve]:
    """Population, then what the world conserves."""
    population = [float(n) for (n,) in con.execute("SELECT population FROM ticks ORDER BY tick").fetchall()]
    stocks = [Curve(name.capitalize(), "stock", [n for (n,) in _stock(con, name)]) for name in quantities]
    return [Curve("Population", "population", population), *stocks]


def _stock(con: DuckDBPyConnection, name: str) -> list[tuple[float]]:
    return con.execute(STOCKS, {"name": name}).fetchall()


def bars(con: DuckDBPyConnection, ticks: int, title: str, up: str, down: str) -> Bars:
    """How often two kinds of event happened, or only the first; tick 0 does not count."""
    return Bars(title, (up, _binned(con, ticks, up)), (down, _binned(con, ticks, down)))


def _binned(con: DuckDBPyConnection, ticks: int, kind: str) -> list[int]:
    width = (ticks + 1) / min(BINS, ticks + 1)
    counts = [0] * min(BINS, ticks + 1)
    for bin_, count in con.execute(BINNED, {"width": width, "kind": kind}).fetchall():
        counts[min(bin_, len(counts) - 1)] = count
    return counts


def draw(chart: Chart, frame: Frame) -> str:
    """One chart with its title, its scale and a mark at the tick that is shown."""
    marker = frame.at(frame.tick)
    now = element("path", class_="now", d=f"M{num(marker)} {num(frame.y)}v{num(frame.height)}")
    return now + (_curve(chart, frame) if isinstance(chart, Curve) else _bars(chart, frame))


def _axis(frame: Frame, y: float) -> str:
    return element("path", class_="axis", d=f"M{num(frame.x)} {num(y)}h{num(frame.width)}")


def _curve(curve: Curve, frame: Frame) -> str:
    top = max(curve.values, default=0) or 1
    now = curve.values[frame.tick] if frame.tick < len(curve.values) else 0
    values = shorten(curve.values, POINTS)
    across = frame.width / max(1, len(values) - 1)
    down = _scale(frame, top)
    points = [(frame.x + i * across, down(v)) for i, v in enumerate(values)] or [(frame.x, down(0))]
    floor = num(frame.y + frame.height)
    area = f"{line(points)}L{num(points[-1][0])} {floor}L{num(points[0][0])} {floor}z"
    return "".join(
        [
            _axis(frame, frame.y + frame.height),
            element("path", class_=f"{curve.class_} area", d=area),
            element("path", class_=f"{curve.class_} line", d=line(points)),
            element("circle", class_=f"{curve.class_} dot", cx=frame.at(frame.tick), cy=down(now), r=3.5),
            *_caption(frame, curve.title, _short(now), f"at most {_short(top)}"),
        ]
    )


def _scale(frame: Frame, top: float) -> Callable[[float], float]:
    return lambda value: frame.y + frame.height * (1 - max(value, 0) / top)


def _bars(chart: Bars, frame: Frame) -> str:
    (up, ups), (down, downs) = chart.up, chart.down
    top, bottom = max(ups, default=0), max(downs, default=0)
    unit = frame.height / max(1, top + bottom)
    zero = frame.y + unit * max(top, 1 if not bottom else 0)
    step = frame.width / max(1, len(ups))
    high = "".join(_bar(frame.x + i * step, zero, step, -n * unit) for i, n in enumerate(ups) if n)
    low = "".join(_bar(frame.x + i * step, zero, step, n * unit) for i, n in enumerate(downs) if n)
    return "".join(
        [
            element("path", class_=f"{up} bar", d=high) if high else "",
            element("path", class_=f"{down} bar", d=low) if low else "",
            _axis(frame, zero),
            *_caption(
                frame, chart.title, "", f"{_short(sum(ups))} ↑  {_short(sum(downs))} ↓" if down else _short(sum(ups))
            ),
        ]
    )


def _bar(x: float, zero: float, step: float, height: float) -> str:
    return f"M{num(x + step * 0.12)} {num(zero)}h{num(step * 0.76)}v{num(height)}h-{num(step * 0.76)}z"


def _caption(frame: Frame, title: str, now: str, scale: str) -> list[str]:
    y = frame.y - 9
    written = element("tspan", words(title, 30), class_="strong") + (f"  {now}" if now else "")
    return [
        element("text", written, x=frame.x, y=y, class_="small"),
        label(frame.x + frame.width, y, scale, "faint", "end"),
    ]


def _short(value: float) -> str:
    """
    >>> _short(12345), _short(0.5)
    ('12 345', '0.5')
    """
    return f"{value:,.0f}".replace(",", " ") if value == int(value) or abs(value) >= 100 else f"{value:.3g}"

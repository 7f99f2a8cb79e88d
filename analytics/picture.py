"""A run as a picture: one tick of it as its record tells it, drawn as an SVG that needs nothing else.

A grid world is shown as a map, with small charts beside it; any other world as charts. Colours are those of
Okabe and Ito, which people see apart whatever their colour vision; the picture follows the reader's light or
dark setting. All that agents wrote is written as text.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import duckdb
from duckdb import DuckDBPyConnection

from ethnos.analytics import charts, grid
from ethnos.analytics.charts import Chart, Frame
from ethnos.analytics.grid import Being, Scene
from ethnos.analytics.svg import Point, element, label, line, num, squares, words
from ethnos.errors import RecordDamaged, RunError
from ethnos.record.directory import Manifest, RunDirectory
from ethnos.record.reader import connect

MARGIN = 28
MAP = 620
"""The longer side of the map."""
SIDE = 300
"""The width of the charts."""
TOP = 74
"""Where the map begins."""
BOTTOM = 52
"""What is kept free below it."""
COLOURS = 5
"""Cohorts beyond so many share a colour."""
FADING = (2, 4, 7)
"""Ages, in ticks, at which a trail gets fainter."""
NAMED = 2_000
"""Up to so many beings, each says its name when pointed at."""

STYLE = """
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#24292f}
.title{font-size:20px;font-weight:600}.small{font-size:13px}.faint{font-size:12px;fill:#6e7781}.strong{font-weight:600}
.paper{fill:#fff}.ground{fill:#f7f5ee}.rule{stroke:#e9e5d8;fill:none;stroke-width:.6}
.edge{fill:none;stroke:#b9b3a0;stroke-width:1.2;stroke-dasharray:5 4}
.food{fill:#009E73}.f1{opacity:.25}.f2{opacity:.42}.f3{opacity:.6}.f4{opacity:.8}
.thing{fill:#E69F00;stroke:#7a5200;stroke-width:.6}
.being{stroke:#fff;stroke-width:1.2}.trail,.ring{fill:none;stroke-linecap:round}.ring{stroke-width:1.4}
.t0{opacity:.7}.t1{opacity:.5}.t2{opacity:.32}.t3{opacity:.18}
.c0{fill:#0072B2}.c1{fill:#D55E00}.c2{fill:#CC79A7}.c3{fill:#56B4E9}.c4{fill:#000}
.s0{stroke:#0072B2}.s1{stroke:#D55E00}.s2{stroke:#CC79A7}.s3{stroke:#56B4E9}.s4{stroke:#000}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.area{opacity:.14}.dot{stroke:#fff;stroke-width:1.2}
.population.line{stroke:#0072B2}.population.area,.population.dot{fill:#0072B2}
.stock.line{stroke:#009E73}.stock.area,.stock.dot{fill:#009E73}
.born.bar{fill:#56B4E9}.died.bar{fill:#D55E00}.said.bar{fill:#CC79A7}.artifact_created.bar{fill:#E69F00}
.axis{stroke:#d0d7de;fill:none}.now{stroke:#6e7781;stroke-width:1;stroke-dasharray:2 3;fill:none}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.faint{fill:#8d96a0}.paper{fill:#0d1117}.ground{fill:#161b18}.rule{stroke:#222923}
.edge{stroke:#57605a}.being,.dot{stroke:#0d1117}.thing{stroke:#ffd27a}.axis{stroke:#30363d}.now{stroke:#8d96a0}
.c0{fill:#56B4E9}.c3{fill:#F0E442}.c4{fill:#fff}.s0{stroke:#56B4E9}.s3{stroke:#F0E442}.s4{stroke:#fff}
.population.line{stroke:#56B4E9}.population.area,.population.dot{fill:#56B4E9}.area{opacity:.2}
}
"""


def draw(run: RunDirectory, tick: int | None = None) -> str:
    """The run at the end of `tick`, or of its last one so far. Raises RunError if it has no such tick."""
    with connect(run) as con:
        try:
            return draw_from(con, run.manifest(), tick)
        except duckdb.Error as error:
            raise RecordDamaged(f"{run.name}: {str(error).strip()}") from None


def draw_from(con: DuckDBPyConnection, manifest: Manifest, tick: int | None = None, *, charts_too: bool = True) -> str:
    """The same from a connection that is open; a map without the charts beside it where those are not wanted."""
    last = _last_tick(con, manifest.name)
    shown = last if tick is None else tick
    if not 0 <= shown <= last:
        raise RunError(f"run {manifest.name} has the ticks 0 to {last}, not {shown}")
    return _draw(con, manifest, shown, last, charts_too)


def _last_tick(con: DuckDBPyConnection, name: str) -> int:
    row = con.execute("SELECT max(tick) FROM ticks").fetchone()
    if row is None or row[0] is None:
        raise RunError(f"run {name} has no tick yet")
    return int(row[0])


def _draw(con: DuckDBPyConnection, manifest: Manifest, tick: int, last: int, charts_too: bool) -> str:
    cohorts = _cohorts(con)
    scene = grid.scene(con, tick) if grid.is_grid(manifest) else None
    drawn = _charts(con, manifest, last) if charts_too or scene is None else []
    left = MARGIN + _map_size(scene)[0] + 36 if scene else MARGIN
    height = TOP + BOTTOM + (max(_map_size(scene)[1], 420) if scene else 130 * len(drawn))
    width = left + ((SIDE if drawn else -36) if scene else MAP) + MARGIN
    body = [
        element("rect", class_="paper", width=width, height=height, rx=10),
        *_heading(con, manifest, tick, last),
        *(_map(scene, cohorts) if scene else ()),
        *(_panel(drawn, left, SIDE if scene else MAP, height, (tick, last)) if drawn else ()),
        *(_legend(scene, cohorts, height - 24) if scene else ()),
    ]
    about = element("title", words(f"{manifest.name}: {manifest.scenario} at tick {tick}"))
    return element(
        "svg",
        "\n".join([about, element("style", STYLE), *body]),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {num(width)} {num(height)}",
        width=width,
        height=height,
        role="img",
    )


def _heading(con: DuckDBPyConnection, manifest: Manifest, tick: int, last: int) -> list[str]:
    row = con.execute("SELECT population FROM ticks WHERE tick = $tick", {"tick": tick}).fetchone()
    alive = row[0] if row else 0
    fact = f"tick {tick} of {last}, {alive} alive, seed {manifest.seed}"
    return [
        label(MARGIN, 36, f"{manifest.name}", "title", limit=60),
        label(MARGIN, 57, f"{manifest.scenario}, {fact}", "small", limit=120),
    ]


def _charts(con: DuckDBPyConnection, manifest: Manifest, last: int) -> list[Chart]:
    talk = "artifact_created" if "artifact_created" in manifest.kinds else ""
    counted = [
        charts.bars(con, last, "Births and deaths", "born", "died"),
        charts.bars(con, last, "Messages and artifacts" if talk else "Messages", "said", talk),
    ]
    return [*charts.curves(con, sorted(manifest.conserved)[:2]), *(c for c in counted if any((*c.up[1], *c.down[1])))]


def _panel(drawn: Sequence[Chart], x: float, width: float, height: float, ticks: tuple[int, int]) -> Iterator[str]:
    """The charts, one below the other."""
    tick, last = ticks
    room = (height - TOP - BOTTOM) / len(drawn)
    for i, chart in enumerate(drawn):
        yield charts.draw(chart, Frame(x, TOP + i * room + 18, width, room - 46, last, tick))
    bottom = TOP + len(drawn) * room - 12
    yield label(x, bottom, "tick 0", "faint")
    yield label(x + width, bottom, last, "faint", "end")


def _cohorts(con: DuckDBPyConnection) -> dict[str, int]:
    """The colour of each cohort, by first birth."""
    rows = con.execute("SELECT cohort FROM agents GROUP BY cohort ORDER BY min(agent_id)").fetchall()
    return {cohort: min(i, COLOURS - 1) for i, (cohort,) in enumerate(rows)}


# the map


def _map_size(scene: Scene) -> tuple[float, float]:
    cell = MAP / max(scene.width, scene.height)
    return scene.width * cell, scene.height * cell


def _map(scene: Scene, cohorts: dict[str, int]) -> Iterator[str]:
    width, height = _map_size(scene)
    frame = {"x": MARGIN, "y": TOP, "width": width, "height": height}
    layers = (_food(scene), _trails(scene, cohorts), _things(scene), _rings(scene, cohorts), _beings(scene, cohorts))
    yield element("clipPath", element("rect", **frame), id="map")
    yield element("rect", class_="ground", **frame)
    yield from _rules(scene)
    yield element("g", "\n".join(x for layer in layers for x in layer), clip_path="url(#map)")
    yield element("rect", class_="edge", **frame)


def _cell(scene: Scene) -> float:
    return MAP / max(scene.width, scene.height)


def _middle(scene: Scene, x: int, y: int) -> Point:
    cell = _cell(scene)
    return MARGIN + (x + 0.5) * cell, TOP + (y + 0.5) * cell


def _rules(scene: Scene) -> Iterator[str]:
    """A faint line every ten cells."""
    width, height = _map_size(scene)
    cell, every = _cell(scene), 10 if scene.width <= 200 else 100
    across = "".join(f"M{num(MARGIN + i * cell)} {TOP}v{num(height)}" for i in range(every, scene.width, every))
    down = "".join(f"M{MARGIN} {num(TOP + i * cell)}h{num(width)}" for i in range(every, scene.height, every))
    if across + down:
        yield element("path", class_="rule", d=across + down)


def _food(scene: Scene) -> Iterator[str]:
    """Tiles, the darker the more energy; the richest tenth are all the same."""
    energies, cell = sorted(t.energy for t in scene.food), _cell(scene)
    most = energies[len(energies) * 9 // 10] if energies else 1
    gap = min(1.0, cell * 0.08)
    shades: dict[int, list[Point]] = defaultdict(list)
    for tile in scene.food:
        corner = MARGIN + tile.x * cell + gap / 2, TOP + tile.y * cell + gap / 2
        shades[min(4, 1 + int(3.99 * tile.energy / most))].append(corner)
    for shade, corners in sorted(shades.items()):
        yield element("path", class_=f"food f{shade}", d=squares(corners, cell - gap))


def _trails(scene: Scene, cohorts: dict[str, int]) -> Iterator[str]:
    """The last steps of everybody, fading in a few stages."""
    steps: dict[tuple[int, int], list[str]] = defaultdict(list)
    for s in scene.steps:
        stage = sum(s.age >= age for age in FADING)
        steps[stage, cohorts[s.cohort]].append(line([_middle(scene, s.x0, s.y0), _middle(scene, s.x, s.y)]))
    wide = max(0.8, _cell(scene) * 0.2)
    for (stage, colour), data in sorted(steps.items(), reverse=True):
        shade = f"trail t{stage} s{colour}"
        yield element("path", class_=shade, d="".join(data), stroke_width=wide)


def _things(scene: Scene) -> Iterator[str]:
    """Artifacts as diamonds, larger where several lie on top of each other; carried ones are not drawn."""
    piles: dict[tuple[int, int], list[str]] = defaultdict(list)
    for t in scene.things:
        if not t.carried:
            piles[t.x, t.y].append(t.name)
    for (x, y), names in piles.items():
        (cx, cy), r = _middle(scene, x, y), max(1.2, _cell(scene) * min(0.5, 0.3 + 0.05 * len(names)))
        d = f"M{num(cx)} {num(cy - r)}l{num(r)} {num(r)}l-{num(r)} {num(r)}l-{num(r)} -{num(r)}z"
        yield element("path", element("title", words(", ".join(names))), class_="thing", d=d)


def _rings(scene: Scene, cohorts: dict[str, int]) -> Iterator[str]:
    """Who says something, with ripples around it."""
    for call in scene.calls:
        cx, cy = _middle(scene, call.x, call.y)
        said = element("title", words(f"{call.name}: {call.text}"))
        for ripple, opacity in ((1.3, 0.9), (2.1, 0.5), (2.9, 0.25)):
            r = max(4, _cell(scene)) * ripple
            shade = f"ring s{cohorts[call.cohort]}"
            yield element("circle", said, class_=shade, cx=cx, cy=cy, r=r, opacity=str(opacity))


def _beings(scene: Scene, cohorts: dict[str, int]) -> Iterator[str]:
    """Dots whose area says how much energy somebody has."""
    most = max((b.energy for b in scene.beings), default=1) or 1
    for b in scene.beings:
        cx, cy = _middle(scene, b.x, b.y)
        name = element("title", words(f"{b.name}, {b.energy:g} energy")) if len(scene.beings) <= NAMED else ""
        r = _radius(scene, b, most)
        yield element("circle", name, class_=f"being c{cohorts[b.cohort]}", cx=cx, cy=cy, r=r)


def _radius(scene: Scene, being: Being, most: float) -> float:
    share = float(max(being.energy, 0) / most)
    return max(1.5, _cell(scene) * (0.28 + 0.42 * math.sqrt(share)))


def _legend(scene: Scene, cohorts: dict[str, int], y: float) -> Iterator[str]:
    """What the marks on the map are."""
    x = float(MARGIN)
    yield element("path", class_="food f4", d=squares([(x, y - 10)], 11))
    yield label(x + 17, y, "food", "faint")
    x += 62
    for name, colour in list(cohorts.items())[:COLOURS]:
        yield element("circle", class_=f"being c{colour}", cx=x + 5, cy=y - 4.5, r=5.5)
        yield label(x + 16, y, name, "faint", limit=16)
        x += 34 + 6.5 * min(16, len(name))
    yield element("path", class_="thing", d=f"M{num(x + 5)} {num(y - 10)}l5.5 5.5l-5.5 5.5l-5.5 -5.5z")
    yield label(x + 16, y, "artifact", "faint")
    x += 78
    for r, opacity in ((3, "0.9"), (6, "0.5")):
        yield element("circle", class_="ring s0", cx=x + 5, cy=y - 4.5, r=r, opacity=opacity)
    yield label(x + 16, y, "says something", "faint")

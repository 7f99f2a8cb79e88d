"""Pictures of runs: the map agrees with the record, and nothing in it but text was written by agents."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import ethnos
from ethnos.analytics import grid
from ethnos.analytics.picture import draw
from ethnos.analytics.svg import element, words
from ethnos.errors import RunError
from ethnos.record.reader import connect

SVG = "{http://www.w3.org/2000/svg}"
CHANGES = [
    "ticks=60",
    "seed=3",
    "world.width=20",
    "world.height=16",
    "world.food.spawn_rate=3",
    "population.0.count=12",
]


@pytest.fixture(scope="module")
def terra(tmp_path_factory: pytest.TempPathFactory) -> ethnos.RunDirectory:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ETHNOS_RUNS_DIR", str(tmp_path_factory.mktemp("runs")))
        return ethnos.run_here(ethnos.load_society("terra", CHANGES), name="terra")


def test_all_energy_on_the_map_is_all_energy_there_is(terra: ethnos.RunDirectory) -> None:
    with connect(terra) as con:
        stocks = con.execute("SELECT tick, stocks, population FROM ticks ORDER BY tick").fetchall()
        for tick, held, population in stocks[::7]:
            scene = grid.scene(con, tick)
            assert len(scene.beings) == population
            drawn = sum(b.energy for b in scene.beings) + sum(t.energy for t in scene.food)
            assert drawn == json.loads(held)["energy"], f"tick {tick}"


def test_artifacts_are_where_the_record_leaves_them(terra: ethnos.RunDirectory) -> None:
    with connect(terra) as con:
        there = con.execute("SELECT count(*) FROM artifacts WHERE gone IS NULL").fetchall()[0][0]
        scene = grid.scene(con, 60)
    assert there > 0
    assert len(scene.things) == there


def test_a_map_has_a_dot_for_everybody(terra: ethnos.RunDirectory) -> None:
    root = ElementTree.fromstring(draw(terra, 40))
    with connect(terra) as con:
        population = con.execute("SELECT population FROM ticks WHERE tick = 40").fetchall()[0][0]
    dots = [c for c in root.iter(f"{SVG}circle") if "being" in c.get("class", "") and c.find(f"{SVG}title") is not None]
    assert len(dots) == population


def test_the_same_tick_gives_the_same_picture(terra: ethnos.RunDirectory) -> None:
    assert draw(terra, 60) == draw(terra)


def test_a_world_without_places_is_drawn_as_charts(runs: Path) -> None:
    run = ethnos.run_here(ethnos.load_society("commons", ["ticks=30"]), name="pond")
    drawn = draw(run)
    ElementTree.fromstring(drawn)
    assert "Fish" in drawn
    assert "Messages" in drawn
    assert "clipPath" not in drawn


def test_a_tick_that_is_not_there(terra: ethnos.RunDirectory) -> None:
    with pytest.raises(RunError, match="ticks 0 to 60, not 61"):
        draw(terra, 61)


def test_what_agents_wrote_stays_text() -> None:
    hostile = '</title><script>alert(1)</script>\x00\x1b]0;\u202e"'
    root = ElementTree.fromstring(element("g", element("title", words(hostile)), id=hostile))
    assert [e.tag for e in root.iter()] == ["g", "title"]
    assert (root[0].text or "").startswith("</title><script>alert(1)</script>\ufffd\ufffd]0;\ufffd")


def test_a_hostile_name_in_the_record(terra: ethnos.RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def poisoned(con: object, tick: int) -> grid.Scene:
        being = grid.Being(0, "<svg onload=x>", "beings", 1, 1, 5)
        return grid.Scene(20, 16, [], [being], [], [grid.Thing(0, "&lt;]]>", 2, 2, False)], [])

    monkeypatch.setattr(grid, "scene", poisoned)
    root = ElementTree.fromstring(draw(terra))
    assert not [e for e in root.iter() if e.get("onload")]

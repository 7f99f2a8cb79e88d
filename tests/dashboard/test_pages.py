"""What each page shows and does, without a browser."""

import json
from pathlib import Path
from typing import Any

import pytest

import ethnos
from ethnos.analytics.study import codebook
from ethnos.analytics.study.studying import Plan, study
from ethnos.dashboard import figures, rights
from ethnos.dashboard.reading import find
from ethnos.dashboard.views.findings import claims
from ethnos.errors import QueryError
from ethnos.interview import interview
from ethnos.parameters import change, parameters
from ethnos.record.directory import RunDirectory
from ethnos.society import load
from ethnos.views import views_of
from ethnos.world.scenario import View
from tests.dashboard.pages import page, sound, words


def test_without_runs_every_page_says_so(runs: Path) -> None:
    assert "no runs here yet" in words(page("runs", run=None))
    assert "no run to look at" in words(page("society", run=None))


def test_runs_lists_them_with_their_curve(in_village: Path) -> None:
    app = page("runs", run="village")
    (table,) = [d.value for d in app.dataframe]
    row = table.iloc[0]
    assert (row["run"], row["state"], row["tick"], row["alive"]) == ("village", "■ finished", 60, len_alive())
    assert len(row["population"]) == 60


def len_alive() -> int:

    with ethnos.open_run("village") as con:
        return int(con.sql("SELECT arg_max(population, tick) FROM ticks").fetchall()[0][0])


def test_society_goes_to_any_tick_and_plays_forwards(in_village: Path) -> None:
    app = page("society", run="village")
    assert {m.label: m.value for m in app.metric}["Tick"] == "60"
    app.slider(key="tick").set_value(7).run()
    assert {m.label: m.value for m in sound(app).metric}["Tick"] == "7"
    assert not app.toggle(key="follow").value
    app.toggle(key="play").set_value(True).run()
    assert int({m.label: m.value for m in sound(app).metric}["Tick"]) > 7


def test_a_world_without_places_has_its_own_views(runs: Path) -> None:
    ethnos.run_here(load("commons", ["ticks=40"]), name="lake")
    app = page("society", run="lake")
    drawn = [json.dumps(json.loads(chart.proto.spec).get("title")) for chart in app.get("vega_lite_chart")]
    assert '"Who caught how many"' in drawn
    assert not app.error


@pytest.mark.parametrize("mark", ["line", "bars", "points", "heat", "network"])
def test_every_kind_of_view_is_drawn(mark: Any) -> None:
    view = View("T", "SELECT 1", "a", "b", mark, "c")
    rows = [{"a": 1, "b": 2, "c": 3}, {"a": 2, "b": None, "c": 4}, {"a": 3, "b": 1, "c": 4}]
    assert figures.pictured(view, rows).to_dict()["title"] == "T"


def test_the_views_of_a_world_that_a_run_merely_names_are_not_looked_for(in_village: Path) -> None:
    manifest = RunDirectory.find("village").manifest()
    manifest.scenario = "antigravity:Anything"
    assert views_of(manifest) == []


def test_the_feed_is_filtered(in_village: Path) -> None:
    app = page("society", run="village")
    app.multiselect(key="kinds-village").set_value(["died"]).run()
    assert set(sound(app).dataframe[-1].value["kind"]) == {"died"}
    app.slider(key="tick").set_value(0).run()
    assert "Nothing of that sort" in words(sound(app))


def test_a_form_knows_every_parameter_and_changes_only_what_was_changed() -> None:
    society = load("terra")
    found = {p.path: p for p in parameters(society)}
    assert found["world.food.remains"].choices == ("single", "area", "none")
    assert found["world.food.spawn_rate"].kind == "real"
    assert all(p.meaning for p in found.values())
    assert [change(p, p.value) for p in found.values()] == [None] * len(found)
    changed = [change(found["world.food.spawn_rate"], 2.5), change(found["world.hearing"], "3")]
    assert load("terra", [c for c in changed if c]).world["food"]["spawn_rate"] == 2.5


def test_a_run_is_found_by_its_name_alone(in_village: Path) -> None:
    assert find("village") is not None
    assert find("../village") is find(str(in_village / "village")) is None


def test_acting_takes_the_stronger_token(monkeypatch: pytest.MonkeyPatch, in_village: Path) -> None:
    monkeypatch.setenv(rights.LOOK, "look-token")
    monkeypatch.setenv(rights.ACT, "act-token")
    looking = page("runs", run="village", may="look")
    assert looking.button(key="resume").disabled
    assert "This needs the control token." in looking.button(key="resume").help
    acting = page("runs", run="village", may="act")
    assert acting.button(key="resume").help == ""


def test_an_agents_decisions_family_and_place_are_there(in_village: Path) -> None:
    app = page("agent", run="village")
    assert any({"action", "outcome"} <= set(d.value) for d in app.dataframe)
    assert any({"steps", "born"} <= set(d.value) for d in app.dataframe)
    app.selectbox(key="agent").set_value(3).run()
    assert "being" in words(sound(app))


def test_an_agent_whose_mind_is_code_says_that_it_has_no_words(in_village: Path) -> None:
    with pytest.raises(QueryError, match="code"):
        interview(RunDirectory.find("village"), 3, 60, "How are you?")


@pytest.mark.parametrize("view", ["artifacts", "network", "findings", "compare", "control"])
def test_every_other_page_shows_a_run(view: str, in_village: Path) -> None:
    app = page(view, run="village")
    assert not app.error, [e.value for e in app.error]


def test_sql_answers_and_refuses(in_village: Path) -> None:
    app = page("sql", run="village")
    app.text_area(key="sql").set_value("SELECT count(*) AS n FROM ticks")
    app.button(key="run-query").click().run()
    assert [d.value["n"].tolist() for d in sound(app).dataframe if "n" in d.value] == [[61]]
    app.text_area(key="sql").set_value("COPY events TO '/tmp/x'")
    app.button(key="run-query").click().run()
    assert "only read" in words(sound(app))


def test_each_finding_has_its_evidence_below_it(in_village: Path) -> None:
    run = find("village")
    assert run is not None
    study(run, Plan(codebook.read()))
    found = claims(run)
    app = page("findings", run="village")
    topics = list(dict.fromkeys(f["topic"] for f in found))
    assert len(found) > 5
    assert [list(d.value["seq"]) for d in app.dataframe] == [
        f["evidence"] for topic in topics for f in found if f["topic"] == topic
    ]

"""Measures and networks on records in which the answer is known, and against closed forms."""

import json
from math import log
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest

from ethnos import load_society
from ethnos.analytics import network
from ethnos.analytics.measures import REGISTRY, measure
from ethnos.analytics.measures.words import tail
from ethnos.errors import QueryError
from ethnos.record.log import Log
from ethnos.record.reader import connect
from ethnos.run import create
from ethnos.world.world import Step
from tests.tiny import make_run

ROOT = Path(__file__).resolve().parents[2]
FIELDS = ("actor_id", "agent_id", "target_id", "artifact_id", "x", "y", "amount", "text")


def planted(name: str, ticks: list[list[dict[str, Any]]]) -> Any:
    """The record of a run of Terra in which exactly this happened, as a connection."""
    run, seq = create(load_society("terra", [f"ticks={len(ticks)}"]), name), 0
    with Log(run) as log:
        for tick, happened in enumerate(ticks):
            rows = []
            for event in happened:
                data = {k: v for k, v in event.items() if k not in (*FIELDS, "kind")}
                rows.append((seq, event["kind"], *(event.get(f) for f in FIELDS), json.dumps(data)))
                seq += 1
            log.commit(Step(tick, rows, [], {}, 0, seq), {}, 1.0)
        log.seal()
    return connect(run)


def born(agent: int, parent: int | None = None, cohort: str = "town") -> dict[str, Any]:
    generation = int(parent is not None)
    named = {"agent_id": agent, "target_id": parent, "text": f"a{agent}", "cohort": cohort}
    return {"kind": "born", **named, "generation": generation, "persona": {}}


def passed(kind: str, source: int, target: int, amount: float) -> dict[str, Any]:
    return {"kind": kind, "agent_id": source, "target_id": target, "amount": amount}


def said(agent: int, text: str) -> dict[str, Any]:
    return {"kind": "said", "agent_id": agent, "text": text}


def heard(listener: int, speaker: int, seq: int) -> dict[str, Any]:
    return {"kind": "heard", "agent_id": listener, "target_id": speaker, "said": seq}


def one(table: pa.Table) -> dict[str, Any]:
    (row,) = table.to_pylist()
    return row


def test_a_gift_cycle_has_no_reciprocity_and_a_pair_has(runs: Path) -> None:
    cycle = [passed("energy_given", i, (i + 1) % 4, 5) for i in range(4)]
    with planted("cycle", [[born(i) for i in range(4)], cycle, [passed("energy_given", 1, 0, 2)]]) as con:
        assert one(measure(con, "giving")) == {"transfers": 5, "amount": 22.0, "givers": 4}
        assert one(measure(con, "reciprocity"))["reciprocity"] == pytest.approx(4 / 22)
        edges = network.edges(con)
        assert [(r["source"], r["target"], r["weight"], r["n"]) for r in edges.to_pylist()] == [
            (0, 1, 5.0, 1), (1, 0, 2.0, 1), (1, 2, 5.0, 1), (2, 3, 5.0, 1), (3, 0, 5.0, 1)
        ]  # fmt: skip
        assert one(network.structure(edges, network.communities(edges)))["reciprocity_positive"] == pytest.approx(2 / 5)


def test_a_spree_of_thefts_is_negative_and_names_its_evidence(runs: Path) -> None:
    spree = [[passed("energy_taken", 0, t, 3)] for t in (1, 2, 1)]
    with planted("spree", [[born(i) for i in range(3)], *spree]) as con:
        assert one(measure(con, "aggression")) == {"transfers": 3, "amount": 9.0, "takers": 1}
        assert measure(con, "aggression", "agent").to_pylist()[0]["agent_id"] == 0
        first = network.edges(con).to_pylist()[0]
        assert (first["weight"], first["n"], first["first_seq"], first["last_seq"]) == (-6.0, 2, 3, 5)
        assert network.evidence(con, 0, 1, "taking")["seq"].to_pylist() == [3, 5]
        halved = network.edges(con, {"taking": -0.5}, 2).to_pylist()
        assert [(r["window"], r["target"], r["weight"]) for r in halved] == [(0, 1, -1.5), (1, 1, -1.5), (1, 2, -1.5)]


def test_two_communities_with_a_bridge_are_found(runs: Path) -> None:
    pairs = [(a, b) for g in (0, 4) for a in range(g, g + 4) for b in range(a + 1, g + 4)]
    links = [passed("energy_given", a, b, 4) for a, b in pairs]
    bad = passed("energy_taken", 0, 7, 1)
    with planted("bridge", [[born(i) for i in range(8)], [*links, passed("energy_given", 3, 4, 1), bad]]) as con:
        edges = network.edges(con)
        groups = network.communities(edges)
        assert network.communities(edges) == groups
        for method in ("louvain", "cliques"):
            rows = [r for r in groups.to_pylist() if r["method"] == method]
            assert [r["agent"] for r in rows] == list(range(8)), method
            assert [r["community"] for r in rows] == [0] * 4 + [1] * 4, method
        found = one(network.structure(edges, groups))
        assert found["modularity"] == pytest.approx(48 / 49 - 0.5)
        assert found["entropy"] == pytest.approx(log(2))
        assert found["negative_cuts"] == 1.0
        share = network.participation(edges, groups).to_pylist()
        assert share[0]["participation"] == 0
        assert share[3]["participation"] == pytest.approx(1 - (12 / 13) ** 2 - (1 / 13) ** 2)


def test_communities_that_merge_split_form_and_dissolve() -> None:
    windows = [[{0, 1, 2}, {3, 4, 5}], [{0, 1, 2, 3, 4, 5}], [{0, 1, 2}, {3, 4, 5}], [{8, 9}]]
    rows = [
        {"window": w, "method": "louvain", "community": i, "agent": a}
        for w, groups in enumerate(windows) for i, g in enumerate(groups) for a in g
    ]  # fmt: skip
    found = network.changes(pa.Table.from_pylist(rows)).to_pylist()
    assert [(r["window"], r["change"]) for r in found] == [
        (1, "merged"), (1, "merged"), (2, "split"), (2, "split"), (3, "dissolved"), (3, "dissolved"), (3, "formed")
    ]  # fmt: skip


def test_a_cascade_of_known_branching(runs: Path) -> None:
    """Agent 0 is heard by 1 and 2, each of whom tells two on: 1 + 2 + 4 tellings, depth 2."""
    ticks = [[born(i) for i in range(7)]]
    seq, tellers = 7, [0]
    for depth in range(3):
        happened, nxt = [], []
        for t in tellers:
            mine = seq
            audience = (2 * t + 1, 2 * t + 2) if depth < 2 else ()
            happened += [said(t, "Fire, fire!"), *(heard(a, t, mine) for a in audience)]
            seq, nxt = seq + 1 + len(audience), [*nxt, *audience]
        ticks.append(happened)
        tellers = nxt
    with planted("cascade", ticks) as con:
        found = one(measure(con, "cascades"))
        assert (found["cascades"], found["largest"], found["deepest"]) == (1, 7, 2)
        assert found["branching"] == pytest.approx(6 / 7)
        assert one(measure(con, "vocabulary"))["types"] == 1
        assert one(measure(con, "adoption"))["adoptions"] == 6


def test_survivors_of_a_known_hazard(runs: Path) -> None:
    """Of 64 half die in each tick: S(t) = 0.5^t."""
    ticks, alive = [[born(i) for i in range(64)]], 64
    for _ in range(5):
        ticks.append([{"kind": "died", "agent_id": i, "text": "chance", "age": 0} for i in range(alive // 2, alive)])
        alive //= 2
    with planted("hazard", ticks) as con:
        curve = {r["age"]: r["survival"] for r in measure(con, "survival").to_pylist()}
        assert [curve[t] for t in range(6)] == pytest.approx([0.5**t for t in range(6)])
        assert one(measure(con, "age_at_death"))["deaths"] == 62


def test_wealth_lines_and_inequality(runs: Path) -> None:
    """Of four one has all: Gini is 3/4."""
    start = [{"kind": "settled", "agent_id": i, "x": i, "y": 0, "amount": 0 if i else 40} for i in range(4)]
    with planted("rich", [[*(born(i) for i in range(4)), *start], [born(4, 0)]]) as con:
        by_tick = {r["tick"]: r["gini"] for r in measure(con, "gini", "tick").to_pylist()}
        assert by_tick[0] == pytest.approx(0.75)
        assert [r["size"] for r in measure(con, "lineages", "agent").to_pylist()] == [2, 1, 1, 1]
        assert one(measure(con, "births"))["children"] == 1


def test_libraries_agree_with_what_is_known() -> None:
    sizes = [s for s in range(1, 400) for _ in range(round(40_000 * s**-2.5))]
    assert one(tail(sizes))["alpha"] == pytest.approx(2.5, abs=0.1)
    club = nx.karate_club_graph()
    rows = [{"window": 0, "source": a, "target": b, "kind": "gift", "weight": 1.0} for a, b in club.edges]
    found = pa.Table.from_pylist(rows)
    groups = network.communities(found)
    assert one(network.structure(found, groups))["modularity"] == pytest.approx(0.42, abs=0.03)


def test_a_world_without_what_is_needed_is_told_so(runs: Path) -> None:
    with connect(make_run("orchard").run) as con:
        with pytest.raises(QueryError, match="no events energy_given"):
            measure(con, "giving")
        for name, m in REGISTRY.items():
            if not set(m.needs) - {"said", "heard"}:
                for by in (None, *m.by):
                    assert measure(con, name, by).num_columns, name


def test_the_page_lists_every_measure() -> None:
    page = (ROOT / "docs" / "measures.md").read_text()
    for m in REGISTRY.values():
        assert f"| `{m.name}` | {m.title} | {m.formula} | {m.unit} | {m.source} |" in page

"""Graphs and contacts: what must hold of any of them, and what is known of some."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ethnos.world import graph as graphs
from ethnos.world.contacts import Contacts, Layer, chance_of_infection
from ethnos.world.graph import Graph, from_networkx, groups, known, linked, made, paradox, scattered, threshold

SHAPES = ["chain", "circle", "full", "caveman", "regular", "random", "small_world", "scale_free", "none"]


@st.composite
def some(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    size = draw(st.integers(1, 12))
    return size, draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=40))


def of(size: int, pairs: list[tuple[int, int]]) -> Graph:
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return linked(size, ends[:, 0], ends[:, 1])


@given(some())
def test_links_are_those_given_once_each_and_to_others(given_: tuple[int, list[tuple[int, int]]]) -> None:
    size, pairs = given_
    graph = of(size, pairs)
    assert [(i, j) for i in range(size) for j in graph.to(i)] == sorted({(a, b) for a, b in pairs if a != b})
    assert graph.degrees().sum() == len(graph.targets) and graph.size == size


@given(some())
def test_turning_twice_changes_nothing(given_: tuple[int, list[tuple[int, int]]]) -> None:
    graph = of(*given_)
    again = graph.turned().turned()
    assert again.starts.tolist() == graph.starts.tolist() and again.targets.tolist() == graph.targets.tolist()


@given(some(), st.data())
def test_what_is_sent_is_received(given_: tuple[int, list[tuple[int, int]]], data: st.DataObject) -> None:
    graph = of(*given_)
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=graph.size, max_size=graph.size)), dtype=float)
    got = graph.spread(weights)
    assert got.tolist() == [sum(weights[j] for j in graph.turned().to(i)) for i in range(graph.size)]
    assert got.sum() == (weights * graph.degrees()).sum()


@given(some(), st.data())
def test_reached_are_the_neighbours_one_after_the_other(
    given_: tuple[int, list[tuple[int, int]]], data: st.DataObject
) -> None:
    graph = of(*given_)
    nodes = data.draw(st.lists(st.integers(0, graph.size - 1), max_size=8))
    expected = [j for i in nodes for j in graph.to(i)]
    assert graph.reached(np.array(nodes, dtype=np.int64)).tolist() == expected


@settings(max_examples=60)
@given(st.sampled_from(SHAPES), st.integers(1, 40), st.integers(1, 9), st.integers(0, 5))
def test_every_shape_can_be_made_in_every_size(shape: graphs.Shape, size: int, degree: int, seed: int) -> None:
    graph, again = (made(shape, size, np.random.default_rng(seed), degree=degree) for _ in range(2))
    assert graph.size == size
    assert graph.targets.tolist() == again.targets.tolist(), "the same chance gives the same graph"
    if shape != "chain":
        assert graph.turned().targets.tolist() == graph.targets.tolist(), "links go both ways"


@given(st.lists(st.integers(1, 6), max_size=8))
def test_groups_are_cliques_and_nothing_else(sizes: list[int]) -> None:
    graph = groups(sizes)
    whole = nx.disjoint_union_all([nx.complete_graph(s) for s in sizes]) if sizes else nx.empty_graph(0)
    assert [graph.to(i) for i in range(graph.size)] == [sorted(whole[i]) for i in range(sum(sizes))]


def test_the_links_of_a_random_graph_are_as_many_as_asked_for() -> None:
    """Both ways 3 x 4,000 ends; a Poisson number of pairs has a deviation of sqrt(6,000) pairs, i.e. 155 ends."""
    graph = scattered(4_000, 3, np.random.default_rng(0))
    assert abs(len(graph.targets) - 12_000) < 4 * 155
    one_way = scattered(4_000, 0.5, np.random.default_rng(1), both_ways=False)
    assert abs(len(one_way.targets) - 2_000) < 4 * np.sqrt(2_000)


@pytest.mark.parametrize(("name", "share"), [("karate", 29 / 34), ("davis", 0.75)])
def test_the_friendship_paradox_where_people_have_looked(name: graphs.Known, share: float) -> None:
    assert paradox(known(name)) == pytest.approx(share, abs=1e-12)


@given(st.integers(3, 30), st.integers(1, 8), st.integers(0, 9))
def test_there_is_no_paradox_where_all_have_as_many_friends(size: int, degree: int, seed: int) -> None:
    assert paradox(made("regular", size, np.random.default_rng(seed), degree=degree)) == 0


def test_observed_graphs_are_as_published() -> None:
    sizes = {n: (known(n).size, len(known(n).targets) // 2) for n in graphs.KNOWN}
    assert sizes == {"karate": (34, 78), "les_miserables": (77, 254), "davis": (32, 89), "florentine": (15, 20)}
    assert graphs.names("florentine")[0] == "Acciaiuoli"


@pytest.mark.parametrize("degree", [3, 4, 6])
def test_the_threshold_of_a_regular_graph(degree: int) -> None:
    graph = from_networkx(nx.random_regular_graph(degree, 60, seed=1))
    assert threshold(graph) == pytest.approx(1 / (degree - 1))


def test_who_stays_at_home_meets_the_household_alone() -> None:
    home, work = groups([2, 2]), made("full", 4, np.random.default_rng(0))
    contacts = Contacts({"home": Layer(home, 2.0, at_home=True), "work": Layer(work, 0.5)}, mixing=3.0)
    infectious, out = np.array([True, False, False, False]), np.array([True, True, True, False])
    met = contacts.exposure(infectious, out)
    assert met.tolist() == [1.0, 2 + 0.5 + 1, 0.5 + 1, 0]
    assert contacts.exposure(infectious, out, open_share=0).tolist() == [0, 2, 0, 0]
    assert contacts.exposure(infectious, np.array([False, True, True, True])).tolist() == [0, 2, 0, 0]


@given(some(), st.data())
def test_contacts_are_mutual(given_: tuple[int, list[tuple[int, int]]], data: st.DataObject) -> None:
    """On links that go both ways, i meets an infectious j exactly as often as j would meet an infectious i."""
    size, pairs = given_
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    contacts = Contacts({"work": Layer(linked(size, ends[:, 0], ends[:, 1], both_ways=True), 0.7)}, mixing=0.9)
    out = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    i, j = (data.draw(st.integers(0, size - 1)) for _ in range(2))
    only = np.eye(size, dtype=bool)
    assert contacts.exposure(only[j], out)[i] == pytest.approx(contacts.exposure(only[i], out)[j])


@given(st.floats(0, 50), st.floats(0, 5))
def test_a_chance_is_a_chance_and_small_ones_add_up(met: float, beta: float) -> None:
    chance = float(chance_of_infection(np.array([met]), beta)[0])
    assert 0 <= chance <= 1 and chance <= beta * met + 1e-12

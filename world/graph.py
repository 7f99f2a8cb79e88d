"""Graphs: who is linked to whom, as arrays that a world can snapshot and reckon with for all at once.

Networkx makes them; from then on a graph is two arrays (compressed rows), since a world asks for the neighbours of
thousands in every tick, and a snapshot has to hold it. It is imported only where a graph is made: the processes that
host agents know the rules of their world, but make no graphs.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

Shape = Literal["chain", "circle", "full", "caveman", "regular", "random", "small_world", "scale_free", "none"]
"""How a made graph is laid out."""
Known = Literal["karate", "les_miserables", "davis", "florentine"]
"""Graphs that people have observed, as networkx ships them."""

KNOWN: Mapping[Known, str] = {
    "karate": "karate_club_graph",
    "les_miserables": "les_miserables_graph",
    "davis": "davis_southern_women_graph",
    "florentine": "florentine_families_graph",
}
"""The functions of networkx that make them: Zachary 1977; Knuth 1993; Davis, Gardner and Gardner 1941; Breiger and
Pattison 1986."""


@dataclass(slots=True)
class Graph:
    """A directed graph of the nodes 0 to n - 1; undirected if every link goes both ways.

    The links of node i go to `targets[starts[i]:starts[i + 1]]`, ascending.
    """

    starts: np.ndarray
    """(n + 1,) int64."""
    targets: np.ndarray
    """(links,) int64."""

    @property
    def size(self) -> int:
        """How many nodes it has."""
        return len(self.starts) - 1

    def to(self, node: int) -> list[int]:
        """The nodes that `node` is linked to, ascending."""
        found: list[int] = self.targets[self.starts[node] : self.starts[node + 1]].tolist()
        return found

    def degrees(self) -> Ints:
        """(n,) how many links leave each node."""
        return np.diff(self.starts)

    def turned(self) -> "Graph":
        """The same graph with every link the other way round."""
        return linked(self.size, self.targets, self.sources())

    def sources(self) -> Ints:
        """(links,) where each link comes from, in the order of `targets`."""
        return np.repeat(np.arange(self.size), self.degrees())

    def reached(self, nodes: Ints) -> Ints:
        """Where the links of `nodes` lead, one entry per link, in the order of `nodes`: the cost is that of the links
        of these nodes alone, however large the graph is."""
        counts = self.starts[nodes + 1] - self.starts[nodes]
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        place = np.arange(total) - np.repeat(ends - counts, counts) + np.repeat(self.starts[nodes], counts)
        found: Ints = self.targets[place]
        return found

    def spread(self, weights: Floats) -> Floats:
        """(n,) what each node receives if every node sends its weight along each of its links."""
        active = np.flatnonzero(weights)
        sent = np.repeat(weights[active], self.starts[active + 1] - self.starts[active])
        return np.bincount(self.reached(active), weights=sent, minlength=self.size).astype(np.float64)


def linked(size: int, sources: Ints, targets: Ints, *, both_ways: bool = False) -> Graph:
    """A graph of `size` nodes from its links; doubles count once and nobody is linked to itself.

    >>> linked(3, np.array([0, 0, 1]), np.array([1, 1, 1])).to(0)
    [1]
    """
    sources, targets = np.asarray(sources, dtype=np.int64), np.asarray(targets, dtype=np.int64)
    if both_ways:
        sources, targets = np.concatenate([sources, targets]), np.concatenate([targets, sources])
    keys = np.unique((sources * size + targets)[sources != targets])
    sources, targets = np.divmod(keys, size) if size else (keys, keys)
    return Graph(np.searchsorted(sources, np.arange(size + 1)), targets)


def from_networkx(graph: Any) -> Graph:
    """A networkx graph, its nodes numbered in its own order; an undirected one is linked both ways."""
    number = {node: i for i, node in enumerate(graph)}
    pairs = np.array([(number[a], number[b]) for a, b in graph.edges()], dtype=np.int64).reshape(-1, 2)
    return linked(len(number), pairs[:, 0], pairs[:, 1], both_ways=not graph.is_directed())


def known(name: Known) -> Graph:
    """A graph that people have observed."""
    return from_networkx(_observed(name))


def _observed(name: Known) -> Any:
    import networkx as nx

    return getattr(nx, KNOWN[name])()


def names(name: Known) -> list[str]:
    """What the nodes of an observed graph are called, in their order."""
    return [str(node) for node in _observed(name)]


def made(shape: Shape, size: int, rng: np.random.Generator, *, degree: float = 4, rewired: float = 0.1) -> Graph:
    """A graph of `size` nodes of some shape.

    `degree` is the mean number of links of a node (caveman: the size of a cave), `rewired` the share of links that a
    small world has drawn anew. A chain leads from each to the next; all other shapes are linked both ways.
    """
    import networkx as nx

    nodes = np.arange(size)
    links = max(1, round(degree))
    if shape == "chain":
        return linked(size, nodes[:-1], nodes[1:])
    if shape == "random":
        return scattered(size, degree, rng)
    makers: dict[str, Callable[[], Any]] = {
        "none": lambda: nx.empty_graph(size),
        "circle": lambda: nx.cycle_graph(size) if size > 1 else nx.empty_graph(size),
        "full": lambda: nx.complete_graph(size),
        "caveman": lambda: _caves(size, links),
        "regular": lambda: nx.random_regular_graph(_fit(links, size), size, seed=rng),
        "small_world": lambda: nx.watts_strogatz_graph(size, min(links, size), rewired, seed=rng),
        "scale_free": lambda: _scale_free(size, links, rng),
    }
    return from_networkx(makers[shape]())


def scattered(size: int, degree: float, rng: np.random.Generator, *, both_ways: bool = True) -> Graph:
    """Erdos and Renyi's graph, near enough: links between random pairs, `degree` of them at each node on average, so
    that their number is Poisson."""
    count = rng.poisson(size * degree / (2 if both_ways else 1)) if size > 1 else 0
    return linked(size, rng.integers(size, size=count), rng.integers(size, size=count), both_ways=both_ways)


def groups(sizes: Iterable[int]) -> Graph:
    """Cliques one after the other: households, cabins, caves."""
    sizes = np.fromiter(sizes, dtype=np.int64)
    of = np.repeat(np.arange(len(sizes)), sizes)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    size = len(of)
    rows = np.repeat(np.arange(size), sizes[of]) if size else np.empty(0, dtype=np.int64)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes[of]) - sizes[of], sizes[of]) if size else rows
    return linked(size, rows, np.repeat(first, sizes[of]) + within if size else rows)


def _fit(degree: int, size: int) -> int:
    """A degree that a regular graph of this size can have: below it, and with an even number of ends."""
    degree = min(degree, max(size - 1, 0))
    return degree - 1 if degree * size % 2 else degree


def _scale_free(size: int, degree: int, rng: np.random.Generator) -> Any:
    """Barabasi and Albert's graph: each newcomer brings half of the mean degree."""
    import networkx as nx

    brings = min(max(1, degree // 2), max(size - 1, 0))
    return nx.barabasi_albert_graph(size, brings, seed=rng) if brings else nx.empty_graph(size)


def _caves(size: int, cave: int) -> Any:
    """Cliques, each with one link to the next around a circle; the last one may be smaller."""
    import networkx as nx

    graph = nx.empty_graph(size)
    caves = [range(at, min(at + cave, size)) for at in range(0, size, cave)]
    for members in caves:
        graph.add_edges_from((a, b) for a in members for b in members if a < b)
    if len(caves) > 1:
        graph.add_edges_from((here[-1], there[0]) for here, there in zip(caves, [*caves[1:], caves[0]], strict=True))
    return graph


def neighbour_means(graph: Graph) -> Floats:
    """(n,) the mean degree of each node's neighbours; not a number for nodes without any."""
    degrees = graph.degrees().astype(float)
    sums = np.bincount(graph.sources(), weights=degrees[graph.targets], minlength=graph.size)
    means: Floats = np.divide(sums, degrees, out=np.full(graph.size, np.nan), where=degrees > 0)
    return means


def paradox(graph: Graph) -> float:
    """The friendship paradox (Feld 1991): the share of nodes with links whose neighbours' mean degree exceeds their
    own.

    >>> round(paradox(known("karate")), 3)
    0.853
    """
    degrees, means = graph.degrees(), neighbour_means(graph)
    return float((means > degrees + 1e-12).sum() / max(1, (degrees > 0).sum()))


def threshold(graph: Graph) -> float:
    """The transmissibility above which an outbreak on an uncorrelated graph can be large: <k> / (<k^2> - <k>).

    Newman 2002. Infinite where nobody has two neighbours.
    """
    degrees = graph.degrees().astype(float)
    beyond = float((degrees**2).mean() - degrees.mean())
    return float(degrees.mean()) / beyond if beyond > 0 else float("inf")


__all__ = [
    "KNOWN",
    "Graph",
    "Known",
    "Shape",
    "from_networkx",
    "groups",
    "known",
    "linked",
    "made",
    "names",
    "neighbour_means",
    "paradox",
    "scattered",
    "threshold",
]

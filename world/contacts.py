"""A contact graph: who meets whom, layer by layer (household, work, street), and what passes at a meeting."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ethnos.world.graph import Graph

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(slots=True)
class Layer:
    """One setting in which people meet, the same people every day."""

    graph: Graph
    weight: float = 1.0
    """Contacts a day that one link stands for."""
    at_home: bool = False
    """Whether these contacts go on when people stay at home."""


@dataclass(slots=True)
class Contacts:
    """Layers of lasting contacts, and chance meetings with anybody who is out."""

    layers: dict[str, Layer] = field(default_factory=dict)
    mixing: float = 0.0
    """Chance meetings a day of somebody who is out."""

    def exposure(self, infectious: Bools, out: Bools, open_share: float = 1.0) -> Floats:
        """(n,) contacts with infectious people that each has in a day.

        Who is not `out` meets nobody but in the layers at home. `open_share` scales all contacts outside.
        """
        inside = infectious.astype(float)
        outside = inside * out
        met = np.zeros(len(infectious))
        for layer in self.layers.values():
            if layer.at_home:
                met += layer.weight * layer.graph.spread(inside)
            elif open_share:
                met += open_share * layer.weight * layer.graph.spread(outside) * out
        if self.mixing and (abroad := int(out.sum())):
            met += open_share * self.mixing * outside.sum() / abroad * out
        return met


def chance_of_infection(met: Floats, beta: float) -> Floats:
    """1 - exp(-beta k): the chance to be infected by `met` contacts, each with the hazard `beta`."""
    return -np.expm1(-beta * met)


__all__ = ["Contacts", "Layer", "chance_of_infection"]

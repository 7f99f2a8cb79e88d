"""Layers of prompts by the hash of their text: what a record stores once and refers to ever after."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from ethnos.actors.inference.request import Layer

VERSIONS = {
    "rules": 1,
    "cohort": 1,
    "persona": 1,
    "notes": 1,
    "history": 1,
    "recall": 1,
    "observation": 1,
    "retry": 1,
}
"""How each layer is written; raised whenever its wording or order changes, so that runs can be told apart."""

OF_ONE_TURN = frozenset({"history", "recall", "observation", "retry"})
"""Layers that are hardly ever the same twice: not worth remembering that they were sent."""

Mark = tuple[str, int, str]
"""(name, version, hash): what a decision's provenance says of a layer."""


def hash_of(text: str) -> str:
    """BLAKE2b of 64 bits, as 16 hexadecimal digits."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def mark(layer: Layer) -> Mark:
    return layer.name, VERSIONS.get(layer.name, 0), hash_of(layer.text)


@dataclass(frozen=True, slots=True)
class Text:
    """A layer for the record."""

    hash: str
    name: str
    text: str


class LayerStore:
    """Hands out each layer's text once: one of it per process, whatever the number of minds.

    It remembers the hashes of up to `most` layers that come again; of those beyond, a text may be handed out twice.
    """

    def __init__(self, most: int = 65_536) -> None:
        self._most = most
        self._sent: OrderedDict[str, None] = OrderedDict()
        self._fresh: list[Text] = []

    def put(self, layers: Iterable[Layer]) -> list[Mark]:
        """Take layers that were sent to a model; returns their marks."""
        marks = []
        for layer in layers:
            name, version, digest = mark(layer)
            marks.append((name, version, digest))
            if name in OF_ONE_TURN or digest not in self._sent:
                self._fresh.append(Text(digest, name, layer.text))
            if name not in OF_ONE_TURN:
                self._remember(digest)
        return marks

    def _remember(self, digest: str) -> None:
        self._sent[digest] = None
        self._sent.move_to_end(digest)
        if len(self._sent) > self._most:
            self._sent.popitem(last=False)

    def take(self) -> list[Text]:
        """The texts put since the last call and never handed out before."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def forget(self) -> None:
        """Hand everything out again: what was taken may not have reached the record."""
        self._sent.clear()
        self._fresh.clear()


STORE = LayerStore()
"""This process's own."""

__all__ = ["OF_ONE_TURN", "STORE", "VERSIONS", "LayerStore", "Mark", "Text", "hash_of", "mark"]

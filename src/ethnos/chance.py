"""Chance that is addressed, not consumed.

Every draw belongs to an address (seed, purpose, agent, tick) of a counter-based generator (Philox 4x64,
Salmon et al. 2011), so it comes out the same in any process and any order, and a branch of a run meets the
same luck wherever nothing was changed. There is no global generator.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=1024)
def _key(seed: int, purpose: str) -> tuple[int, int]:
    digest = blake2b(f"{seed}/{purpose}".encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def generator(seed: int, purpose: str, *, agent: int = 0, tick: int = 0) -> np.random.Generator:
    """The generator that lives at one address. Asking twice gives the same draws twice.

    The lower two counter words count the draws, so streams of 2**128 draws never overlap.
    """
    key = np.array(_key(seed, purpose), dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, agent, tick]))


def pick(seed: int, purpose: str, sides: int, *, agent: int = 0, tick: int = 0) -> int:
    """One of 0 to `sides` - 1. For a single draw this is ten times cheaper than a generator."""
    low, high = _key(seed, purpose)
    digest = blake2b(b"%d %d %d %d" % (low, high, agent, tick), digest_size=8).digest()
    return int.from_bytes(digest, "little") * sides >> 64


def uniforms(seed: int, purpose: str, places: Sequence[int] | NDArray[np.int64], *, tick: int) -> NDArray[np.float64]:
    """One number in [0, 1) for each place (an agent's id, a cell's index), whichever others are asked for.

    Much cheaper than a generator per place: about 5 ns per unit of the largest place.
    """
    where = np.asarray(places, dtype=np.int64)
    if where.size == 0:
        return np.empty(0)
    return generator(seed, purpose, tick=tick).random(int(where.max()) + 1)[where]


def order(seed: int, purpose: str, ids: Sequence[int], *, tick: int) -> list[int]:
    """`ids` in an order drawn for this tick. The relative order of any two does not depend on the others."""
    where = np.asarray(sorted(ids), dtype=np.int64)
    draws = uniforms(seed, purpose, where, tick=tick)
    return [int(i) for i in where[np.argsort(draws, kind="stable")]]

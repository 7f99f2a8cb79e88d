"""Traits that children inherit, slightly changed, and what beings are told to live for.

The traits are those of Paolo et al. (2026): the five-factor model with honesty and dominance, and fertility.
"""

from collections.abc import Iterator, Mapping

import numpy as np

GENES = {
    "honesty": (-1.0, 1.0),
    "neuroticism": (-1.0, 1.0),
    "extraversion": (-1.0, 1.0),
    "agreeableness": (-1.0, 1.0),
    "conscientiousness": (-1.0, 1.0),
    "openness": (-1.0, 1.0),
    "dominance": (-1.0, 1.0),
    "fertility": (0.5, 1.0),
}
"""Each trait's least and greatest value."""

MOTIVATIONS = {
    "base": "You want to live on, in yourself and in those who come after you.",
    "creative": "You want to make things that are new, and to build on what others have made.",
}

Persona = dict[str, float | str]


def drawn(rng: np.random.Generator) -> Persona:
    """The genome of a founder, every trait uniform in its range."""
    low, high = np.array(list(GENES.values())).T
    return {g: round(float(v), 3) for g, v in zip(GENES, rng.uniform(low, high), strict=True)}


def inherited(persona: Mapping[str, float | str], rng: np.random.Generator, rate: float, step: float) -> Persona:
    """A child's persona: its parent's, each gene changed with chance `rate` by a normal step, in range."""
    child = dict(persona)
    chances, shifts = rng.random(len(GENES)), rng.normal(0, step, len(GENES))
    for gene, chance, shift in zip(GENES, chances.tolist(), shifts.tolist(), strict=True):
        value = child.get(gene)
        if chance < rate and isinstance(value, (int, float)):
            low, high = GENES[gene]
            child[gene] = round(min(high, max(low, value + shift)), 3)
    return child


def problems(persona: Mapping[str, float | str]) -> Iterator[str]:
    """What is wrong with the traits that a persona sets."""
    for gene in (g for g in persona if g in GENES):
        value, (low, high) = persona[gene], GENES[gene]
        if not (isinstance(value, (int, float)) and low <= value <= high):
            yield f"{gene} is a number from {low} to {high}, not {value!r}"

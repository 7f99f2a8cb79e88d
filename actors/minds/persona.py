"""How a persona reaches the prompt: a documented mapping from traits to sentences.

A trait is a number in [-1, 1]; its sign picks a sentence, its size an adverb. Below 0.15 nothing is said, since
nothing is to be noticed; then "slightly", from 0.4 none, from 0.7 "very". (That models follow such graded
adjectives was shown by Serapio-Garcia et al. 2023.) Fertility in [0.5, 1] is stretched to [-1, 1] first. Numbers
without a sentence here are told as they are; texts (a motivation, say) come first, word for word, so that agents
who share them share the beginning of the layer.
"""

from collections.abc import Mapping

from ethnos.actors.minds.text import neutralise

Persona = Mapping[str, float | str]

TRAITS: dict[str, tuple[str, str]] = {
    "honesty": (
        "{very}honest: you say what you believe to be true, and you keep your word",
        "{very}deceitful: you mislead others when it serves you",
    ),
    "neuroticism": (
        "{very}anxious: you expect the worst, and setbacks upset you",
        "{very}calm: setbacks hardly trouble you",
    ),
    "extraversion": (
        "{very}outgoing: you seek company and like to talk",
        "{very}reserved: you keep to yourself and say little",
    ),
    "agreeableness": (
        "{very}kind: you help, share and trust",
        "{very}hard-hearted: you put your own gain before that of others, and distrust them",
    ),
    "conscientiousness": (
        "{very}conscientious: you plan ahead and finish what you begin",
        "{very}careless: you act on impulse and drop what you began",
    ),
    "openness": (
        "{very}curious: you like what is new, and try things out",
        "{very}conventional: you stay with what has worked",
    ),
    "dominance": (
        "{very}domineering: you want to lead and to have your way",
        "{very}submissive: you follow others and give way",
    ),
    "fertility": (
        "{very}eager to have children",
        "{very}reluctant to have children",
    ),
}
"""For each trait what a high and what a low value says."""

RANGES: dict[str, tuple[float, float]] = {"fertility": (0.5, 1.0)}
"""Traits with another range than [-1, 1]."""

STEPS = ((0.7, "very "), (0.4, ""), (0.15, "slightly "))
"""From which size on which adverb is used."""


def sentence(trait: str, value: float) -> str:
    """What a trait's value says of its bearer; empty if nothing is to be noticed."""
    low, high = RANGES.get(trait, (-1.0, 1.0))
    size = (value - low) / (high - low) * 2 - 1
    positive, negative = TRAITS[trait]
    adverb = next((word for least, word in STEPS if abs(size) >= least), None)
    return "" if adverb is None else (positive if size > 0 else negative).format(very=adverb)


def lines(name: str, persona: Persona) -> list[str]:
    """A persona in lines: its texts, the name, traits with sentences in the order above, other numbers by name."""
    texts = [f"{_label(k)}: {_one_line(v)}" for k, v in sorted(persona.items()) if isinstance(v, str) and v]
    numbers = {k: v for k, v in persona.items() if isinstance(v, int | float)}
    known = [s for t in TRAITS if t in numbers and (s := sentence(t, numbers[t]))]
    others = [f"Your {_label(k).lower()}: {v:g}." for k, v in sorted(numbers.items()) if k not in TRAITS]
    return [*texts, f"Your name is {_one_line(name)}.", *(f"You are {s}." for s in known), *others]


def _label(key: str) -> str:
    return _one_line(key.replace("_", " ")).capitalize()


def _one_line(text: str) -> str:
    return " ".join(neutralise(text).split())


__all__ = ["RANGES", "STEPS", "TRAITS", "Persona", "lines", "sentence"]

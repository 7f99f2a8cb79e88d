"""Minds: what turns a turn into a decision.

Scripted minds come with their scenarios. Here are those that think with a language model, that answer from a
record, and that choose between two others; and what they are made of: prompts in layers, memory, answers that are
held against a schema.
"""

from ethnos.actors.minds.layers import STORE, LayerStore
from ethnos.actors.minds.llm import Complete, LLMMind, Settings
from ethnos.actors.minds.memory import MemoryLimits, inherit
from ethnos.actors.minds.recorded import RecordedMind
from ethnos.actors.minds.router import Router, Rule

__all__ = [
    "STORE",
    "Complete",
    "LLMMind",
    "LayerStore",
    "MemoryLimits",
    "RecordedMind",
    "Router",
    "Rule",
    "Settings",
    "inherit",
]

"""The model in the box, for real. Skipped where it is not installed (`ethnos models install smollm2`)."""

import asyncio
import json

import psutil
import pytest

from ethnos import models
from ethnos.actors.inference.engines import gguf
from ethnos.actors.inference.engines.embedded import context_length
from ethnos.actors.inference.engines.make import make_engines
from ethnos.actors.inference.pool import Pool
from ethnos.actors.inference.request import Layer, Reply, Request, Sampling
from ethnos.actors.inference.settings import Settings
from ethnos.engines import EmbeddedSpec
from ethnos.errors import EthnosError

ACTIONS = ["eat", "move", "rest", "speak"]
SCHEMA = {
    "type": "object",
    "properties": {"action": {"enum": ACTIONS}, "reason": {"type": "string", "maxLength": 40}},
    "required": ["action", "reason"],
    "additionalProperties": False,
}
RULES = "You live on a grid. Each turn you eat, move, rest or speak, and answer with JSON. " * 6


def _missing() -> str:
    pytest.importorskip("xllamacpp")
    try:
        models.locate("smollm2")
    except EthnosError as error:
        return str(error)
    return ""


pytestmark = [pytest.mark.model, pytest.mark.skipif(bool(_missing()), reason=_missing() or "installed")]


def think(agent: int, tick: int = 0, deadline: float = 60.0, most: int = 80, schema: dict | None = SCHEMA) -> Request:
    layers = (
        Layer("rules", RULES),
        Layer("persona", f"You are agent {agent}."),
        Layer("observation", f"Tick {tick}: food lies beside you.", "user"),
    )
    return Request(tick, agent, 0, layers, schema, Sampling(0.7, 0.95, most, seed=11 * agent + tick), deadline)


async def society(slots: int) -> tuple[list[Reply], dict]:
    replies = []
    async with Pool(make_engines([EmbeddedSpec(slots=slots, threads=1)])) as pool:
        for tick in range(2):
            replies += [await pool.complete(think(agent, tick)) for agent in range(3)]
        return replies, pool.stats()


async def test_it_decides_within_the_schema_and_repeats_itself():
    first, stats = await society(slots=1)
    second, _ = await society(slots=1)
    for reply in first:
        assert not reply.error and reply.model == "SmolLM2-135M-Instruct.Q4_1"
        if reply.finish == "stop":
            assert json.loads(reply.text)["action"] in ACTIONS
    assert any(reply.finish == "stop" for reply in first)
    assert [r.text for r in first] == [r.text for r in second]
    assert stats["cached_share"] > 0.4 and stats["spent"]["completion_tokens"] > 0


async def test_together_late_refused_and_risen_again():
    engine = make_engines([EmbeddedSpec(slots=2, name="box", threads=1)])[0]
    quick = Settings(first_recheck_s=0.05)
    async with Pool([engine], settings=quick) as pool:
        replies = await pool.complete_many([think(agent) for agent in range(4)])
        assert not any(r.error for r in replies)

        refused = await pool.complete(think(0, 1, schema={"type": "nonsense"}))
        assert "HTTP 400" in refused.error

        late = await pool.complete(think(0, 2, deadline=0.4, most=2000, schema=None))
        assert late.error == "late"
        async with asyncio.timeout(20):
            assert not (await pool.complete(think(1, 2))).error, "the slot is free again"

        psutil.Process(engine.pid).kill()  # type: ignore[attr-defined]
        assert not (await pool.complete(think(2, 2))).error
        assert pool.stats()["engines"]["box"]["deaths"] == 1
        pid = engine.pid  # type: ignore[attr-defined]
        assert "<|im_start|>" in pool.special_tokens()
    assert not psutil.pid_exists(pid)


def test_its_file_tells_about_it():
    path = models.locate("smollm2")
    assert {"<|im_start|>", "<|im_end|>", "<|endoftext|>"} <= gguf.special_tokens(path)
    assert context_length(path) == 8192

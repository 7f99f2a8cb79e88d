"""The OpenAI engine, against an endpoint that misbehaves."""

import asyncio
import time

import pytest

pytest.importorskip("openai")

from ethnos.actors.inference.engines.make import make_engines
from ethnos.actors.inference.engines.openai import OpenAIEngine
from ethnos.actors.inference.pool import Pool
from ethnos.actors.inference.settings import Settings
from ethnos.engines import OpenAISpec
from ethnos.errors import EthnosError

from .server import Server
from .stub import ask

QUICK = Settings(linger_s=0.001, first_recheck_s=0.02, longest_recheck_s=0.1, health_timeout_s=1.0)
KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def pool(server: Server, **settings) -> Pool:
    spec = OpenAISpec(base_url=f"{server.url}/v1", model="tiny", **settings)
    return Pool([OpenAIEngine(spec, "openai-0")], settings=QUICK)


async def test_a_society_is_answered():
    async with Server() as server, pool(server) as p:
        replies = await p.complete_many([ask(agent) for agent in range(40)])
        assert [r.text for r in replies] == [f"to 0-{agent}-0" for agent in range(40)]
        first = replies[0]
        assert (first.engine, first.model, first.finish) == ("openai-0", "tiny", "stop")
        assert (first.prompt_tokens, first.cached_tokens, first.completion_tokens) == (100, 40, 10)
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


async def test_what_is_asked():
    async with Server() as server, pool(server) as p:
        await p.complete(ask(schema={"type": "object"}, seed=5, most=33))
        body = server.bodies[0]
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert (body["model"], body["max_tokens"], body["seed"]) == ("tiny", 33, 5)
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}


async def test_what_an_endpoint_does_not_take_is_left_out():
    settings = {"structured": "json_object", "max_tokens_key": "max_completion_tokens", "omit": ["temperature", "seed"]}
    async with Server() as server, pool(server, extra={"reasoning_effort": "low"}, **settings) as p:
        await p.complete(ask(schema={"type": "object"}, seed=5))
        body = server.bodies[0]
    assert not {"temperature", "seed", "max_tokens"} & set(body)
    assert body["max_completion_tokens"] == 20 and body["reasoning_effort"] == "low"
    assert body["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize("fault", ["429", "429 words", "500", "503", "cut", "not json", "wrong shape", "empty"])
async def test_every_agent_gets_its_own_answer_whatever_happens_first(fault):
    async with Server(fault) as server, pool(server) as p:
        replies = await p.complete_many([ask(agent) for agent in range(6)])
        assert [r.text for r in replies] == [f"to 0-{agent}-0" for agent in range(6)], [r.error for r in replies]
        assert len(server.bodies) == 7 and len(server.served) == 6, "only what failed is repeated"


async def test_rate_limits_are_waited_for():
    async with Server("429") as server, pool(server) as p:
        began = time.monotonic()
        assert (await p.complete(ask())).text
        assert time.monotonic() - began >= 0.3


async def test_a_hung_call_is_late_and_cut_off():
    async with Server("hang") as server, pool(server) as p:
        replies = await p.complete_many([ask(agent, deadline=0.4) for agent in range(4)])
        assert sorted(r.error for r in replies) == ["", "", "", "late"]
        await asyncio.sleep(0.2)
        assert server.hung_up == 1


async def test_a_slow_stream_is_read_to_its_end():
    async with Server("slow") as server, pool(server) as p:
        assert (await p.complete(ask())).text == "to 0-0-0"


async def test_another_models_answer_is_named_or_refused():
    async with Server("other_model") as server, pool(server) as p:
        reply = await p.complete(ask())
        assert reply.model == "somebody-else-7b" and reply.detail == {"asked_model": "tiny"}
    async with Server("other_model") as server, pool(server, any_model=False) as p:
        reply = await p.complete(ask())
        assert (reply.model, reply.attempts) == ("tiny", 2)


async def test_empty_and_endless_texts_are_the_models_own_affair():
    async with Server("empty text", "megabyte") as server, pool(server) as p:
        first, second = await p.complete(ask(1)), await p.complete(ask(2))
        assert (first.text, first.error) == ("", "")
        assert len(second.text) == 200_000 and second.finish == "length"


async def test_a_key_is_never_shown(caplog):
    async with Server(always="401") as server, pool(server) as p:
        reply = await p.complete(ask())
        assert "Incorrect API key provided: [key]" in reply.error
        assert KEY not in caplog.text + str(p.stats()) + str(reply)


async def test_a_missing_key_is_said_before_anything_starts(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(EthnosError, match="OPENAI_API_KEY"):
        make_engines([OpenAISpec(model="tiny")])


async def test_death_and_return():
    async with Server() as server, pool(server) as p:
        assert (await p.complete(ask(1))).text
        await server.down()
        waiting = asyncio.create_task(p.complete(ask(2)))
        await asyncio.sleep(0.3)
        assert p.stats()["engines"]["openai-0"]["down"] and not waiting.done()
        await server.up()
        assert (await waiting).text == "to 0-2-0"

"""The SGLang engine, against a server that speaks like SGLang and misbehaves."""

import asyncio
import time

import pytest
from pydantic import TypeAdapter, ValidationError

from ethnos.actors.inference.engines.make import make_engines
from ethnos.actors.inference.engines.managed import SglangServer, command, key_file
from ethnos.actors.inference.engines.sglang import SglangEngine, parse_metrics
from ethnos.actors.inference.pool import Pool
from ethnos.actors.inference.settings import Settings
from ethnos.engines import EngineSpec, ManagedSglang, SglangSpec
from ethnos.errors import EthnosError

from .server import Server
from .stub import ask

QUICK = Settings(linger_s=0.001, first_recheck_s=0.02, longest_recheck_s=0.1, health_timeout_s=1.0)


def engine(server: Server, **settings) -> SglangEngine:
    return SglangEngine(SglangSpec(url=server.url, **settings), "sglang-0")


def pool(server: Server, **settings) -> Pool:
    return Pool([engine(server, **settings)], settings=QUICK)


def texts(server: Server) -> list[str]:
    return [t for body in server.bodies if isinstance(body["text"], list) for t in body["text"]]


async def test_a_wave_goes_in_one_call_and_every_answer_comes_home():
    async with Server() as server, pool(server) as p:
        replies = await p.complete_many([ask(agent) for agent in range(100)])
        assert [r.text for r in replies] == [f"to 0-{agent}-0" for agent in range(100)]
        first = replies[7]
        assert (first.engine, first.model, first.finish) == ("sglang-0", "tiny", "stop")
        assert (first.prompt_tokens, first.cached_tokens, first.completion_tokens) == (100, 40, 10)
        assert len(server.bodies) == 2, "one warm-up, one wave"
        assert server.bodies[0]["sampling_params"]["max_new_tokens"] == 1
        assert "asked" not in server.bodies[0]["text"] and "rules of the world" in server.bodies[0]["text"]


async def test_the_prompt_has_the_models_own_layout():
    async with Server() as server, pool(server, warm_up=False) as p:
        await p.complete(ask(5))
        assert texts(server) == [
            "<|im_start|>system\nrules of the world\n\nYou are agent 5.<|im_end|>\n"
            "<|im_start|>user\nasked=0-5-0;<|im_end|>\n<|im_start|>assistant\n"
        ]
        assert {"<|im_start|>", "<|im_end|>", "</s>"} <= p.special_tokens()


async def test_a_template_without_system_gets_it_from_the_user():
    async with Server(system=False) as server, pool(server, warm_up=False) as p:
        await p.complete(ask(5))
        (text,) = texts(server)
        assert text.startswith("<|im_start|>user\nrules of the world\n\nYou are agent 5.\n\nasked=0-5-0;<|im_end|>")


async def test_what_the_tokenizer_puts_first_is_not_put_twice():
    async with Server(bos=True) as server, pool(server, warm_up=False) as p:
        await p.complete(ask())
        assert texts(server)[0].startswith("<|im_start|>system")
        assert "<s>" in p.special_tokens()


async def test_a_layout_that_cannot_be_built_from_text_is_asked_for_as_tokens():
    class Odd(Server):
        def _encode(self, text, start=False):
            return [
                t + (7 if "<|im_start|>" in text and start is None else 0) for t in super()._encode(text, bool(start))
            ]

        async def tokenize(self, request):
            body = await request.json()
            if "prompt" in body and body["prompt"]:
                return await super().tokenize(_Fake({"prompt": "!" + body["prompt"]}))
            return await super().tokenize(request)

    async with Odd() as server, pool(server, warm_up=False) as p:
        replies = await p.complete_many([ask(agent) for agent in range(3)])
        assert [r.text for r in replies] == [f"to 0-{agent}-0" for agent in range(3)]
        assert all("input_ids" in body and "text" not in body for body in server.bodies)


class _Fake:
    def __init__(self, body):
        self._body = body

    async def json(self):
        return self._body


async def test_a_template_file_and_a_plain_layout(tmp_path):
    pytest.importorskip("jinja2")
    path = tmp_path / "chat.jinja"
    path.write_text("{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}[me]")
    async with Server() as server:
        async with pool(server, warm_up=False, chat_template=path) as p:
            await p.complete(ask(1))
        async with pool(server, warm_up=False, layout="plain") as p:
            await p.complete(ask(2))
        first, second = texts(server)
    assert first == "[system] rules of the world\n\nYou are agent 1.\n[user] asked=0-1-0;\n[me]"
    assert second.startswith("### System\nrules") and second.endswith("asked=0-2-0;\n\n### Assistant\n")


async def test_template_code_in_an_agents_text_is_text(tmp_path):
    pytest.importorskip("jinja2")
    path = tmp_path / "chat.jinja"
    path.write_text("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    async with Server() as server, pool(server, warm_up=False, chat_template=path) as p:
        await p.complete(ask(head="{{ 7 * 7 }} {% for %} ETHNOS1TEXT"))
        assert "{{ 7 * 7 }} {% for %} ETHNOS1TEXT" in texts(server)[0]


async def test_schema_and_sampling_reach_the_server():
    async with Server() as server, pool(server, warm_up=False, sampling={"top_k": 20}) as p:
        await p.complete(ask(schema={"type": "object"}, seed=5, most=77))
        (params,) = server.bodies[0]["sampling_params"]
    assert params["json_schema"] == '{"type":"object"}' and params["max_new_tokens"] == 77 and params["top_k"] == 20
    assert "sampling_seed" not in params, "a server that does not keep seeds is not told one"


async def test_seeds_go_to_a_deterministic_server_and_min_p_never():
    async with Server(info={"enable_deterministic_inference": True}) as server:
        async with pool(server, warm_up=False) as p:
            await p.complete(ask(seed=2**40 + 5))
            assert server.bodies[0]["sampling_params"][0]["sampling_seed"] == 5
        with pytest.raises(EthnosError, match="min_p"):
            async with pool(server, sampling={"min_p": 0.1}):
                pass


async def test_one_bad_schema_does_not_spoil_the_batch():
    async with Server() as server, pool(server, warm_up=False) as p:
        schemas = [{"type": "nonsense"} if agent == 3 else {"type": "object"} for agent in range(8)]
        replies = await p.complete_many([ask(agent, schema=s) for agent, s in enumerate(schemas)])
        assert [bool(r.error) for r in replies] == [agent == 3 for agent in range(8)]
        assert "bad schema" in replies[3].error
        assert [r.text for r in replies if not r.error] == [f"to 0-{a}-0" for a in range(8) if a != 3]
        assert sorted(server.served) == sorted(f"0-{a}-0" for a in range(8) if a != 3), "nobody is served twice"
        assert len({str(body["rid"]) for body in server.bodies}) == len(server.bodies)


TRANSIENT = ["429", "429 words", "500", "503", "cut", "not json", "wrong shape", "empty", "other request", "ended"]


@pytest.mark.parametrize("fault", TRANSIENT)
async def test_every_agent_gets_its_own_answer_whatever_happens_first(fault):
    async with Server(fault) as server, pool(server, warm_up=False) as p:
        replies = await p.complete_many([ask(agent) for agent in range(6)])
        assert [r.text for r in replies] == [f"to 0-{agent}-0" for agent in range(6)], [r.error for r in replies]
        assert all(r.attempts == 2 for r in replies)


async def test_what_came_before_the_cut_is_kept():
    async with Server("cut midway") as server, pool(server, warm_up=False) as p:
        replies = await p.complete_many([ask(agent) for agent in range(8)])
        assert [r.text for r in replies] == [f"to 0-{agent}-0" for agent in range(8)]
        assert sorted(r.attempts for r in replies) == [1] * 4 + [2] * 4
        assert len(server.bodies[1]["rid"]) == 4


async def test_rate_limits_are_waited_for():
    async with Server("429") as server, pool(server, warm_up=False) as p:
        began = time.monotonic()
        assert (await p.complete(ask())).text
        assert time.monotonic() - began >= 0.3


async def test_a_slow_stream_delivers_what_is_ready():
    async with Server("slow") as server, pool(server, warm_up=False) as p:
        arrived: list[float] = []

        async def one(agent: int) -> None:
            await p.complete(ask(agent))
            arrived.append(time.monotonic())

        await asyncio.gather(*(one(agent) for agent in range(6)))
        assert len(server.bodies) == 1 and arrived[-1] - arrived[0] > 0.1


async def test_a_hung_call_is_late_and_cut_off():
    async with Server("hang") as server, pool(server, warm_up=False) as p:
        began = time.monotonic()
        replies = await p.complete_many([ask(agent, deadline=0.3) for agent in range(4)])
        assert time.monotonic() - began < 15 and {r.error for r in replies} == {"late"}
        await asyncio.sleep(0.2)
        assert server.hung_up == 1 and len(server.aborted) == 4
        assert all(rid.endswith(".") for rid in server.aborted)
        assert (await p.complete(ask(9))).text == "to 0-9-0"


async def test_empty_and_endless_texts_are_the_models_own_affair():
    async with Server("empty text", "megabyte") as server, pool(server, warm_up=False) as p:
        first, second = await p.complete(ask(1)), await p.complete(ask(2))
        assert (first.text, first.error) == ("", "")
        assert len(second.text) == 200_000 and second.finish == "length"


async def test_a_key_is_sent_and_never_shown(monkeypatch, caplog):
    monkeypatch.setenv("SGL_KEY", "sesame-open-1234")
    async with Server(always="401") as server, pool(server, warm_up=False, api_key_env="SGL_KEY") as p:
        reply = await p.complete(ask())
        assert server.headers[0]["Authorization"] == "Bearer sesame-open-1234"
        assert "Incorrect API key" in reply.error
        assert "sesame" not in reply.error + str(reply.detail) + caplog.text + str(p.stats())


async def test_redirects_are_not_followed():
    async with Server(always="redirect") as server, pool(server, warm_up=False) as p:
        assert "HTTP 307" in (await p.complete(ask())).error


async def test_death_and_return():
    async with Server() as server, pool(server) as p:
        assert (await p.complete(ask(1))).text
        await server.down()
        waiting = asyncio.create_task(p.complete(ask(2)))
        await asyncio.sleep(0.2)
        assert p.stats()["engines"]["sglang-0"]["down"] and not waiting.done()
        await server.up()
        assert (await waiting).text == "to 0-2-0"


async def test_copies_have_lanes_of_their_own():
    async with Server() as server:
        engines = make_engines([SglangSpec(url=server.url, dp=2, name="s")])
        assert [e.name for e in engines] == ["s.0", "s.1"]
        async with Pool(engines, settings=QUICK) as p:
            await p.complete_many([ask(agent) for agent in range(200)])
        assert {body["routed_dp_rank"] for body in server.bodies} == {0, 1}


async def test_a_router_gets_one_request_a_call():
    async with Server() as server, pool(server, router=True, layout="plain") as p:
        replies = await p.complete_many([ask(agent) for agent in range(5)])
        assert [r.text for r in replies] == [f"to 0-{agent}-0" for agent in range(5)]
        assert len(server.bodies) == 5
        assert all(isinstance(b["text"], str) and "rid" not in b and not b["stream"] for b in server.bodies)


async def test_priorities_are_told_where_the_server_heeds_them():
    async with Server(info={"enable_priority_scheduling": True}) as server, pool(server, warm_up=False) as p:
        await p.complete(ask(priority=3))
        assert server.bodies[0]["priority"] == 3


async def test_texts_in_pieces_are_put_together():
    class Incremental(Server):
        async def _stream(self, request, replies, fault):
            for reply in replies:
                reply["text"] = reply["text"][2:]
            return await super()._stream(request, replies, fault)

        def _begun(self, reply):
            return {"text": "to", "meta_info": {**reply["meta_info"], "finish_reason": None}}

    async with Incremental(info={"incremental_streaming_output": True}) as server, pool(server, warm_up=False) as p:
        assert (await p.complete(ask(3))).text == "to 0-3-0"


@pytest.mark.parametrize("wrong", [
    {"kind": "sglang"},
    {"kind": "sglang", "url": "http://h", "managed": {"model_path": "m"}},
    {"kind": "sglang", "url": "ftp://h"},
    {"kind": "sglang", "url": "http://me:secret@h"},
    {"kind": "sglang", "url": "http://h", "api_key_env": "sk-this is a key"},
    {"kind": "sglang", "managed": {"model_path": "m", "deterministic": True}, "sampling": {"min_p": 0.1}},
    {"kind": "openai", "model": "m", "base_url": "h"},
    {"kind": "embedded", "slots": 0},
    {"kind": "magic"},
])  # fmt: skip
def test_what_cannot_be_meant_is_refused(wrong):
    with pytest.raises(ValidationError):
        TypeAdapter(EngineSpec).validate_python(wrong)


def test_how_a_server_is_started(monkeypatch):
    spec = ManagedSglang(model_path="/m", python="/venv/bin/python", tp=2, dp=4, args=["--mem-fraction-static", "0.8"])
    line = command(spec, 31000)
    assert line[:5] == ["/venv/bin/python", "-m", "sglang.launch_server", "--model-path", "/m"]
    assert "--tp-size 2 --dp-size 4" in " ".join(line) and line[-2:] == ["--mem-fraction-static", "0.8"]
    assert spec.gpus == 8
    monkeypatch.setenv("SGL_KEY", "sesame")
    path = key_file("SGL_KEY")
    assert path is not None and path.read_text() == "api-key: sesame\n" and path.stat().st_mode & 0o077 == 0
    path.unlink()
    with pytest.raises(EthnosError, match="NO_SUCH"):
        key_file("NO_SUCH")


async def test_a_server_that_does_not_start_is_trouble(tmp_path):
    from ethnos.actors.inference.engines.base import Unreachable

    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o755)
    server = SglangServer(ManagedSglang(model_path="m", python=str(script)), log=tmp_path / "log")
    with pytest.raises(Unreachable, match="ended as it started"):
        await server.start()
    await server.stop()


def test_metrics_are_read():
    text = '# HELP x y\nsglang:num_running_reqs{model="a,b"} 3.0\nsglang:num_running_reqs{model="c"} 2\nplain 7\nodd\n'
    assert parse_metrics(text) == {"sglang:num_running_reqs": 5.0, "plain": 7.0}

"""The SGLang engine against SGLang itself, with a tiny random model on this CPU.

Set up with `scripts/sglang-cpu`; skipped where ETHNOS_SGLANG_PYTHON does not name that environment's Python.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from ethnos.actors.inference.engines.managed import SglangServer
from ethnos.actors.inference.engines.sglang import SglangEngine
from ethnos.actors.inference.pool import Pool
from ethnos.actors.inference.request import Layer, Request, Sampling
from ethnos.engines import ManagedSglang, OpenAISpec, SglangSpec

PYTHON = os.environ.get("ETHNOS_SGLANG_PYTHON", "")
pytestmark = [
    pytest.mark.sglang,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not PYTHON, reason="ETHNOS_SGLANG_PYTHON is not set (scripts/sglang-cpu)"),
    pytest.mark.asyncio(loop_scope="module"),
]

TINY = Path(__file__).parent.parent / "sglang_cpu" / "tiny_model.py"
ON_CPU = [
    *("--device", "cpu", "--dtype", "float32", "--attention-backend", "torch_native", "--max-total-tokens", "16384"),
    *("--sampling-backend", "pytorch", "--grammar-backend", "xgrammar"),
]
ENV = {"SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1", "TORCHDYNAMO_DISABLE": "1", "OMP_NUM_THREADS": "1"}
SCHEMA = {
    "type": "object",
    "properties": {
        "action": {"enum": ["eat", "move", "rest"]},
        "amount": {"type": "integer", "minimum": 0, "maximum": 9},
    },
    "required": ["action", "amount"],
    "additionalProperties": False,
}
RULES = "You live in a world of cells; food grows there. " * 12


def think(agent: int, tick: int = 0, most: int = 60, schema: dict | None = SCHEMA, deadline: float = 120.0) -> Request:
    layers = (
        Layer("rules", RULES),
        Layer("persona", f"You are agent {agent}."),
        Layer("observation", f"Tick {tick}: food.", "user"),
    )
    return Request(tick, agent, 0, layers, schema, Sampling(1.0, 1.0, most, seed=agent), deadline)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny-model")
    subprocess.run([PYTHON, str(TINY), str(folder)], check=True, timeout=300, capture_output=True)
    return folder


def managed(model: Path, *args: str, deterministic: bool = False) -> ManagedSglang:
    return ManagedSglang(
        model_path=str(model), python=PYTHON, args=[*ON_CPU, *args], env=ENV, start_timeout_s=400,
        deterministic=deterministic,
    )  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(model: Path) -> AsyncIterator[SglangServer]:
    """One server for the module: it takes its time to start."""
    server = SglangServer(managed(model), log=model / "server.log")
    await server.start()
    yield server
    await server.stop()


def engine(server: SglangServer, **settings) -> SglangEngine:
    return SglangEngine(SglangSpec(url=server.url, **settings), "sglang")


async def test_it_meets_the_server(server: SglangServer, model: Path):
    met = engine(server)
    await met.start()
    assert met.model == str(model) and not met.deterministic and await met.healthy()
    assert {"<|im_start|>", "<|im_end|>"} == met.special
    prompt = await met._prompt(think(3))
    assert prompt == (
        f"<|im_start|>system\n{RULES}\n\nYou are agent 3.<|im_end|>\n"
        "<|im_start|>user\nTick 0: food.<|im_end|>\n<|im_start|>assistant\n"
    )
    assert await met._encode(prompt) == await met._tokens([
        {"role": "system", "content": f"{RULES}\n\nYou are agent 3."}, {"role": "user", "content": "Tick 0: food."},
    ])  # fmt: skip
    await met.close()


async def test_a_wave_obeys_the_schema_and_shares_its_head(server: SglangServer):
    async with Pool([engine(server)]) as pool:
        replies = await pool.complete_many([think(agent) for agent in range(12)])
        for reply in replies:
            assert not reply.error and reply.completion_tokens > 0
            if reply.finish == "stop":
                assert json.loads(reply.text)["action"] in ("eat", "move", "rest")
        assert sum(reply.finish == "stop" for reply in replies) >= 10
        share = sum(r.cached_tokens for r in replies) / sum(r.prompt_tokens for r in replies)
        assert share > 0.7, "the head was warmed, so the wave had it from the cache"
        assert pool.stats()["engines"]["sglang"]["warmups"] == 1
        assert pool.stats()["engines"]["sglang"]["calls"] == 1


async def test_without_a_warm_up_a_cold_batch_shares_nothing(server: SglangServer):
    def cold(agent: int) -> Request:
        request = think(agent, schema=None, most=4)
        return Request(
            9, agent, 0, (Layer("rules", "Quite other rules. " * 30), *request.layers[1:]), None, request.sampling
        )

    async with Pool([engine(server, warm_up=False)]) as pool:
        replies = await pool.complete_many([cold(agent) for agent in range(8)])
    assert sum(r.cached_tokens for r in replies) < 0.2 * sum(r.prompt_tokens for r in replies)


async def test_one_bad_schema_is_found_and_the_others_are_served(server: SglangServer):
    async with Pool([engine(server)]) as pool:
        bad = {"type": "object", "properties": {"a": {"type": "nonsense"}}}
        replies = await pool.complete_many(
            [think(agent, 1, schema=bad if agent == 2 else SCHEMA) for agent in range(5)]
        )
    assert [bool(r.error) for r in replies] == [False, False, True, False, False]
    assert "HTTP 400" in replies[2].error


async def test_what_is_late_is_cancelled_at_the_server(server: SglangServer):
    met = engine(server)
    async with Pool([met]) as pool:
        late = [think(agent, 2, most=3000, schema=None, deadline=2.0) for agent in range(3)]
        replies = await pool.complete_many(late)
        assert {r.error for r in replies} <= {"late", ""} and any(r.error == "late" for r in replies)
        async with asyncio.timeout(30):
            while (await met.metrics())["sglang:num_running_reqs"]:
                await asyncio.sleep(0.2)
        metrics = await met.metrics()
        assert metrics["sglang:num_aborted_requests_total"] >= 1
        assert not (await pool.complete(think(0, 3))).error


async def test_a_request_that_is_too_long_is_refused(server: SglangServer):
    async with Pool([engine(server)]) as pool:
        request = Request(5, 0, 0, (Layer("rules", "word " * 20_000),), None)
        reply = await pool.complete(request)
    assert reply.error and reply.attempts == 1


async def test_what_we_send_is_what_sglang_defines(server: SglangServer):
    """Our body, through the server's own parser of the contract."""
    met = engine(server)
    await met.start()
    from ethnos.actors.inference.engines.base import Call

    body = met._body([Call("a.", think(1)), Call("b.", think(2))], ["one", "two"])
    program = (
        "import json, sys\n"
        "from sglang.api.v1.api_types import GenerateRequest\n"
        "print(GenerateRequest.from_json_value(json.load(sys.stdin)).to_json_value())\n"
    )
    done = subprocess.run(
        [PYTHON, "-c", program],
        input=json.dumps(body),
        text=True,
        capture_output=True,
        timeout=200,
        env=os.environ | ENV,
    )
    assert done.returncode == 0, done.stderr
    assert "stream_interval" in done.stdout and "json_schema" in done.stdout
    await met.close()


async def test_the_openai_engine_speaks_with_it_too(server: SglangServer, model: Path):
    pytest.importorskip("openai")
    from ethnos.actors.inference.engines.openai import OpenAIEngine

    spec = OpenAISpec(base_url=f"{server.url}/v1", model=str(model), api_key_env=None)
    async with Pool([OpenAIEngine(spec, "openai")]) as pool:
        replies = await pool.complete_many([think(agent, 6) for agent in range(3)])
    assert not any(r.error for r in replies) and all(r.prompt_tokens > 100 for r in replies)
    assert json.loads(next(r for r in replies if r.finish == "stop").text)["action"] in ("eat", "move", "rest")


async def test_a_managed_server_dies_and_is_started_again_and_keeps_seeds(model: Path):
    spec = SglangSpec(managed=managed(model, deterministic=True))
    looked_after = SglangServer(spec.managed, log=model / "deterministic.log")
    met = SglangEngine(spec, "own", server=looked_after)
    async with Pool([met]) as pool:
        assert met.deterministic
        first = await pool.complete(think(1, 7, schema=None))
        assert looked_after._child is not None
        await looked_after._child.stop()
        again = Request(8, 1, 0, think(1, 7).layers, None, think(1, 7).sampling, 400.0)
        second = await pool.complete(again)
        assert pool.stats()["engines"]["own"]["deaths"] == 1
        assert not first.error and first.text == second.text

"""Keys come from the environment and stay there: not on the record, in prompts, logs, errors or what is printed."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from typer.testing import CliRunner

from ethnos import society as societies
from ethnos.cli.app import app
from ethnos.control import Control
from ethnos.errors import EthnosError
from ethnos.run import run_here
from ethnos.transport import certificates
from tests.repeat.serving import TOKEN
from tests.security.fuzz import texts
from tests.security.serving import paused

KEY = "sk-ethnos-test-0123456789abcdefghijklmnop"
SOCIETY = """
scenario: commons
ticks: 2
population:
  - {{cohort: fishers, count: 2, mind: {{model: far}}}}
models:
  far: {{kind: openai, model: m, base_url: "{url}/v1", api_key_env: ETHNOS_TEST_KEY}}
"""


class Blabber:
    """An endpoint that repeats the key it was given, in errors and in answers."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.asked = 0

    async def answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        key = request.headers.get("Authorization", "")
        if self.status != 200:
            return web.json_response({"error": {"message": f"no access with {key}"}}, status=self.status)
        said = {"role": "assistant", "content": f"your key is {key}"}
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
        return web.json_response(body)


@asynccontextmanager
async def listening(blabber: Blabber) -> AsyncIterator[str]:
    served = web.Application()
    served.router.add_route("*", "/{path:.*}", blabber.answer)
    runner = web.AppRunner(served)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.fixture(params=[200, 400, 401, 500])
def endpoint(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Blabber]]:
    """Its URL; it runs in a thread of its own."""
    import threading

    monkeypatch.setenv("ETHNOS_TEST_KEY", KEY)
    blabber, ready, over = Blabber(request.param), threading.Event(), asyncio.Event()
    found: dict[str, object] = {}

    async def serve() -> None:
        async with listening(blabber) as url:
            found.update(url=url, loop=asyncio.get_running_loop())
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(10)
    yield str(found["url"]), blabber
    found["loop"].call_soon_threadsafe(over.set)  # type: ignore[attr-defined]
    thread.join(10)


def test_a_key_goes_to_its_engine_and_nowhere_else(
    endpoint: tuple[str, Blabber], runs: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    url, blabber = endpoint
    caplog.set_level(logging.DEBUG, "ethnos")
    said = ""
    try:
        run_here(societies.parse(SOCIETY.format(url=url), changes=["decision_deadline=3"]), name="told")
    except EthnosError as error:
        said = f"{error!r} {error.__cause__!r}"
    assert blabber.asked
    printed = CliRunner().invoke(app, ["show", "told", "--json"]).output
    printed += CliRunner().invoke(app, ["sql", "told", "from calls", "--json"]).output
    assert KEY not in said + printed + caplog.text + "".join(capfd.readouterr())
    assert not [path for path, data in texts(runs) if KEY.encode() in data]


def test_the_runs_secret_is_in_one_file_for_one_reader(runs: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with paused() as run, Control(run) as opened:
        opened.call("Step", ticks=2)
    assert not [path for path, data in texts(run.path) if TOKEN.encode() in data and path != run.contact]
    assert TOKEN + '"' not in caplog.text


def test_keys_of_certificates_are_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ethnos.certificates import make

    make(tmp_path)
    monkeypatch.setenv("ETHNOS_TLS_DIR", str(tmp_path / "node"))
    mine = certificates()
    assert mine is not None
    assert b"PRIVATE" in mine.key
    assert "PRIVATE" not in repr(mine) + str(mine) + f"{mine}"


@pytest.mark.parametrize("name", ["sk-0123456789abcdefghijklmnop", "not a name", "key=value"])
def test_a_society_file_takes_no_key(name: str) -> None:
    with pytest.raises(EthnosError, match="name of an environment variable"):
        societies.parse(SOCIETY.format(url="http://127.0.0.1:1").replace("ETHNOS_TEST_KEY", f'"{name}"'))


def test_a_society_file_takes_no_password_in_a_url() -> None:
    with pytest.raises(EthnosError, match="no user or password"):
        societies.parse(SOCIETY.format(url="http://ada:secret@127.0.0.1:1"))

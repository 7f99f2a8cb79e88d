"""What a token lets its holder do, and how often."""

import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from typer.testing import CliRunner

from ethnos.cli.app import app
from ethnos.control import Control
from ethnos.errors import ClusterError, Refused
from ethnos.rights import may, metadata, right_of, token_for
from ethnos.transport import channel
from ethnos.wire.v1 import control_pb2, control_pb2_grpc, world_pb2_grpc
from ethnos.wire.v1 import world_pb2 as wire
from ethnos.world import service
from ethnos.world.gate import Bucket
from ethnos.world.limits import CALLS_PER_S, MAX_CHANGE_BYTES, MAX_WATCHERS
from tests.security.serving import address_of, code_of, paused, token

OK, DENIED = grpc.StatusCode.OK, grpc.StatusCode.PERMISSION_DENIED
NOT_KNOWN = grpc.StatusCode.UNAUTHENTICATED
pytestmark = pytest.mark.usefixtures("runs")


def test_each_right_goes_so_far_and_no_further() -> None:
    with paused() as run:
        at = address_of(run)
        allowed = {
            right: {m: code_of(channel(at), m, token(right)) for m in ("Watch", "Inspect", "Pause", "Intervene")}
            for right in ("act", "look", "control", "administer")
        }
    dead_or_alive, no_change = allowed["look"]["Inspect"], grpc.StatusCode.FAILED_PRECONDITION
    assert dead_or_alive in (OK, grpc.StatusCode.NOT_FOUND)
    methods = ("Watch", "Inspect", "Pause", "Intervene")
    assert allowed == {
        "act": dict.fromkeys(methods, DENIED),
        "look": dict(zip(methods, (OK, dead_or_alive, DENIED, DENIED), strict=True)),
        "control": dict(zip(methods, (OK, dead_or_alive, OK, DENIED), strict=True)),
        "administer": dict(zip(methods, (OK, dead_or_alive, OK, no_change), strict=True)),
    }


def test_no_token_a_wrong_one_and_that_of_another_run() -> None:
    with paused() as run:
        at = address_of(run)
        strangers = ("", "administer.00", token_for("the secret of another run", "administer"), "token", "é")
        assert {code_of(channel(at), "Watch", t) for t in strangers[:4]} == {NOT_KNOWN}
    assert right_of("secret", strangers[4]) is None


def test_the_secret_itself_is_no_token_and_tokens_make_no_others() -> None:
    look = token_for("secret", "look")
    assert right_of("secret", look) == "look"
    assert right_of("secret", "secret") is None
    assert token_for(look, "administer") == look
    assert right_of("other", look) is None


def test_a_method_that_nobody_thought_of_is_nobodys() -> None:
    assert not may("administer", "/ethnos.wire.v1.Control/Erase")


def test_a_host_needs_the_right_to_act_and_says_hello_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "HELLO_S", 0.2)
    with paused() as run, channel(address_of(run)) as opened:
        live = world_pb2_grpc.WorldStub(opened).Live
        for holder, code in (("look", DENIED), ("act", grpc.StatusCode.DEADLINE_EXCEEDED)):
            stream = live(_late(), metadata=metadata(token(holder)), timeout=20)
            with pytest.raises(grpc.RpcError) as refused:
                next(stream)
            assert refused.value.code() == code


def _late() -> Iterator[wire.FromHost]:
    time.sleep(1.0)
    yield wire.FromHost()


def test_calls_without_end_are_slowed_down() -> None:
    with paused() as run, channel(address_of(run)) as opened:
        codes = [code_of_many(opened) for _ in range(5 * CALLS_PER_S)]
        assert grpc.StatusCode.RESOURCE_EXHAUSTED in codes
        assert code_of(channel(address_of(run)), "Pause", token("control")) == OK, "others are not held up"


def code_of_many(opened: grpc.Channel) -> grpc.StatusCode:
    try:
        control_pb2_grpc.ControlStub(opened).Inspect(
            control_pb2.InspectRequest(agent_id=10**6),
            metadata=metadata(token("look")),
            timeout=10,
        )
    except grpc.RpcError as error:
        return error.code()
    return OK


def test_a_bucket_fills_with_time() -> None:
    bucket = Bucket(per_s=2, most=3)
    assert [bucket.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert bucket.take(0.5)
    assert not bucket.take(0.6)
    assert [bucket.take(100.0) for _ in range(4)] == [True, True, True, False]


def test_so_many_may_watch() -> None:
    with paused() as run, channel(address_of(run)) as opened:
        watch = control_pb2_grpc.ControlStub(opened).Watch
        key = metadata(token("look"))
        watching = [watch(control_pb2.WatchRequest(), metadata=key) for _ in range(MAX_WATCHERS)]
        for one in watching:
            next(one)
        assert code_of(channel(address_of(run)), "Watch", token("look")) == grpc.StatusCode.RESOURCE_EXHAUSTED
        for one in watching:
            one.cancel()


def test_a_contact_file_gives_one_right(tmp_path: Path) -> None:
    mine = tmp_path / "look.json"
    with paused() as run:
        assert CliRunner().invoke(app, ["contact", run.name, "-o", str(mine)]).exit_code == 0
        assert mine.stat().st_mode & 0o077 == 0
        with Control(mine) as look:
            with pytest.raises(Refused, match="no agent"):
                look.call("Inspect", agent_id=10**9)
            with pytest.raises(Refused, match="the right to look is not enough"):
                look.call("Pause")
        steers = tmp_path / "steers.json"
        assert CliRunner().invoke(app, ["contact", run.name, "--right", "control", "-o", str(steers)]).exit_code == 0
        done = CliRunner().invoke(app, ["step", str(steers), "2"])
        assert done.exit_code == 0, done.output
        assert isinstance(CliRunner().invoke(app, ["contact", run.name, "-o", str(mine)]).exception, Exception)
    with pytest.raises(ClusterError), Control(mine) as late:
        late.call("Pause")


def test_an_intervention_has_its_size() -> None:
    with paused() as run, Control(run) as opened, pytest.raises(Refused, match="more than"):
        opened.call("Intervene", change=b" " * (MAX_CHANGE_BYTES + 1))

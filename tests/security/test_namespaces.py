"""World and agents on different hosts, with TLS: who is let in, and what a cut cable costs. Needs root."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ethnos.certificates import make
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import connect
from ethnos.record.verify import verify
from ethnos.rights import token_for
from ethnos.run import create, run_here
from tests.security.apart import Cable, ended
from tests.security.serving import address_of
from tests.tiny import orchard

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.usefixtures("runs")]
CUT_S = 30.0
TICKS = 3000


@pytest.fixture
def cable() -> Iterator[Cable]:
    if shutil.which("ip") is None:
        pytest.skip("iproute2 is not installed")
    try:
        with Cable() as cable:
            yield cable
    except OSError as error:
        pytest.skip(f"no network namespaces here: {error}")


def tick_of(run: RunDirectory) -> int:
    with connect(run) as con:
        return int(con.sql("SELECT coalesce(max(tick), -1) FROM ticks").fetchall()[0][0])


def until(ready: object, most_s: float = 300.0) -> None:
    end = time.monotonic() + most_s
    while not ready():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.1)


def test_strangers_are_refused_and_a_cut_cable_costs_time(cable: Cable, tmp_path: Path) -> None:
    reference = run_here(orchard(TICKS), name="reference").manifest().digest
    certs = tmp_path / "tls"
    make(certs, ["late"], days=-1)
    make(certs, ["ada"])
    make(tmp_path / "elsewhere", ["eve"])
    node = {"ETHNOS_TLS_DIR": str(certs / "node")}
    run = create(orchard(TICKS), "apart")
    world = cable.start(cable.world, f"world({str(run.path)!r}, 'the secret of this run')", **node)
    with ended(world):
        until(run.contact.exists)
        address = address_of(run)
        known = token_for("the secret of this run", "look")

        def asked(certificates: Path, token: str = known, at: str = address) -> str:
            call = f"stranger({at!r}, {token!r})"
            return cable.start(cable.agents, call, ETHNOS_TLS_DIR=str(certificates)).communicate(timeout=120)[0].strip()

        assert asked(certs / "ada") == "OK"
        assert asked(certs / "late") == "UNAVAILABLE", "a certificate that is over"
        assert asked(tmp_path / "elsewhere" / "eve") == "UNAVAILABLE", "one of another authority"
        assert asked(certs / "ada", at=address.removeprefix("tls:")) == "UNAVAILABLE", "none at all"
        replayed = token_for("the secret of another run", "look")
        assert asked(certs / "ada", replayed) == "UNAUTHENTICATED", "a token of another run"

        agents = cable.start(cable.agents, f"agents({str(run.path)!r})", **node)
        with ended(agents):
            until(lambda: tick_of(run) >= 20)
            cable.cut()
            time.sleep(1.0)
            before = tick_of(run)
            time.sleep(CUT_S)
            assert tick_of(run) == before < TICKS, "nobody decides while the cable is cut"
            cable.heal()
            assert world.wait(timeout=600) == 0
            assert agents.wait(timeout=60) == 0
    assert verify(run).ok
    assert run.manifest().digest == reference

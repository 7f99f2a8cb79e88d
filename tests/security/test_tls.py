"""Mutual TLS: who has no certificate of this authority, or one that is over, is refused; and so is a false world."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest

from ethnos import transport
from ethnos.certificates import expiry, make
from ethnos.control import Control
from ethnos.doctor import network
from ethnos.errors import ClusterError, SocietyError
from ethnos.record.verify import verify
from ethnos.run import create, run_here
from tests.repeat.serving import served
from tests.security.serving import address_of, code_of, files, paused, token
from tests.tiny import orchard

GONE = grpc.StatusCode.UNAVAILABLE
pytestmark = pytest.mark.usefixtures("runs")


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Certificates for nodes, in force, and for one person."""
    folder = tmp_path / "tls"
    make(folder, ["ada"])
    monkeypatch.setenv(transport.FOLDER, str(folder / "node"))
    yield folder


def secured(folder: Path, *, cert: bool = True) -> tuple[grpc.ChannelCredentials, list[tuple[str, str]]]:
    ca, mine, key = files(folder)
    shown = grpc.ssl_channel_credentials(ca, key, mine) if cert else grpc.ssl_channel_credentials(ca)
    return shown, [("grpc.ssl_target_name_override", transport.NODE_NAME)]


def test_a_society_over_tls_is_the_same_society(authority: Path) -> None:
    run = create(orchard(), "secret")
    with served(run):
        pass
    with paused() as other, Control(other, "control") as ada:
        assert address_of(other).startswith(transport.PREFIX)
        assert ada.call("Pause").tick >= 0
    assert verify(run).ok
    assert run.manifest().digest == run_here(orchard(), name="open").manifest().digest


def test_strangers_are_refused(authority: Path, tmp_path: Path) -> None:
    make(tmp_path / "elsewhere", ["eve"])
    make(authority, ["late"], days=-1)
    make(authority)
    with paused() as run:
        where = address_of(run).removeprefix(transport.PREFIX)
        known = token("administer")
        assert code_of(grpc.secure_channel(where, *secured(authority / "ada")), "Watch", known) == grpc.StatusCode.OK
        assert code_of(grpc.insecure_channel(where), "Watch", known) == GONE
        assert code_of(grpc.secure_channel(where, *secured(authority / "ada", cert=False)), "Watch", known) == GONE
        assert code_of(grpc.secure_channel(where, *secured(authority / "late")), "Watch", known) == GONE
        _, cert, key = files(tmp_path / "elsewhere" / "eve")
        eve = grpc.ssl_channel_credentials(files(authority / "ada")[0], key, cert)
        name = [("grpc.ssl_target_name_override", transport.NODE_NAME)]
        assert code_of(grpc.secure_channel(where, eve, name), "Watch", known) == GONE
        ada = grpc.secure_channel(where, *secured(authority / "ada"))
        assert code_of(ada, "Watch", "administer.0") == grpc.StatusCode.UNAUTHENTICATED, "a certificate is no right"


@pytest.mark.parametrize("impostor", ["ada", "other"])
def test_a_false_world_is_told_nothing(authority: Path, tmp_path: Path, impostor: str) -> None:
    """Neither a person's certificate nor another authority's makes a world."""
    make(tmp_path / "elsewhere")
    ca, cert, key = files(authority / "ada" if impostor == "ada" else tmp_path / "elsewhere" / "node")
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, cert)]))
    server.start()
    try:
        assert code_of(transport.channel(f"tls:127.0.0.1:{port}"), token=token("look"), timeout=5) == GONE
    finally:
        server.stop(None)


def test_who_has_no_certificates_does_not_fall_back(authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with paused() as run:
        monkeypatch.delenv(transport.FOLDER)
        with pytest.raises(ClusterError, match="wants certificates"):
            Control(run)
        monkeypatch.setenv(transport.FOLDER, str(authority / "node"))


def test_certificates_are_made_with_care(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    make(folder, ["ada"], days=30)
    first = files(folder / "node")
    keys = [folder / "ca.key", folder / "node" / "key.pem", folder / "ada" / "key.pem"]
    assert all(k.stat().st_mode & 0o077 == 0 for k in keys)
    assert 29 <= (expiry(first[1]) - datetime.now(UTC)).days <= 30
    make(folder)
    second = files(folder / "node")
    assert (first[0], first[1]) != (second[0], second[1])
    assert first[0] == second[0], "the authority is kept: what it signed stays good"
    with pytest.raises(SocietyError):
        make(folder, ["../eve"])


def test_doctor_looks_at_certificates(authority: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert [f.level for f in network.tls()] == ["ok"]
    (authority / "node" / "key.pem").chmod(0o644)
    assert "problem" in [f.level for f in network.tls()]
    make(authority, days=3)
    assert "notice" in [f.level for f in network.tls()]
    make(authority, days=-1)
    assert "problem" in [f.level for f in network.tls()]
    monkeypatch.setenv(transport.FOLDER, str(tmp_path / "nowhere"))
    assert [f.level for f in network.tls()] == ["problem"]
    monkeypatch.delenv(transport.FOLDER)
    assert not list(network.tls())
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert [f.level for f in network.tls()] == ["notice"]

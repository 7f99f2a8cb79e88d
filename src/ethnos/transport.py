"""Channels between world, agents and people: TLS with certificates on both sides where there are some.

Certificates are files in the folder $ETHNOS_TLS_DIR: `ca.pem`, `cert.pem`, `key.pem`, as `ethnos certificates` makes
them. An address that begins with `tls:` is spoken to with them and in no other way; whoever has none is refused.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from ethnos.errors import ClusterError

FOLDER = "ETHNOS_TLS_DIR"
NODE_NAME = "ethnos-node"
"""What the certificate of a world is made out to: worlds move between machines, names of machines prove nothing."""
PREFIX = "tls:"
MAX_STREAM_BYTES = 64 * 1024 * 1024
"""One gRPC message, a batch of observations or decisions."""
KEEPALIVE_MS, KEEPALIVE_TIMEOUT_MS = 30_000, 60_000
"""A peer that vanished without a word is noticed after 90 s."""

_COMMON: list[tuple[str, Any]] = [
    ("grpc.max_receive_message_length", MAX_STREAM_BYTES),
    ("grpc.max_send_message_length", MAX_STREAM_BYTES),
    ("grpc.max_metadata_size", 8192),
    ("grpc.keepalive_time_ms", KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
]
SERVER_OPTIONS: list[tuple[str, Any]] = [
    *_COMMON,
    ("grpc.so_reuseport", 0),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 0),
]
_CLIENT_OPTIONS: list[tuple[str, Any]] = [*_COMMON, ("grpc.enable_http_proxy", 0)]


@dataclass(frozen=True, slots=True)
class Certificates:
    """What this process shows to others, and whom it believes. Its key appears in no text."""

    ca: bytes
    cert: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Certificates(...)"


def folder() -> Path | None:
    """Where the certificates are; None: there is no TLS here."""
    named = os.environ.get(FOLDER)
    return Path(named) if named else None


def certificates() -> Certificates | None:
    """Those of this process; None if it was given none. Raises ClusterError if they cannot be read."""
    where = folder()
    if where is None:
        return None
    try:
        return Certificates(*((where / name).read_bytes() for name in ("ca.pem", "cert.pem", "key.pem")))
    except OSError as error:
        raise ClusterError(f"${FOLDER}: {error.filename}: {error.strerror}") from None


def listen(server: Any, bind: str, *, tls: bool) -> str:
    """Have a server listen at some port; returns the address. Raises ClusterError."""
    try:
        if not tls:
            return f"{bind}:{server.add_insecure_port(f'{bind}:0')}"
        mine = _mine()
        shown = grpc.ssl_server_credentials([(mine.key, mine.cert)], mine.ca, require_client_auth=True)
        return f"{PREFIX}{bind}:{server.add_secure_port(f'{bind}:0', shown)}"
    except RuntimeError as error:
        raise ClusterError(f"nothing can listen on {bind}: {error}") from None


def channel(address: str) -> grpc.Channel:
    """To an address as `listen` gave it. Raises ClusterError if it wants certificates and there are none."""
    if not address.startswith(PREFIX):
        return grpc.insecure_channel(address, options=_CLIENT_OPTIONS)
    return grpc.secure_channel(address.removeprefix(PREFIX), _credentials(), options=_tls_options())


def aio_channel(address: str) -> grpc.aio.Channel:
    """The same, for asynchronous callers."""
    if not address.startswith(PREFIX):
        return grpc.aio.insecure_channel(address, options=_CLIENT_OPTIONS)
    return grpc.aio.secure_channel(address.removeprefix(PREFIX), _credentials(), options=_tls_options())


def _mine() -> Certificates:
    mine = certificates()
    if mine is None:
        raise ClusterError(f"this wants certificates: set ${FOLDER} to a folder of `ethnos certificates`, on all nodes")
    return mine


def _credentials() -> grpc.ChannelCredentials:
    mine = _mine()
    return grpc.ssl_channel_credentials(mine.ca, mine.key, mine.cert)


def _tls_options() -> list[tuple[str, Any]]:
    return [*_CLIENT_OPTIONS, ("grpc.ssl_target_name_override", NODE_NAME)]


__all__ = [
    "FOLDER",
    "MAX_STREAM_BYTES",
    "NODE_NAME",
    "SERVER_OPTIONS",
    "Certificates",
    "aio_channel",
    "certificates",
    "channel",
    "folder",
    "listen",
]

"""Engines from what a society file says."""

import os
from collections.abc import Sequence

from ethnos.actors.inference.engines.base import Engine
from ethnos.actors.inference.engines.managed import Serve, serve_here
from ethnos.engines import EngineSpec
from ethnos.errors import EthnosError


def make_engines(specs: Sequence[EngineSpec], serve: Serve = serve_here) -> list[Engine]:
    """Engines, not yet started: one for each entry, or one for each copy of the model behind a server.

    `serve` looks after the servers that are ours to start. Raises EthnosError if what one needs is not on this machine.
    """
    return [e for i, spec in enumerate(specs) for e in _make(spec, spec.name or f"{spec.kind}-{i}", serve)]


def _make(spec: EngineSpec, name: str, serve: Serve) -> Sequence[Engine]:
    """Imports only the kind that is wanted."""
    if spec.kind == "embedded":
        from ethnos.actors.inference.engines.embedded import EmbeddedEngine

        return [EmbeddedEngine(spec, name)]
    _check_key(spec.api_key_env, name)
    if spec.kind == "openai":
        from ethnos.actors.inference.engines.openai import OpenAIEngine

        return [OpenAIEngine(spec, name)]
    from ethnos.actors.inference.engines import sglang

    return sglang.engines(spec.model_copy(update={"name": name}), name, serve)


def _check_key(variable: str | None, name: str) -> None:
    if variable and not os.environ.get(variable):
        raise EthnosError(f"engine {name}: the environment variable {variable} has to hold its key, and is not set")

"""The language models that a society names: their keys, and whether they answer now."""

import asyncio
import os
from collections.abc import Iterator

from ethnos.actors.inference.engines.base import Engine, Trouble
from ethnos.actors.inference.engines.make import make_engines
from ethnos.doctor.finding import Finding, ok, problem
from ethnos.engines import EngineSpec
from ethnos.errors import EthnosError
from ethnos.society import Society

PATIENCE_S = 15.0


def _running(society: Society | None) -> Iterator[tuple[str, EngineSpec]]:
    """Engines that ought to be there already; those that a run starts itself are not looked for."""
    for name, specs in (society.models if society else {}).items():
        for i, spec in enumerate(specs):
            if spec.kind == "openai" or (spec.kind == "sglang" and spec.url is not None):
                yield spec.name or f"{name}-{i}", spec


def secrets(society: Society | None) -> Iterator[Finding]:
    """Whether the environment holds the keys that engines need. Their values go nowhere."""
    for specs in (society.models if society else {}).values():
        for spec in specs:
            variable = getattr(spec, "api_key_env", None)
            if variable and not os.environ.get(variable):
                yield problem(
                    "secrets",
                    f"the environment variable {variable} is not set",
                    "the engine that needs it refuses, and the run does not start",
                    f"export {variable}, from a file that only you can read",
                )


def health(society: Society | None) -> Iterator[Finding]:
    """Whether each engine that should be running answers."""
    for name, spec in _running(society):
        where = spec.base_url if spec.kind == "openai" else getattr(spec, "url", "")
        if trouble := asyncio.run(_trouble(name, spec)):
            yield problem(
                "engines",
                f"engine {name} at {where}: {trouble}",
                "agents that think with it decide nothing until it is back",
                "start it, or mend its address and key in the society file",
            )
        else:
            yield ok("engines", f"engine {name} at {where} answers")


async def _trouble(name: str, spec: EngineSpec) -> str:
    try:
        engines = make_engines([spec.model_copy(update={"name": name})])
    except EthnosError as error:
        return str(error)
    for engine in engines:
        if found := await _ask(engine):
            return found
    return ""


async def _ask(engine: Engine) -> str:
    try:
        async with asyncio.timeout(PATIENCE_S):
            await engine.start()
            return "" if await engine.healthy() else "it does not answer"
    except TimeoutError:
        return f"no answer within {PATIENCE_S:.0f} s"
    except Trouble as trouble:
        return str(trouble)
    finally:
        await engine.close()

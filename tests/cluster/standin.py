"""Stands in for `python -m sglang.launch_server`: started, watched and killed like it, and speaks like it.

Its "model" always says the same. Each start appends its process id and its GPUs to the file $STANDIN_LOG.
"""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.inference.server import Server  # noqa: E402

SAYS = json.dumps({"reason": "it is quiet", "act": {"action": "stay"}, "message": "hello"})


class StandIn(Server):
    def _say(self, prompt: str, fault: str) -> str:
        return SAYS


def python(folder: Path) -> Path:
    """An executable that, called like the Python of SGLang's environment, runs this file."""
    script = folder / "sglang-python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" "$@"\n')
    script.chmod(0o755)
    return script


async def serve(host: str, port: int) -> None:
    server = StandIn(always="slow")
    server.host, server.port = host, port
    async with server:
        with Path(os.environ["STANDIN_LOG"]).open("a") as log:
            log.write(f"{os.getpid()} {os.environ.get('CUDA_VISIBLE_DEVICES', '')}\n")
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    asked = parser.parse_known_args()[0]
    asyncio.run(serve(asked.host, asked.port))

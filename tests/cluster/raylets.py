"""A Ray cluster of several nodes on this machine: real raylets, each a process of ours with ports of its own."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

RAY = str(Path(sys.executable).with_name("ray"))
QUICK_HEALTH = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "3000",
    "RAY_health_check_failure_threshold": "5",
    "RAY_metrics_report_interval_ms": "1000",
}
"""A raylet that is killed is missed within seconds, one that only has to wait for a core is not."""
START_S = 90.0


class Raylets:
    """`with Raylets() as cluster: cluster.add("second", gpus=1)`; `cluster.env` is for whoever joins."""

    def __init__(self, **head: Any) -> None:
        self._head = head
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._folder = Path(tempfile.mkdtemp(prefix="ethnos-raylets-"))
        self.address = f"127.0.0.1:{free_port()}"
        self.metrics = f"http://127.0.0.1:{free_port()}/metrics"
        """Where the head offers its figures to Prometheus."""
        self.env = {
            **os.environ,
            **QUICK_HEALTH,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(16),
            "RAY_worker_niceness": "0",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            "RAY_ADDRESS": self.address,
        }

    def __enter__(self) -> "Raylets":
        self.add("head", **self._head)
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(list(self._nodes)):
            self.kill(name)
        shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, name: str, cpus: int = 2, gpus: int = 0, labels: str = "") -> None:
        """Start a node, the head first, and wait until it is up. (Two at the same moment would collide.)"""
        first = not self._nodes
        where = ["--head", f"--port={self.address.split(':')[1]}"] if first else [f"--address={self.address}"]
        command = [
            *(RAY, "start", *where, "--node-ip-address=127.0.0.1", f"--num-cpus={cpus}", f"--num-gpus={gpus}"),
            *("--object-store-memory=100000000", "--disable-usage-stats", "--block"),
            *(["--include-dashboard=false", f"--temp-dir={self._folder}", self._metrics_port()] if first else []),
            *([f"--labels={labels}"] if labels else []),
        ]
        log = self._folder / f"{name}.log"
        env = {k: v for k, v in self.env.items() if k != "RAY_ADDRESS"}
        with log.open("wb") as output:
            self._nodes[name] = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        self._until_up(name, log)

    def actors(self, name: str, kind: str) -> list[psutil.Process]:
        """The processes of a node that hold actors of a class."""
        return [
            p
            for p in psutil.Process(self._nodes[name].pid).children(recursive=True)
            if p.name().startswith("ray::") and f"::{kind}" in "".join(p.cmdline()[:1])
        ]

    def processes(self) -> list[psutil.Process]:
        """All processes of all nodes."""
        return [p for node in self._nodes.values() for p in psutil.Process(node.pid).children(recursive=True)]

    def kill(self, name: str) -> None:
        """End a node and all its processes with SIGKILL, as a machine that loses its power does."""
        process = self._nodes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _metrics_port(self) -> str:
        return f"--metrics-export-port={self.metrics.split(':')[2].split('/')[0]}"

    def _until_up(self, name: str, log: Path) -> None:
        until = time.monotonic() + START_S
        while b"Ray runtime started" not in log.read_bytes():
            if self._nodes[name].poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"node {name} did not start:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

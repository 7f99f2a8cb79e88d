"""The cluster at $RAY_ADDRESS, or this machine as a cluster of one: nodes, GPUs, the same clock and versions."""

import os
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence

from ethnos.actors.cluster import Node, survey
from ethnos.doctor.finding import Finding, notice, ok, problem
from ethnos.doctor.need import Need
from ethnos.errors import ClusterError

CONNECT_S = 5.0
MAX_SKEW_S = 2.0


def ray(need: Need) -> Iterator[Finding]:
    """What will be run on."""
    address = os.environ.get("RAY_ADDRESS", "")
    if not address:
        yield ok("ray", "no $RAY_ADDRESS: a run starts a Ray of its own on this machine")
        yield from gpus(gpus_here(), need)
        return
    if not (refused := cannot_reach(address)):
        yield from _cluster(address, need)
        return
    yield problem(
        "ray",
        f"nobody answers at $RAY_ADDRESS ({address}): {refused}",
        "no run starts",
        "start the cluster (`ray start --head`), correct the address, or unset it for a Ray on this machine",
    )


def cannot_reach(address: str) -> str:
    """Why there is no connection to host:port; empty if there is one, or if the address is of another form."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return ""
    try:
        with socket.create_connection((host, int(port)), CONNECT_S):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _cluster(address: str, need: Need) -> Iterator[Finding]:
    try:
        nodes = survey()
    except ClusterError as error:
        yield problem(
            "ray",
            str(error),
            "no run starts",
            "with authentication on: the token of the head in RAY_AUTH_TOKEN_PATH and RAY_AUTH_MODE=token",
        )
        return
    alive = [n for n in nodes if n.alive]
    cpus = sum(n.resources.get("CPU", 0.0) for n in alive)
    yield ok("ray", f"joined {address}: {len(alive)} nodes, {cpus:g} CPUs")
    yield from _dead(nodes)
    yield from _equal(alive)
    yield from _clocks(alive)
    yield from gpus(sum(n.resources.get("GPU", 0.0) for n in alive), need)
    yield from _resources(alive, need)


def _dead(nodes: Sequence[Node]) -> Iterator[Finding]:
    gone = [n.address for n in nodes if not n.alive]
    if gone:
        yield notice(
            "nodes",
            f"{len(gone)} nodes have died: {', '.join(sorted(gone)[:5])}",
            "there is less room than there was; what lived there was started elsewhere",
            "see `ray status`, and the logs of those machines",
        )


def _equal(nodes: Sequence[Node]) -> Iterator[Finding]:
    """Whether all nodes run the same versions: they must, or the same decisions need not give the same bytes."""
    kinds = Counter(n.versions for n in nodes)
    if len(kinds) > 1:
        told = "; ".join(f"{count} nodes: {text}" for text, count in sorted(kinds.items()))
        yield problem(
            "versions",
            f"nodes differ: {told}",
            "actors fail to start, or a run cannot be repeated on another node",
            "use one image, or one environment, on all nodes",
        )
    elif kinds:
        yield ok("nodes", f"all have {next(iter(kinds))}")


def _clocks(nodes: Sequence[Node]) -> Iterator[Finding]:
    for address, skew in sorted((n.address, n.skew_s) for n in nodes if abs(n.skew_s) > MAX_SKEW_S):
        yield problem(
            "clock",
            f"the clock of node {address} is {skew:+.1f} s off",
            "certificates may be refused, and the record's times contradict each other",
            "keep all clocks by NTP",
        )


def gpus(there: float, need: Need) -> Iterator[Finding]:
    """Whether there are as many GPUs as engines ask for."""
    if there < need.gpus:
        yield problem(
            "gpus",
            f"{there:g} GPUs are there, the society's engines want {need.gpus:g}",
            "the engines wait for GPUs for ever, and the run with them",
            "add GPU nodes, lower tp and dp, or name a running server by its url",
        )
    else:
        yield ok("gpus", f"{there:g} are there, {need.gpus:g} are wanted")


def _resources(nodes: Sequence[Node], need: Need) -> Iterator[Finding]:
    """Whether each resource that the society names exists somewhere."""
    for name, amount in need.resources:
        most = max((n.resources.get(name, 0.0) for n in nodes), default=0.0)
        if most < amount:
            yield problem(
                "nodes",
                f"no node has {amount:g} of the resource {name!r} (at most {most:g})",
                "what is to be placed there waits for ever",
                f"start a node with --resources='{{\"{name}\": {amount:g}}}', or correct the society file",
            )


def gpus_here() -> float:
    """GPUs that this machine's driver shows."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return 0.0
    try:
        done = subprocess.run([command, "-L"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0.0
    return float(sum(line.startswith("GPU ") for line in done.stdout.splitlines()))

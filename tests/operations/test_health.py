"""A run measures itself: figures for whoever collects them, and a table of its own in SQL."""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ethnos import logs
from ethnos.actors.host import Host
from ethnos.meters import METERS, Totals, told_of
from ethnos.record.describe import tables
from ethnos.record.directory import RunDirectory
from ethnos.record.health import FOLDER, HEALTH, HealthLog, read_health
from ethnos.record.reader import connect, query
from ethnos.record.verify import verify
from ethnos.rights import token_for
from ethnos.run import create, run_here
from ethnos.world.hosts import Placement
from ethnos.world.service import WorldService
from ethnos.world.vitals import STALLED_S, Vitals
from tests.tiny import make_run, no_model, orchard

pytestmark = pytest.mark.usefixtures("runs")


class Kept:
    """Keeps what is measured, and takes nothing that is not declared."""

    def __init__(self) -> None:
        self.sums = Counter[tuple[str, str]]()
        self.gauges: dict[tuple[str, str], float] = {}
        self.observed = Counter[str]()

    def add(self, name: str, amount: float = 1.0, label: str = "") -> None:
        assert METERS[name].sort == "counter"
        assert bool(label) == bool(METERS[name].label)
        self.sums[name, label] += amount  # type: ignore[assignment]

    def set(self, name: str, value: float, label: str = "") -> None:
        assert METERS[name].sort == "gauge"
        self.gauges[name, label] = value

    def observe(self, name: str, value: float) -> None:
        assert METERS[name].sort == "histogram"
        self.observed[name] += 1


async def live(run: RunDirectory, meters: Kept) -> None:
    society = orchard()
    service = WorldService(run, society, Placement(10, 1), "secret", meters=meters)
    hosting: list[asyncio.Task[str]] = []

    def announce(address: str) -> None:
        token = token_for("secret", "act")
        hosting.append(asyncio.create_task(Host(society, no_model).live(address, token, 0, 0)))

    await service.run("127.0.0.1", announce)
    await hosting[0]


@pytest.fixture
def lived() -> Iterator[tuple[RunDirectory, Kept]]:
    run, meters = create(orchard(), "measured"), Kept()
    asyncio.run(live(run, meters))
    yield run, meters


def test_what_is_measured_is_what_happened(lived: tuple[RunDirectory, Kept]) -> None:
    run, meters = lived
    with connect(run) as con:
        ticks, steps, rejected = con.sql("SELECT max(tick), sum(decisions), sum(rejected) FROM ticks").fetchall()[0]
        population = con.sql("SELECT population FROM ticks ORDER BY tick DESC LIMIT 1").fetchall()[0][0]
    assert meters.sums["ethnos_ticks_total", ""] == ticks == meters.observed["ethnos_tick_seconds"]
    assert meters.sums["ethnos_agent_steps_total", ""] == steps == meters.observed["ethnos_decision_seconds"]
    assert meters.sums["ethnos_fallbacks_total", "rejected"] == rejected > 0
    assert meters.gauges["ethnos_tick", ""] == ticks
    assert meters.gauges["ethnos_population", ""] == population
    assert meters.gauges["ethnos_memory_bytes", ""] > 10**7
    assert meters.gauges["ethnos_disk_free_bytes", ""] > 0


def test_health_is_a_table_and_not_part_of_the_record(lived: tuple[RunDirectory, Kept]) -> None:
    run, _ = lived
    assert verify(run).ok
    assert run.manifest().digest == run_here(orchard(), name="elsewhere").manifest().digest
    with connect(run) as con:
        rows = query(con, "SELECT * FROM health ORDER BY seen").to_pylist()
        totals = query(con, "SELECT sum(agent_steps), sum(rejected) FROM health")
        assert totals.to_pylist()[0] == dict(
            zip(
                totals.column_names,
                con.sql("SELECT sum(decisions), sum(rejected) FROM ticks").fetchall()[0],
                strict=True,
            )
        )
    assert rows[-1]["tick"] == 30
    assert rows[-1]["open_files"] > 0
    described = {t.name: t for t in tables(run)}["health"]
    assert all(c.meaning for c in described.columns)


def test_a_run_without_health_is_as_good() -> None:
    made = make_run("plain").run
    with connect(made) as con:
        assert con.sql("SELECT count(*) FROM health").fetchall() == [(0,)]


def test_damaged_health_is_passed_over(lived: tuple[RunDirectory, Kept]) -> None:
    run, _ = lived
    (file,) = (run.path / FOLDER).glob("*.arrows")
    whole = file.read_bytes()
    for spoilt in (b"", b"nonsense", whole[: len(whole) // 2], whole[:-9] + b"\xff" * 9):
        file.write_bytes(spoilt)
        assert read_health(run).schema == HEALTH
    (run.path / FOLDER / "odd name.arrows").write_bytes(whole)
    with HealthLog(run) as again:
        again.write({"tick": 1})
    assert 1 in read_health(run)["tick"].to_pylist()


class Heard(logging.Handler):
    """What our logger is told, whether or not an earlier test has set it up for a process of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler = Heard()
    logging.getLogger("ethnos").addHandler(handler)
    yield handler
    logging.getLogger("ethnos").removeHandler(handler)


def test_a_tick_that_hangs_is_told_of_once(heard: Heard) -> None:
    run, meters = make_run("stalled").run, Kept()
    with HealthLog(run) as health:
        vitals = Vitals(run, health, meters)
        vitals._committed_at = time.monotonic() - STALLED_S - 1
        for _ in range(2):
            vitals.look(7, "running", 3, 2, 0, 0)
        assert meters.gauges["ethnos_tick_age_seconds", ""] > STALLED_S
        vitals.look(7, "paused", 3, 2, 0, 0)
        assert meters.gauges["ethnos_tick_age_seconds", ""] == 0
    assert [said[:26] for said in heard.said] == ["tick 8 has not ended after"]


def test_figures_of_the_pools() -> None:
    meters = Kept()
    totals = Totals(meters)
    engine = {"down": False, "prompt_tokens": 100, "cached_tokens": 40, "completion_tokens": 7}
    told_of(meters, totals, {"m": {"waiting": 3, "in_flight": 2, "retries": 1, "engines": {"e": engine}}})
    down = {**engine, "down": True, "prompt_tokens": 150}
    told_of(meters, totals, {"m": {"waiting": 0, "in_flight": 0, "retries": 1, "engines": {"e": down}}})
    told_of(meters, totals, {"m": {"engines": {"e": {"prompt_tokens": 5}}}})
    assert meters.sums["ethnos_model_prompt_tokens_total", "m"] == 155, "one that began anew is counted on"
    assert meters.sums["ethnos_model_retries_total", "m"] == 1
    assert meters.gauges["ethnos_model_waiting", "m"] == 0


def test_logs_for_machines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ETHNOS_LOG", "json")
    logs.configure()
    log = logging.getLogger("ethnos.test")
    with logs.about(run="r", tick=3), logs.about(agent=7):
        log.warning("said \x1b[31m %s with Bearer look.0123456789abcdef", "sk-0123456789")
    try:
        raise ValueError("key-0123456789 is wrong")
    except ValueError:
        log.exception("then")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert {k: first[k] for k in ("run", "tick", "agent", "level", "logger")} == {
        "run": "r", "tick": 3, "agent": 7, "level": "warning", "logger": "ethnos.test",
    }  # fmt: skip
    assert "0123456789" not in first["message"] + second["error"]
    assert "run" not in second
    monkeypatch.delenv("ETHNOS_LOG")
    logs.configure()
    log.info("quiet")
    log.warning("two\nlines")
    assert capsys.readouterr().err == "warning: two\\nlines\n"


def test_the_folder_of_health_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("ethnos.record.health.MAX_FILES", 3)
    run = make_run("restarted").run
    for _ in range(6):
        with HealthLog(run):
            pass
    assert len(list((run.path / FOLDER).iterdir())) == 3

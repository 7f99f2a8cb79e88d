"""The commands that look: tables for people, one object for programs, one message for every mistake."""

import csv
import io
import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from ethnos.analytics.sparkline import sparkline
from ethnos.cli import main
from ethnos.cli.app import app
from ethnos.cli.output import safe
from ethnos.errors import EthnosError, QueryError, RunNotFound
from ethnos.world.world import Step
from tests.tiny import make_run, orchard

ETHNOS = [sys.executable, "-c", "from ethnos.cli import main; main()"]
EVIL = "\x1b[31m[bold]red[/bold]\x07 \u202egnp.exe\u2066\x9b2J\r\n| 'quoted' \"too\" \U000e0041"


def call(*arguments: str) -> str:
    """What a command prints; its errors are raised."""
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def command(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """A command as a process of its own."""
    return subprocess.run([*ETHNOS, *arguments], capture_output=True, text=True, timeout=60, check=False, **options)


@pytest.fixture
def evil(runs: Path) -> Path:
    """A run whose agents wrote what could steer a terminal."""

    def spoil(step: Step) -> None:
        step.events = [(*row[:9], EVIL, row[10]) for row in step.events]

    make_run("evil", orchard(5), change=spoil)
    return runs


def test_runs(runs: Path) -> None:
    assert "There are no runs" in call("runs")
    assert json.loads(call("runs", "--json"))["runs"] == []
    make_run("done")
    make_run("dead", orchard(5), finish=False, seal=False)
    make_run("odd", orchard(5)).run.manifest_path.write_text("{")
    listed = {r["name"]: r for r in json.loads(call("runs", "--json"))["runs"]}
    assert {n: r["state"] for n, r in listed.items()} == {
        "done": "finished",
        "dead": "crashed",
        "odd": "damaged",
    }
    assert (listed["done"]["tick"], listed["done"]["population"]) == (30, 8)
    assert len(listed["done"]["curve"]) == 31
    table = call("runs")
    assert "crashed" in table
    assert sparkline(listed["done"]["curve"], 24) in table


def test_show(runs: Path) -> None:
    made = make_run("done")
    summary = json.loads(call("show", "done", "--json"))
    assert summary["digest"] == made.digest
    assert (summary["founders"], summary["births"], summary["deaths"]) == (5, 6, {"old age": 3})
    assert summary["rejected"] == sum(d.outcome == "rejected" for s in made.steps for d in s.decisions) > 0
    assert summary["decisions"] == sum(len(s.decisions) for s in made.steps)
    assert summary["cohorts"] == [
        {"cohort": "pickers", "count": 4, "mind": "picker"},
        {"cohort": "idlers", "count": 1, "mind": "idler"},
    ]
    shown = call("show", str(made.run.path))
    assert made.digest in shown
    assert "3 old age" in shown
    assert "4 pickers (picker)" in shown


def test_a_long_curve_is_shortened(runs: Path) -> None:
    make_run("long", orchard(300))
    curve = json.loads(call("show", "long", "--json"))["curve"]
    assert len(curve) == 120
    assert curve == sorted(curve)


def test_show_loads_no_code_of_a_run(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run("foreign", orchard(2)).run
    run.society.write_text(run.society.read_text().replace("tests.tiny:Orchard", "trap:Trap"))
    (tmp_path / "trap.py").write_text("raise SystemExit('loaded')")
    monkeypatch.chdir(tmp_path)
    manifest = run.manifest()
    manifest.society = sha256(run.society.read_bytes()).hexdigest()
    run.write_manifest(manifest)
    for words in (["show", "foreign"], ["verify", "foreign"], ["schema", "foreign"], ["runs"]):
        assert call(*words)


def test_verify(runs: Path) -> None:
    made = make_run("done")
    found = json.loads(call("verify", "done", "--json"))
    assert {k: found[k] for k in ("digest", "ticks", "ledger_residual", "ok", "failed")} == {
        "digest": made.digest,
        "ticks": 30,
        "ledger_residual": 0.0,
        "ok": True,
        "failed": [],
    }
    assert "WRONG" not in call("verify", "done")
    part = made.run.parts("events")[0]
    pq.write_table(pq.read_table(part).slice(0, 100), part)
    for words in (["verify", "done"], ["verify", "done", "--json"]):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert not found["ok"]
    assert {"record"} <= set(found["failed"])


def test_schema(runs: Path) -> None:
    make_run("done", orchard(2))
    tables = {t["name"]: t for t in json.loads(call("schema", "done", "--json"))["tables"]}
    assert {"events", "decisions", "ticks", "agents", "messages", "artifacts", "picked", "born"} <= tables.keys()
    assert all(c["meaning"] for n in ("events", "ticks", "agents") for c in tables[n]["columns"])
    columns = {c["name"]: c for c in tables["picked"]["columns"]}
    assert (columns["apples"]["type"], columns["apples"]["unit"]) == ("DOUBLE", "apples")
    assert "An apple was picked." in call("schema", "done")


def test_sql_as_a_table(runs: Path) -> None:
    make_run("done")
    shown = call("sql", "done", "SELECT kind, count(*) AS n FROM events GROUP BY kind ORDER BY kind")
    assert "born" in shown
    assert "6 rows" in shown or "5 rows" in shown
    shown = call("sql", "done", "SELECT * FROM range(1000000000)", "--limit", "3")
    assert "The first 3 rows." in shown


def test_sql_as_data(runs: Path, tmp_path: Path) -> None:
    make_run("done")
    query = "SELECT tick, population, sum(events) OVER () AS n, NULL AS nothing FROM ticks ORDER BY tick"
    answer = json.loads(call("sql", "done", query, "--json"))
    assert answer["rows"][0] == {"tick": 0, "population": 5, "n": 209, "nothing": None}
    rows = list(csv.reader(io.StringIO(call("sql", "done", query, "--csv"))))
    assert rows[:2] == [["tick", "population", "n", "nothing"], ["0", "5", "209", ""]]
    assert len(rows) == 32
    file = tmp_path / "out.parquet"
    call("sql", "done", query, "--parquet", str(file))
    assert pq.read_table(file).num_rows == 31
    with pytest.raises(EthnosError, match="exists"):
        call("sql", "done", query, "--parquet", str(file))
    call("sql", "done", "SELECT 1", "--parquet", str(file), "--force")
    assert pq.read_table(file).num_rows == 1
    assert [p.name for p in tmp_path.glob("*aside*")] == []


def test_sql_values_that_json_does_not_have(runs: Path) -> None:
    make_run("done", orchard(2))
    query = (
        "SELECT 'nan'::DOUBLE AS a, 'inf'::DOUBLE AS b, 1::HUGEINT AS c, 1.5::DECIMAL(4, 2) AS d, [1, 2] AS e, "
        "{'x': 'y'} AS f, DATE '2020-01-02' AS g, 'ab'::BLOB AS h, INTERVAL 1 DAY AS i, 1 AS c, MAP {'k': 1} AS j"
    )
    (row,) = json.loads(call("sql", "done", query, "--json"))["rows"]
    row.pop("i")
    assert row == {
        "a": None,
        "b": None,
        "c": 1,
        "d": 1.5,
        "e": [1, 2],
        "f": {"x": "y"},
        "g": "2020-01-02",
        "h": "6162",
        "c_2": 1,
        "j": [["k", 1]],
    }
    assert call("sql", "done", query, "--csv").count("\n") == 2
    assert call("sql", "done", query)


def test_sql_over_several_runs(runs: Path) -> None:
    for name in ("exp-1", "exp-2", "other"):
        make_run(name, orchard(3))
    query = "SELECT run, max(tick) AS t FROM ticks GROUP BY run ORDER BY run"
    both = [{"run": "exp-1", "t": 3}, {"run": "exp-2", "t": 3}]
    assert json.loads(call("sql", "exp-1", "exp-2", query, "--json"))["rows"] == both
    assert json.loads(call("sql", "exp*", query, "--json"))["rows"] == both
    assert json.loads(call("sql", "oth*", query, "--json"))["rows"] == [{"run": "other", "t": 3}]
    with pytest.raises(RunNotFound, match="nix"):
        call("sql", "nix*", query)


def test_sql_only_reads_what_it_was_asked_about(runs: Path) -> None:
    make_run("done", orchard(3))
    with pytest.raises(QueryError, match="COPY is not taken"):
        call("sql", "done", "COPY events TO 'x.csv'")
    with pytest.raises(QueryError, match="batches"):
        call("sql", "done", "SELECT * FROM batches")
    with pytest.raises(QueryError):
        call("sql", "done", "SELECT error('half way') FROM events", "--csv")


def test_no_text_of_an_agent_steers_a_terminal(evil: Path) -> None:
    query = "SELECT text, text AS again FROM events"
    shown = call("sql", "evil", query) + call("sql", "evil", query, "--json") + call("show", "evil")
    assert all(c.isprintable() or c == "\n" for c in shown), [c for c in shown if not c.isprintable()]
    assert "[bold]red[/bold]" in shown
    assert "\\x1b[31m" in shown
    exact = CliRunner().invoke(app, ["sql", "evil", query, "--csv"]).stdout_bytes.decode()
    rows = list(csv.reader(io.StringIO(exact, newline="")))
    assert {r[0] for r in rows[1:]} == {EVIL}
    assert {r["text"] for r in json.loads(call("sql", "evil", query, "--json"))["rows"]} == {EVIL}


def test_safe() -> None:
    assert safe("Grüße, 世界 🙂\u00a0ok") == "Grüße, 世界 🙂\u00a0ok"
    assert safe("a\nb\tc\x7f\ud800") == "a\\nb\\tc\\x7f\\ud800"
    assert safe("abcdef", 4) == "abc…"


def test_sparkline() -> None:
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([0, 100], 1) == "█"
    assert len(sparkline(list(range(1000)), 40)) == 40


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["show", "nix"], 1, "no run named 'nix'"),
        (["verify", "nix", "--json"], 1, "no run named 'nix'"),
        (["sql", "nix", "select 1"], 1, "no run named 'nix'"),
        (["run", "nix.yaml"], 1, "no society file 'nix.yaml'"),
        (["run", "terra", "--set", "world.nix=1", "--set", "seed=x"], 1, "--set world.nix: unknown key"),
        (["import", "terralingua", "nix.json", "-o", "x.yaml"], 1, "nix.json"),
        (["sql", "nix"], 2, "at least one run"),
        (["sql", "nix", "select 1", "--csv", "--json"], 2, "choose one"),
        (["fly"], 2, "No such command"),
        (["show"], 2, "Missing argument"),
        (["run", "terra", "--ticks", "many"], 2, "valid integer"),
    ],
)
def test_mistakes_get_one_message(runs: Path, words: list[str], code: int, message: str) -> None:
    result = command(*words)
    assert result.returncode == code
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_all_mistakes_in_a_society_are_listed(runs: Path) -> None:
    result = command("run", "terra", "--seed", "-1", "--ticks", "0", "--set", "world.food.zpawn=1")
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 3


def test_commands_work_without_any_standard_stream(runs: Path) -> None:
    make_run("done", orchard(3))
    inner = "import os; {}; from ethnos.cli import main; import sys; sys.argv = ['ethnos', *{}]; main()"
    for words in (["runs"], ["show", "done"], ["sql", "done", "from ticks"], ["verify", "done", "--json"]):
        for closing in ("os.close(0)", "os.close(0); os.close(2)"):
            code = inner.format(closing, words)
            result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
            assert (result.returncode, result.stderr) == (0, "")
            assert result.stdout


def test_a_reader_that_leaves_is_no_error(runs: Path) -> None:
    make_run("done", orchard(200))
    for words in ("sql done 'from events' --csv", "sql done 'from events' --json", "schema done", "runs"):
        line = f'{sys.executable} -c "from ethnos.cli import main; main()" {words} | true'
        result = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert result.stderr == ""


def test_output_fits_any_locale(runs: Path) -> None:
    make_run("done", orchard(3))
    narrow = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for words in (["runs"], ["show", "done"], ["schema", "done"]):
        result = command(*words, env=narrow)
        assert (result.returncode, result.stderr) == (0, "")


def test_help_is_light() -> None:
    """Nothing heavy is loaded before a command needs it."""
    code = (
        "import sys; from ethnos.cli.app import app; import typer.main; typer.main.get_command(app); "
        "print([m for m in ('pyarrow', 'duckdb', 'numpy', 'ray', 'pydantic', 'grpc') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    assert command("--help").returncode == 0
    assert command("--version").stdout.startswith("ethnos ")


def test_main_tells_errors_in_one_line(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["ethnos", "show", "\x1b[31mnix"])
    monkeypatch.setattr("ethnos.cli._open_streams", lambda: None)
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 1
    assert "\x1b" not in capsys.readouterr().err

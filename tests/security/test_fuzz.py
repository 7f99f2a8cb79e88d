"""A quick look for crashes, hangs and growth; `scripts/fuzz` looks for longer."""

from pathlib import Path

from tests.security.fuzz import fuzz_edge, fuzz_run_directories, fuzz_society_files
from tests.tiny import make_run


def test_the_edge_takes_anything(tmp_path: Path) -> None:
    found = fuzz_edge(tmp_path, 6_000)
    assert found.messages >= 6_000
    assert found.ticks > 1
    assert {"OK", "UNAUTHENTICATED", "PERMISSION_DENIED"} <= set(found.codes)
    assert found.rss_end - found.rss_begin < 100 * 2**20


def test_society_files_may_be_anything() -> None:
    outcomes = fuzz_society_files(80)
    assert set(outcomes) == {"valid", "refused"}


def test_run_directories_may_be_anything(tmp_path: Path) -> None:
    run = make_run("sound", folder=tmp_path).run
    outcomes = fuzz_run_directories(run, tmp_path, 15)
    assert {o.partition(": ")[2] for o in outcomes} >= {"unsound", "refused"}

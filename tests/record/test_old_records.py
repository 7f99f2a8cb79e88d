"""Records that earlier versions wrote are read for ever, replayed, and gone on with; or refused in so many words."""

import json
import shutil
from pathlib import Path

import pytest

from ethnos.actors.here import run_here
from ethnos.errors import RecordDamaged
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import connect, query
from ethnos.record.schema import FORMAT
from ethnos.record.verify import verify
from ethnos.replay import replay
from ethnos.run import check_resumable

RECORDS = Path(__file__).resolve().parents[1] / "data" / "records"
VERSIONS = sorted(p.name for p in RECORDS.iterdir())
DIGESTS = {"0.1.0": "c6bbc7fbc24027a6036952b91432c821a427304c54be5d025bce20d8a6dfa171"}
"""Of the run that ended, by the version that wrote it: written down here, so that nothing can drift along."""


def copied(version: str, name: str, folder: Path) -> RunDirectory:
    shutil.copytree(RECORDS / version / name, folder / name)
    return RunDirectory(folder / name)


def test_each_version_has_its_digest() -> None:
    assert list(DIGESTS) == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_sound_and_can_be_asked(version: str, tmp_path: Path) -> None:
    run = copied(version, "ended", tmp_path)
    found = verify(run)
    assert found.ok, [c for c in found.checks if not c.ok]
    assert found.digest == DIGESTS[version]
    with connect(run) as con:
        assert query(con, "SELECT max(tick) FROM ticks").to_pylist() == [{"max(tick)": 14}]
        assert query(con, "SELECT * FROM agents").num_rows >= 6
        assert query(con, "SELECT * FROM drunk WHERE sip = 'small'").num_rows
        assert query(con, "SELECT sum(prompt_tokens) AS n FROM calls").to_pylist()[0]["n"] > 0
        assert query(con, "SELECT * FROM messages WHERE text LIKE '%☃'").num_rows


@pytest.mark.parametrize("version", VERSIONS)
def test_it_happens_again(version: str, tmp_path: Path) -> None:
    again = replay(copied(version, "ended", tmp_path))
    assert again.ok, again


@pytest.mark.parametrize("version", VERSIONS)
def test_one_that_was_cut_off_goes_on(version: str, tmp_path: Path) -> None:
    run = copied(version, "cut-off", tmp_path)
    with connect(run) as con:
        assert query(con, "SELECT max(tick) AS t FROM ticks").to_pylist() == [{"t": 8}]
    check_resumable(run)
    run_here(run)
    assert run.manifest().digest == DIGESTS[version]


def test_a_format_of_the_future_is_refused(tmp_path: Path) -> None:
    run = copied(VERSIONS[0], "ended", tmp_path)
    manifest = json.loads(run.manifest_path.read_bytes())
    run.manifest_path.write_text(json.dumps({**manifest, "format": FORMAT + 1}))
    with pytest.raises(RecordDamaged, match=f"has record format {FORMAT + 1}, this version of Ethnos reads {FORMAT}"):
        run.manifest()

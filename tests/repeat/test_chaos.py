"""Whatever is killed whenever: no committed tick is lost, none is done twice, and the outcome is the same.

The quick version; `scripts/chaos` does it for as long as one likes, on two nodes as well.
"""

from pathlib import Path

import pytest

from tests.repeat.chaos import Tally, fickle, scripted

pytestmark = [pytest.mark.ray, pytest.mark.timeout(480)]


def test_minds_in_code_end_where_they_would_have(tmp_path: Path) -> None:
    tally = Tally()
    scripted(tmp_path, ["agents", "driver", "world", "driver"], 1, tally)
    assert tally.ok, str(tally)
    assert tally.kills["driver"] and tally.resumes == tally.kills["driver"]


@pytest.mark.slow
def test_minds_that_never_decide_the_same_are_repeated_by_their_record(tmp_path: Path) -> None:
    tally = Tally()
    fickle(tmp_path, ["driver", "agents"], 2, tally)
    assert tally.ok, str(tally)
    assert tally.kills and tally.paid_twice == 0

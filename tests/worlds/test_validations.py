"""What is known of each world comes out of it, in the quick version; and a wrong target is found out."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ethnos.cli.app import app
from ethnos.errors import SocietyError
from ethnos.validation import Above, Below, Exactly, Mean, Share, Validation, interval, validations_of, wilson
from ethnos.world.scenarios import known

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation.md"
ALL = [pytest.param(v, id=f"{world}: {v.name}") for world in sorted(known()) for v in validations_of(world)]


@pytest.mark.parametrize("validation", ALL)
def test_what_is_known_comes_out(validation: Validation) -> None:
    measured = validation.judge(quick=True)
    assert measured.holds, measured


COIN = np.array([0.0, 1.0] * 500)


@pytest.mark.parametrize(
    ("target", "wrong"),
    [
        (Exactly(2.0), Exactly(2.1)),
        (Exactly(2.0), Exactly(math.nan)),
        (Exactly(2.05, rounding=0.06), Exactly(2.05, rounding=0.04)),
    ],
)
def test_every_replicate_has_to_hit_an_exact_target(target: Exactly, wrong: Exactly) -> None:
    assert target.judge(np.array([2.0, 2.0])).holds
    assert not wrong.judge(np.array([2.0, 2.0])).holds
    assert not target.judge(np.array([2.0, 3.0])).holds


@pytest.mark.parametrize(
    ("target", "wrong"),
    [
        (Mean(0.5), Mean(0.56)),
        (Mean(0.5), Mean(0.44)),
        (Mean(0.57, rounding=0.05), Mean(0.57)),
        (Mean(0.45, sd=0.5), Mean(0.55, sd=0.1)),
        (Share(0.5), Share(0.56)),
        (Share(0.57, rounding=0.05), Share(0.44)),
        (Above(0.4), Above(0.46)),
        (Below(0.6), Below(0.54)),
    ],
)
def test_a_target_beyond_the_interval_does_not_hold(target: Mean, wrong: Mean) -> None:
    assert target.judge(COIN).holds
    assert not wrong.judge(COIN).holds


def test_intervals_follow_from_the_number_of_replicates() -> None:
    _, low, high = interval(COIN)
    assert high - low == pytest.approx(2 * 3.29 * 0.5 / math.sqrt(1000), rel=1e-3)
    with pytest.raises(ValueError, match="do not tell their own spread"):
        interval(COIN[:10])
    assert wilson(0.0, 10)[0] == pytest.approx(0.0, abs=1e-12)
    assert wilson(0.0, 10)[1] > 0.5


def test_the_intervals_cover_as_often_as_they_say() -> None:
    """Of 4,000 sets of 50 tosses each, some 4 in 1,000 are missed by the interval: never more than 1 in 100."""
    tosses = np.random.default_rng(1).binomial(50, 0.3, 4_000) / 50
    missed = sum(not Share(0.3).judge(np.repeat([1.0, 0.0], [round(t * 50), 50 - round(t * 50)])).holds for t in tosses)
    assert missed < 40


def test_what_is_no_number_does_not_hold() -> None:
    broken = Validation("a", "b", Mean(1.0, sd=1.0), lambda seeds: [math.inf for _ in seeds])
    assert not broken.judge().holds
    with pytest.raises(ValueError, match="replicates"):
        Validation("a", "b", Mean(1.0, sd=1.0), lambda seeds: [1.0, 2.0]).judge()


def test_the_command_says_what_does_not_hold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from ethnos.world.truths import commons

    first = commons.VALIDATIONS[0]
    wrong = Validation("a pipe | in it", "nowhere", Exactly(1_000), first.measure)
    monkeypatch.setattr(commons, "VALIDATIONS", (first, wrong))
    page = tmp_path / "page.md"
    done = CliRunner().invoke(app, ["validate", "commons", "--json", "--page", str(page)])
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert not told["ok"]
    assert [v["holds"] for v in told["validations"]] == [True, False]
    assert r"a pipe \| in it" in page.read_text() and "DOES NOT HOLD" in page.read_text()
    done = CliRunner().invoke(app, ["validate", "commons", "--quick"])
    assert done.exit_code == 1 and "1 of 2 hold" in done.stdout
    monkeypatch.setattr(commons, "VALIDATIONS", (first,))
    assert CliRunner().invoke(app, ["validate", "commons"]).exit_code == 0


def test_a_world_that_says_nothing_is_an_error() -> None:
    with pytest.raises(SocietyError, match="says nothing of what must come out"):
        validations_of("tests.tiny:Orchard")


def test_the_page_is_that_of_these_worlds() -> None:
    """docs/validation.md is made by `ethnos validate --page`; it names every target there is, and all of them hold."""
    text = PAGE.read_text("utf-8")
    rows = [v.values[0] for v in ALL]
    lost = [v.name for v in rows if f"| {v.name} | {v.source} | {v.target} |".replace("|", "|") not in text]
    assert not lost, f"run `ethnos validate --page docs/validation.md`: {lost}"
    assert "DOES NOT HOLD" not in text

"""Society files: everything wrong is reported together, each with its place and a suggestion; never a traceback."""

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ethnos import society
from ethnos.actors.minds.making import make_mind
from ethnos.errors import SocietyError
from ethnos.society import load, parse, shipped_societies
from tests.tiny import no_model

TERRA = """\
scenario: terra
seed: 3
ticks: 20
world:
  food:
    spawn_rate: 2
population:
  - cohort: beings
    count: 5
    mind: forager
"""


def problems(text: str, *changes: str) -> list[str]:
    with pytest.raises(SocietyError) as error:
        parse(text, "s.yaml", changes)
    return str(error.value).splitlines()


def test_every_default_is_written_out_and_read_back() -> None:
    whole = parse(TERRA)
    written = whole.to_yaml()
    assert parse(written) == whole
    assert yaml.safe_load(written)["world"]["food"]["decay_rate"] == 0.05
    assert yaml.safe_load(written)["population"][0]["mind"]["kind"] == "scripted"


@pytest.mark.parametrize("name", shipped_societies())
def test_shipped_societies_are_sound(name: str) -> None:
    found = load(name)
    found.make_scenario()
    assert [make_mind(found, c.name, no_model) for c in found.cohorts()]
    assert shipped_societies()[name].read_text().startswith("#")


def test_the_shipped_core_is_what_terra_defaults_to() -> None:
    core = load("terra")
    assert core.make_scenario().params == core.scenario_class().Params()
    assert (core.ticks, sum(c.count for c in core.population)) == (3000, 20)


def test_everything_wrong_is_reported_together() -> None:
    text = TERRA.replace("seed: 3", "sed: 3").replace("ticks: 20", "ticks: many")
    text = text.replace("spawn_rate: 2", "spawnrate: 2\n    decay_rate: 7").replace("count: 5", "count: -5")
    found = problems(text)
    assert sorted(line.split(":")[1] for line in found) == ["10", "2", "3", "6", "7"]
    text = "\n".join(found)
    assert "did you mean 'seed'?" in text
    assert "did you mean 'spawn_rate'?" in text
    assert "'many'" in text


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("scenario: terra", "scenario: tera", 1, "did you mean 'terra'?"),
        ("scenario: terra", "scenario: os:path", 1, "os has no scenario"),
        ("scenario: terra", "scenario: no_such_module:X", 1, "no_such_module"),
        ("scenario: terra", "scenario: [terra]", 1, "valid string"),
        ("mind: forager", "mind: forrager", 10, "did you mean 'forager'?"),
        ("mind: forager", "mind: {name: forager, settings: {reproduce: 3}}", 10, "reproduce"),
        ("mind: forager", "mind: {name: forager, settings: {reproduce_at: x}}", 10, "reproduce_at"),
        ("mind: forager", "mind: {nme: forager}", 10, "did you mean 'name'?"),
        ("mind: forager", "mind: 7", 10, ""),
        ("seed: 3", "seed: -1", 2, "greater than or equal to 0"),
        ("seed: 3", "seed: 1.5", 2, "1.5"),
        ("seed: 3", "seed: 99999999999999999999", 2, "less than"),
        ("ticks: 20", "ticks: .nan", 3, ""),
        ("ticks: 20", "agents_per_actor: 0", 3, ""),
        ("ticks: 20", "agents_per_actor: all", 3, "auto"),
        ("ticks: 20", "decision_deadline: .inf", 3, "finite"),
        ("    count: 5", "    count: 99999", 4, "do not fit"),
        ("spawn_rate: 2", "spawn_rate: .nan", 6, "finite"),
        ("spawn_rate: 2", "zones: [[99, 1]]", 4, "outside"),
        ("cohort: beings", "cohort: 'a b'", 8, "match pattern"),
        ("ticks: 20", "ticks: 20\nticks: 30", 4, "twice"),
        ("ticks: 20", "seed: 30", 3, "twice"),
    ],
)
def test_a_problem_has_its_line_and_a_suggestion(old: str, new: str, line: int, words: str) -> None:
    found = problems(TERRA.replace(old, new))
    assert any(p.startswith(f"s.yaml:{line}: ") and words in p for p in found), found


def test_a_cohort_twice() -> None:
    found = problems(TERRA + "  - {cohort: beings, count: 1, mind: forager}\n")
    assert found == ["s.yaml:11: population.1.cohort: the cohort 'beings' is there twice"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "- a",
        "a: [",
        "\0",
        "a: &x 1\nb: *x",
        "a: !!python/object:os.system {}",
        "? [1]\n: 2",
        "[" * 5000,
        "{}",
        "scenario: terra",
        "scenario: terra\npopulation: []",
        "scenario: terra\npopulation: {}",
        "2020-13-45: 1",
        "a: 2020-13-45",
        "1: 2\n? !!binary x\n: 3",
    ],
)
def test_what_is_no_society_is_said_to_be_none(text: str) -> None:
    assert problems(text)


def test_changes_win_and_are_named_when_wrong() -> None:
    changed = parse(TERRA, "s", ["world.food.spawn_rate=3", "agents_per_actor=7", "population.0.count=2", "seed=9"])
    assert changed.world["food"]["spawn_rate"] == 3
    assert (changed.agents_per_actor, changed.population[0].count, changed.seed) == (7, 2, 9)
    assert problems(TERRA, "world.food.spwn_rate=3")[0].startswith("--set world.food.spwn_rate: unknown key")
    assert problems(TERRA, "ticks=x")[0].startswith("--set ticks: ")
    for change in ("ticks", "=1", "population.7.count=1", "population.x=1", "seed.deep.er=1", "ticks=[", "..=1"):
        assert problems(TERRA, change)


def test_files(tmp_path: Path) -> None:
    with pytest.raises(SocietyError, match="did you mean 'terra'"):
        load("tera")
    with pytest.raises(SocietyError, match="no society file"):
        load(tmp_path)
    big = tmp_path / "big.yaml"
    big.write_bytes(b"#" * (society.MAX_FILE_BYTES + 1))
    with pytest.raises(SocietyError, match="larger"):
        load(big)
    big.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SocietyError, match="cannot read"):
        load(big)


KEYS = st.sampled_from(
    ["scenario", "seed", "ticks", "world", "population", "food", "life", "zones", "cohort", "count", "mind"]
    + ["name", "settings", "kind", "persona", "agents_per_actor", "width", "x", "spawn_rate", "sight"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["terra", "commons", "forager", "auto", "scripted", "beings"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(KEYS, VALUES, max_size=6), st.booleans())
def test_any_mapping_is_a_society_or_a_list_of_problems(data: dict, based: bool) -> None:
    whole = {**(yaml.safe_load(TERRA) if based else {}), **data}
    try:
        parse(yaml.safe_dump(whole, allow_unicode=True), "s.yaml").to_yaml()
    except SocietyError as error:
        assert all(p.startswith(("s.yaml", "--set")) for p in str(error).splitlines()), str(error)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda b: b.decode("latin-1")))
def test_any_text_is_a_society_or_a_list_of_problems(text: str) -> None:
    with pytest.raises(SocietyError):
        parse(text)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=12), VALUES.map(str))
def test_any_change_is_made_or_refused(key: str, value: str) -> None:
    try:
        parse(TERRA, "s", [f"{key}={value}"])
    except SocietyError as error:
        assert str(error)

"""TerraLingua's parameter files become societies, and nothing is dropped without a word."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from ethnos import society
from ethnos.cli.app import app
from ethnos.errors import EthnosError, SocietyError
from ethnos.importers.terralingua import convert, read
from tests.tiny import steps

DATA = Path(__file__).parents[1] / "data"
CORE, ODD = DATA / "terralingua_core.json", DATA / "terralingua_odd.json"


def call(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["import", "terralingua", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_core_is_the_shipped_core(tmp_path: Path) -> None:
    out = tmp_path / "core.yaml"
    shown = call(str(CORE), "-o", str(out))
    assert "agent.model" in shown
    imported, shipped = society.load(out), society.load("terra")
    assert imported.make_scenario().params == shipped.make_scenario().params
    assert (imported.ticks, imported.population[0].count) == (3000, 20)
    played = list(steps(society.load(out, ["ticks=30"])))
    assert played[-1].tick == 30
    assert played[-1].population > 0


def test_every_setting_is_carried_over_or_named() -> None:
    """Each setting changes the society when it changes, or is in the notes."""
    data = json.loads(CORE.read_text())
    before = convert(data)
    named = {n.setting for n in before.notes}
    other: dict[type, Any] = {bool: lambda v: not v, int: lambda v: v + 1, float: lambda v: v / 2}
    words = {"base": "none", "ocean_5": "no_traits", "single": "area"}
    for section, values in data.items():
        for key, value in values.items():
            changed = json.loads(CORE.read_text())
            change = other.get(type(value), lambda v: words.get(v, "other") if isinstance(v, str) else [1])
            changed[section][key] = change(value)
            after = convert(changed)
            setting = f"{section}.{key}"
            notes = named | {n.setting for n in after.notes}
            assert after.society != before.society or setting in notes, setting


def test_odd_settings_are_named(tmp_path: Path) -> None:
    out = tmp_path / "odd.yaml"
    notes = {n["setting"]: n for n in json.loads(call(str(ODD), "-o", str(out), "--json"))["notes"]}
    expected = {
        "agent.model",
        "agent.agents_name_prefix",
        "agent.use_colors",
        "agent.use_internal_memory",
        "agent.use_inventory",
        "agent.max_history",
        "agent.telepathy",
        "env.artifact_creation",
        "env.food_zones",
        "env.init_human_agents",
        "env.init_agent_energy",
        "env.min_agents",
        "env.reproduction_allowed",
        "env.static_food",
        "env.weather",
        "run.ports",
        "notes",
    }
    assert expected <= notes.keys()
    assert all(n["instead"] for n in notes.values())
    text = out.read_text()
    assert all(f"# - {setting} (" in text for setting in notes)
    assert all(line.isprintable() for line in text.splitlines())
    odd = society.load(out)
    assert odd.world["food"]["zones"] == [[10, 10], [40, 12]]
    assert (odd.world["life"]["genome"], odd.world["life"]["motivation"]) == ("none", "none")
    assert odd.mind_of("beings").settings == {"reproduce_at": None}
    assert list(steps(society.load(out, ["ticks=5"])))[-1].population == 7


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "x.yaml"
    out.write_text("mine")
    with pytest.raises(EthnosError, match="--force"):
        call(str(CORE), "-o", str(out))
    assert out.read_text() == "mine"
    call(str(CORE), "-o", str(out), "--force")
    assert yaml.safe_load(out.read_text())["scenario"] == "terra"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "params.json"),
        ("[]", "dictionary"),
        ("{}", "agent"),
        ('{"agent": {}, "env": {"grid_size": "50"}, "run": {"max_ts": 0}}', "env.grid_size"),
        ('{"agent": {}, "env": {"grid_size": 9}, "run": {}}', "at least 13"),
        ('{"agent": {}, "env": {"food_spawn_rate": NaN}, "run": {}}', "NaN is no number"),
        ('{"agent": {}, "env": {"food_spawn_rate": 1e999}, "run": {}}', "food_spawn_rate"),
        ('{"agent": {}, "agent": {}, "env": {}, "run": {}}', "twice"),
        ('{"agent": {}, "env": {"food_zones": [[1, 2, 3]]}, "run": {}}', "zones"),
        ('{"agent": {}, "env": {"food_zones": [["a", 2]]}, "run": {}}', "food_zones"),
        ('{"agent": {}, "env": {"init_agents": true}, "run": {}}', "init_agents"),
        ("[" * 100_000, "recursion"),
        ("\x00", "params.json"),
        ('{"agent": {}, "env": {"init_agents": 1' + "0" * 5000 + '}, "run": {}}', "params.json"),
    ],
)
def test_untrusted_files_get_a_message(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "params.json"
    file.write_text(text)
    with pytest.raises(SocietyError, match=words):
        call(str(file), "-o", str(tmp_path / "out.yaml"))
    assert not (tmp_path / "out.yaml").exists()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["agent", "env", "run"]), st.data(), JSON)
def test_any_value_is_taken_or_refused(section: str, data: st.DataObject, value: Any) -> None:
    given_ = json.loads(CORE.read_text())
    key = data.draw(st.sampled_from(sorted(given_[section])) | st.text(max_size=5))
    given_[section][key] = value
    try:
        imported = convert(given_)
    except SocietyError as error:
        assert f"{section}.{key}" in str(error)
    else:
        assert imported.notes


@pytest.mark.parametrize("name", ["terralingua_core_params.json", "terralingua_variant_params.json"])
def test_files_of_real_experiments(name: str) -> None:
    file = Path(__file__).parents[2].parent / "shared" / "inputs" / name
    if not file.exists():
        pytest.skip("the example is not here")
    assert read(file).society["scenario"] == "terra"

"""Finding scenarios, and holding every one of them against what the platform relies on."""

from pathlib import Path
from typing import Any

import pytest

from ethnos.errors import SocietyError
from ethnos.testing import check_scenario
from ethnos.world.scenarios import BUILT_IN, find
from ethnos.world.scenarios.commons import Commons, CommonsParams
from ethnos.world.scenarios.terra import Terra, TerraParams

PARAMS: list[tuple[str, dict[str, Any]]] = [
    ("terra", {}),
    ("terra", {"width": 13, "height": 13, "food": {"remains": "area", "zones": 0}, "artifacts": {"cost": 5}}),
    ("terra", {"life": {"energy": 5, "genome": "none", "motivation": "none"}, "artifacts": {"inert": True}}),
    ("commons", {}),
    ("commons", {"talk": 2, "turns": "rotating", "assignment": "random", "join": {"others": 2}, "hint": True}),
    ("commons", {"talk": 0, "pool": {"harmful": True, "growth": 1.3}}),
    ("donor", {"punishment": True, "known": 0.5, "rounds": 3}),
    ("donor", {"gift": "fixed", "depth": 0, "rounds": 2}),
    ("chain", {}),
    ("chain", {"network": "caveman", "degree": 3, "shown": 2, "hears_itself": True, "origins": ["One. Two 3.", "4"]}),
    ("chain", {"network": "full", "words": 40}),
]


@pytest.mark.parametrize(("name", "params"), PARAMS)
def test_every_scenario_keeps_what_the_platform_relies_on(name: str, params: dict[str, Any]) -> None:
    scenario = find(name)
    check_scenario(scenario, scenario.Params.model_validate(params), agents=8, ticks=40)


def test_there_are_scripted_minds_for_every_scenario() -> None:
    for name in BUILT_IN:
        assert len(find(name).minds) >= 2
        assert (find(name).__doc__ or "").strip()


class Unequal(Terra):
    """Loses energy when it moves on."""

    def advance(self, state: Any, tick: Any) -> None:
        super().advance(state, tick)
        for being in state.beings.values():
            being.energy += 1


class Forgetful(Terra):
    """Keeps something in self that no snapshot holds."""

    def advance(self, state: Any, tick: Any) -> None:
        super().advance(state, tick)
        self.count = getattr(self, "count", 0) + 1
        if self.count > 15 and state.food:
            del state.food[next(iter(state.food))]


class Crashing(Commons):
    """Raises what is not Refused."""

    def act(self, state: Any, agent: Any, action: Any, tick: Any) -> str | None:
        if getattr(action, "amount", 0) > 100:
            raise ValueError("too much")
        return super().act(state, agent, action, tick)


@pytest.mark.parametrize(
    ("scenario", "params", "error", "reason"),
    [
        (Unequal, TerraParams(), AssertionError, "energy from nowhere"),
        (Forgetful, TerraParams(), AssertionError, "from nowhere|snapshot"),
        (Crashing, CommonsParams(talk=0), ValueError, "too much"),
    ],
)
def test_a_broken_scenario_is_caught(scenario: Any, params: Any, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        check_scenario(scenario, params, ticks=40)


def test_a_scenario_is_found_by_name_or_by_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find("terra") is Terra
    assert find("ethnos.world.scenarios.commons:Commons") is Commons
    (tmp_path / "my_own_world.py").write_text(
        "from ethnos.world.scenarios.terra import Terra\nclass Mine(Terra):\n    'Mine.'\n"
    )
    monkeypatch.chdir(tmp_path)
    assert find("my_own_world:Mine").__name__ == "Mine"
    with pytest.raises(SocietyError, match="did you mean 'Mine'"):
        find("my_own_world:Nine")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("tera", "did you mean 'terra'"),
        ("nothing_like_it", "commons, donor, terra"),
        ("no_such_module:World", "no_such_module"),
        ("json:JSONDecoder", "no scenario"),
        (":World", "scenario"),
        ("..json:World", "cannot be imported: TypeError"),
        ("ethnos.world.scenario:Scenario", "no scenario"),
    ],
)
def test_what_is_not_found_is_explained(name: str, reason: str) -> None:
    with pytest.raises(SocietyError, match=reason):
        find(name)


@pytest.mark.parametrize(
    ("number", "code", "reason"),
    [
        (1, "def (:", "cannot be imported: SyntaxError"),
        (2, "1 / 0", "cannot be imported: ZeroDivisionError"),
        (3, "raise SystemExit(3)", "cannot be imported: SystemExit"),
        (
            4,
            "from ethnos import Scenario\nclass World(Scenario): minds = {}",
            "State, Observation, .*neutral, act, adv",
        ),
    ],
)
def test_a_module_that_is_broken_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: str, reason: str
) -> None:
    (tmp_path / f"broken_world_{number}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SocietyError, match=reason):
        find(f"broken_world_{number}:World")


def test_what_is_fixed_is_a_parameter() -> None:
    for name in BUILT_IN:
        scenario = find(name)
        for path in scenario.fixed:
            place = scenario.Params().model_dump()
            for part in path.split("."):
                assert part in place, f"{name} has no parameter {path}"
                place = place[part]

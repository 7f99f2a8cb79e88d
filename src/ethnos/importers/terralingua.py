"""TerraLingua's `params.json` as a society for Terra.

What both have is carried over. Every other setting is named, with what is done instead: an import that
quietly dropped a setting would be another experiment under the same name.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ethnos.errors import SocietyError

MAX_BYTES = 1_000_000
NEVER = 1_000_000
"""A cost that no being of these worlds can pay."""

Count = Annotated[int, Field(ge=0, le=10_000_000)]
Word = Annotated[str, Field(max_length=1_000)]


class _Section(BaseModel):
    """A section of the file: known settings are checked strictly, others are kept to be named."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)


class AgentSection(_Section):
    """Settings of beings."""

    agents_name_prefix: Word = "being"
    exogenous_motivation: Literal["base", "creative", "none"] = "base"
    genome: Literal["ocean_5", "no_traits"] = "ocean_5"
    internal_memory_size: Count = 150
    max_history: Count = 1
    model: Word | None = None
    obs_style: Word = "list"
    use_colors: bool = False
    use_internal_memory: bool = True
    use_inventory: bool = True


class EnvSection(_Section):
    """Settings of the world."""

    agent_lifespan: Annotated[int, Field(ge=1, le=1_000_000_000)] = 100
    artifact_creation: bool = True
    artifact_creation_cost: Annotated[int, Field(ge=0, le=NEVER)] = 0
    dead_agent_food: Literal["single", "area", "none"] = "single"
    food_decay_rate: Annotated[float, Field(ge=0, le=1)] = 0.05
    food_mechanism: bool = True
    food_spawn_rate: Annotated[float, Field(ge=0, le=1_000_000)] = 1
    food_zones: Annotated[int, Field(ge=0, le=100_000)] | list[list[Count]] | None = None
    grid_size: Annotated[int, Field(ge=3, le=16_384)] = 50
    inert_artifacts: bool = False
    init_agents: Annotated[int, Field(ge=0, le=1_000_000)] = 20
    init_human_agents: Count = 0
    init_agent_energy: Annotated[int, Field(ge=-1, le=1_000_000)] = 50
    init_food: Count = 100
    min_agents: Count = 0
    reproduction_allowed: bool = True
    reproduction_cost: Annotated[int, Field(ge=0, le=NEVER)] = 50
    static_food: bool = False
    vision_radius: Annotated[int, Field(ge=1, le=50)] = 6


class RunSection(_Section):
    """Settings of the experiment."""

    ckpt_interval: Count | None = 100
    empty_countdown: Count = 20
    exp_description: Word = ""
    exp_name: Word | None = None
    live_render: bool = False
    max_parallel_workers: Count = 8
    max_ts: Annotated[int, Field(ge=1, le=1_000_000_000)] = 3000
    ports: list[Count] = []
    save_root: Word | None = None
    save_video: bool = True
    video_fps: Count = 10


class Parameters(_Section):
    """The whole file. What a section leaves out has TerraLingua's default."""

    agent: AgentSection
    env: EnvSection
    run: RunSection


@dataclass(frozen=True)
class Note:
    """A setting without a counterpart."""

    setting: str
    value: Any
    instead: str


@dataclass(frozen=True)
class Imported:
    """A society that stands for an experiment."""

    society: Mapping[str, Any]
    notes: list[Note]
    title: str


def read(path: Path) -> Imported:
    """Read a parameter file. Raises SocietyError that lists everything wrong with it."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SocietyError(f"{path} is larger than {MAX_BYTES} bytes; that is no parameter file")
        data = json.loads(path.read_text("utf-8"), object_pairs_hook=_no_doubles, parse_constant=_no_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise SocietyError(f"{path}: {error or 'nested too deeply'}") from None
    return convert(data, str(path))


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a key is there twice: {', '.join(k for k, _ in pairs)}")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def convert(data: Any, name: str = "params.json") -> Imported:
    """The society for parsed parameters. Raises SocietyError that lists everything wrong with them."""
    try:
        given = Parameters.model_validate(data)
    except ValidationError as error:
        raise SocietyError("\n".join(_problems(name, error))) from None
    notes = [*_agent_notes(given.agent), *_env_notes(given.env), *_run_notes(given.run), *_unknown(given)]
    title = given.run.exp_name or "a TerraLingua experiment"
    return Imported(_society(given), notes, title)


def _problems(name: str, error: ValidationError) -> Iterator[str]:
    for e in error.errors(include_url=False):
        place = ".".join(str(p) for p in e["loc"]) or "the file"
        given = e.get("input")
        shown = "" if isinstance(given, dict | list) or e["type"] == "missing" else f", not {given!r:.60}"
        yield f"{name}: {place}: {e['msg'][0].lower()}{e['msg'][1:]}{shown}"


def _society(given: Parameters) -> dict[str, Any]:
    env = given.env
    return {
        "scenario": "terra",
        "seed": 0,
        "ticks": given.run.max_ts,
        "world": {
            "width": env.grid_size,
            "height": env.grid_size,
            "sight": env.vision_radius,
            "food": _food(env),
            "life": {
                "energy": _energy(env),
                "lifespan": env.agent_lifespan,
                "reproduction_cost": env.reproduction_cost if env.reproduction_allowed else NEVER,
                "genome": {"ocean_5": "ocean", "no_traits": "none"}[given.agent.genome],
                "motivation": given.agent.exogenous_motivation,
            },
            "artifacts": {
                "cost": env.artifact_creation_cost if env.artifact_creation else NEVER,
                "inert": env.inert_artifacts,
            },
        },
        "population": [{"cohort": "beings", "count": env.init_agents, "mind": _mind(given)}],
    }


def _mind(given: Parameters) -> dict[str, Any]:
    """One that does what beings of this experiment could do."""
    writes = given.env.artifact_creation and given.agent.use_inventory
    settings = {} if given.env.reproduction_allowed else {"reproduce_at": None}
    return {"kind": "scripted", "name": "villager" if writes else "forager", "settings": settings}


def _energy(env: EnvSection) -> int:
    """Energy at birth; TerraLingua takes a negative number for no end of it."""
    return NEVER if env.init_agent_energy < 0 else max(env.init_agent_energy, 1)


def _food(env: EnvSection) -> dict[str, Any]:
    there = env.food_mechanism
    return {
        "initial": env.init_food if there else 0,
        "spawn_rate": float(env.food_spawn_rate) if there else 0.0,
        "decay_rate": float(env.food_decay_rate),
        "zones": env.food_zones or 0,
        "remains": env.dead_agent_food if there else "none",
    }


def _agent_notes(agent: AgentSection) -> Iterator[Note]:
    def note(setting: str, instead: str) -> Note:
        return Note(f"agent.{setting}", getattr(agent, setting), instead)

    if agent.agents_name_prefix != "being":
        yield note("agents_name_prefix", "beings are called being0, being1, ...")
    yield note("model", "a scripted mind decides; the cohort's `mind` says which")
    yield note("internal_memory_size", "the scripted mind keeps no notes")
    yield note("max_history", "the scripted mind sees the present only")
    yield note("obs_style", "observations are structured; how a model is told of them is its mind's matter")
    yield note("use_colors", "beings have no colours" + "; none was asked for" * (not agent.use_colors))
    if not agent.use_internal_memory:
        yield note("use_internal_memory", "whether a being keeps notes is its mind's matter; this one keeps none")
    if not agent.use_inventory:
        yield note("use_inventory", "beings can carry artifacts; the scripted mind `forager` never does")


def _env_notes(env: EnvSection) -> Iterator[Note]:
    def note(setting: str, instead: str) -> Note:
        return Note(f"env.{setting}", getattr(env, setting), instead)

    if not env.artifact_creation:
        yield note("artifact_creation", f"creating one costs {NEVER} energy; the scripted mind `forager` never tries")
    if not env.food_mechanism:
        yield note("food_mechanism", "there is no food, but beings still need energy: give them enough at birth")
    if isinstance(env.food_zones, list):
        yield note("food_zones", "kept as [x, y]; x runs east here and down there: the map is mirrored, no more")
    if env.food_zones is None:
        yield note("food_zones", "food grows everywhere alike (zones: 0)")
    yield note("init_human_agents", "people cannot play here" if env.init_human_agents else "there were none")
    if env.init_agent_energy < 1:
        yield note("init_agent_energy", f"beings start with {_energy(env)}")
    yield note("min_agents", "nobody is added when few are left" if env.min_agents else "there was no minimum")
    if not env.reproduction_allowed:
        yield note("reproduction_allowed", f"a child costs {NEVER} energy; the scripted mind never tries")
    if env.static_food:
        yield note("static_food", "food grows anew anywhere in its zones, not only where it was")


def _run_notes(run: RunSection) -> Iterator[Note]:
    def note(setting: str, instead: str) -> Note:
        return Note(f"run.{setting}", getattr(run, setting), instead)

    yield note("ckpt_interval", "every tick is on disk before the next begins")
    yield note("empty_countdown", "the run ends as soon as nobody lives")
    yield note("exp_description", "kept as a comment in the society file")
    yield note("exp_name", "kept as a comment; `ethnos run --name` names a run")
    yield note("live_render", "nothing is drawn while it runs; `ethnos show` looks at a run at any time")
    yield note("max_parallel_workers", "agents are spread over Ray actors: see `agents_per_actor`")
    yield note("ports", "the scripted mind needs no model server")
    yield note("save_root", "runs go to ./runs, or to $ETHNOS_RUNS_DIR")
    yield note("save_video", "no video is made; the record holds every move")
    yield note("video_fps", "no video is made")


def _unknown(given: Parameters) -> Iterator[Note]:
    sections: dict[str, _Section] = {"": given, "agent.": given.agent, "env.": given.env, "run.": given.run}
    for prefix, section in sections.items():
        for key, value in (section.model_extra or {}).items():
            yield Note(f"{prefix}{key}", value, "not known to this importer; left out")


Clean = Callable[[object], str]


def to_yaml(imported: Imported, clean: Clean) -> str:
    """The society file, with what was left out as comments. `clean` makes a text fit for one line."""
    import yaml

    head = [f"# Imported from TerraLingua: {clean(imported.title)}."]
    head += [f"# {clean(n.value)}" for n in imported.notes if n.setting == "run.exp_description" and n.value]
    head += ["#", "# Settings without a counterpart, and what is done instead:"]
    head += [f"# - {clean(n.setting)} ({clean(json.dumps(n.value))}): {n.instead}" for n in imported.notes]
    body = yaml.safe_dump(dict(imported.society), sort_keys=False, default_flow_style=None, width=110)
    return "\n".join(head) + "\n\n" + body

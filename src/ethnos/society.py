"""The society file: what a user writes, validated as a whole before anything starts."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from ethnos.engines import BudgetSpec, EngineSpec
from ethnos.errors import Refused, SocietyError
from ethnos.world import scenarios
from ethnos.world.interventions import KINDS, AddAgent, Change, SetParameter
from ethnos.world.scenario import Cohort, Mind, Scenario
from ethnos.world.world import with_parameter

MAX_FILE_BYTES = 1_000_000
MAX_DEPTH = 50

Location = tuple[str | int, ...]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class ScriptedMind(_Model):
    """A mind in code that ships with the scenario."""

    kind: Literal["scripted"] = "scripted"
    name: str
    """One of the scenario's minds."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Its settings; what is left out keeps its default."""
    costly: bool = False
    """Whether its answers go to disk as they arrive, so that a crash in the middle of a tick loses none."""

    @property
    def label(self) -> str:
        """How the record calls it."""
        return f"scripted/{self.name}"


class LLMMind(_Model):
    """A mind that thinks with a language model."""

    kind: Literal["llm"] = "llm"
    model: str
    """One of the society's models."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """How it thinks: see `ethnos.actors.minds.Settings`; what is left out keeps its default."""

    @property
    def label(self) -> str:
        return f"llm/{self.model}"


class HumanMind(_Model):
    """A person decides, from another terminal (`ethnos play`). Whoever does not answer in time is late."""

    kind: Literal["human"] = "human"

    @property
    def label(self) -> str:
        return "human"


class RoutedMind(_Model):
    """Two minds: routine turns go to the small one, novel and costly ones to the large one."""

    kind: Literal["routed"] = "routed"
    small: ScriptedMind | LLMMind = Field(discriminator="kind")
    large: LLMMind
    rule: dict[str, Any] = Field(default_factory=dict)
    """What is not routine: see `ethnos.actors.minds.Rule`."""

    @property
    def label(self) -> str:
        return f"routed/{self.small.label}+{self.large.label}"


MindSpec = Annotated[ScriptedMind | LLMMind | RoutedMind | HumanMind, Field(discriminator="kind")]


def _short_mind(value: Any) -> Any:
    if value == "human":
        return {"kind": "human"}
    if isinstance(value, str):
        return {"kind": "scripted", "name": value}
    if isinstance(value, dict) and "kind" not in value:
        kind = "scripted" if "name" in value else "llm" if "model" in value else "routed"
        return {"kind": kind, **value}
    return value


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


class CohortSpec(_Model):
    """A group of agents that share a mind configuration."""

    cohort: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$")
    """Its name."""
    count: int = Field(ge=0, le=1_000_000)
    """How many founders it has."""
    mind: Annotated[MindSpec, BeforeValidator(_short_mind)]
    """A scripted mind's name, or a mind with settings. Offspring get their parent's."""
    persona: dict[str, float | str] = Field(default_factory=dict)
    """Traits every founder of the cohort gets; the scenario draws those that are not given."""


class NodeSpec(_Model):
    """Which nodes of a cluster something may live on. Where it lives changes nothing of what happens."""

    labels: dict[str, str] = Field(default_factory=dict)
    """Labels that a node must have, such as `{pool: cpu}` (`ray start --labels pool=cpu`)."""
    resources: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """How much of Ray's resources each process of it takes up there, such as `{CPU: 0.1}` or one of your own."""


class Society(_Model):
    """A society: a scenario, its parameters, a population with minds, and a seed."""

    scenario: str
    """The name of a scenario that comes with Ethnos, or `module:Class`."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """All chance in the run follows from it."""
    ticks: int = Field(default=100, ge=1, le=10**9)
    """How many ticks to run, unless the world ends before."""
    world: dict[str, Any] = Field(default_factory=dict)
    """The scenario's parameters."""
    population: list[CohortSpec] = Field(min_length=1)
    """The founders, by cohort."""
    agents_per_actor: Literal["auto"] | Annotated[int, Field(ge=1)] = "auto"
    """Agents in one Ray actor. 1: each agent is its own process. auto: that while they are few enough for the
    machine, and packed into few actors above."""
    agents_on: NodeSpec = NodeSpec()
    """Where on a cluster the agents' actors may live; they are spread over all such nodes. The world lives on the node
    that has the run's directory, engines where `managed` says."""
    decision_deadline: float = Field(default=60.0, gt=0, le=86_400)
    """Seconds an agent has to decide; then it gets the neutral action, on the record as late."""
    models: dict[str, Annotated[list[EngineSpec], Field(min_length=1), BeforeValidator(_one_or_more)]] = Field(
        default_factory=dict
    )
    """Language models by a name of one's own: for each the engine that serves it, or several."""
    budget: BudgetSpec = BudgetSpec()
    """What may be spent on models; when it is spent the run stops and can be resumed."""
    snapshot_every: int = Field(default=100, ge=0, le=10**9)
    """Ticks from one snapshot of the world to the next; 0: none. They only make resuming quick."""
    interventions: list[Change] = Field(default_factory=list)
    """What is to be changed from outside, each in its tick."""

    def scenario_class(self) -> type[Scenario[Any, Any]]:
        return scenarios.find(self.scenario)

    def make_scenario(self) -> Scenario[Any, Any]:
        """The scenario with this society's parameters."""
        cls = self.scenario_class()
        return cls(cls.Params.model_validate(self.world))

    def cohorts(self) -> list[Cohort]:
        return [Cohort(c.cohort, c.count, c.persona) for c in self.population]

    def mind_of(self, cohort: str) -> MindSpec:
        return next(c.mind for c in self.population if c.cohort == cohort)

    def is_costly(self, cohort: str) -> bool:
        """Whether the answers of a cohort's mind are kept as they arrive: all but those of scripted minds."""
        return bool(getattr(self.mind_of(cohort), "costly", True))

    def to_yaml(self) -> str:
        """The society with every default written out."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=110)


def make_scripted(scenario: type[Scenario[Any, Any]], spec: ScriptedMind) -> Mind:
    """A scripted mind with its settings. Raises SocietyError if the scenario has none of that name."""
    try:
        cls = scenario.minds[spec.name]
    except KeyError:
        raise SocietyError(f"no mind {spec.name!r}; {_did_you_mean(spec.name, scenario.minds)}") from None
    known = [f.name for f in fields(cls)]
    if unknown := [s for s in spec.settings if s not in known]:
        raise SocietyError("; ".join(f"unknown setting {s!r}, {_did_you_mean(s, known)}" for s in unknown))
    mind: Mind = TypeAdapter(cls).validate_python(spec.settings, strict=False)
    return mind


def load(source: str | Path, changes: Sequence[str] = ()) -> Society:
    """Read a society file, or one that comes with Ethnos by its name, with `path.to.key=value` changes applied.

    Raises SocietyError that lists everything wrong with it, each with its line and a suggestion.
    """
    path = locate(source)
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SocietyError(f"{path} is larger than {MAX_FILE_BYTES} bytes; that is no society file")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SocietyError(f"cannot read {path}: {error}") from None
    return parse(text, str(path), changes)


def locate(source: str | Path) -> Path:
    """The path of a society file. Raises SocietyError, with the names that would have worked."""
    path = Path(source)
    if path.is_file():
        return path
    shipped = shipped_societies()
    if str(source) in shipped:
        return shipped[str(source)]
    raise SocietyError(f"no society file {str(source)!r}; {_did_you_mean(str(source), shipped)}")


def shipped_societies() -> dict[str, Path]:
    """The society files that come with Ethnos, and those of installed packages with worlds of their own, by name."""
    own = Path(str(resources.files("ethnos"))) / "societies"
    return {p.stem: p for folder in (*scenarios.society_folders(), own) for p in sorted(folder.glob("*.yaml"))}


def parse(text: str, name: str = "society", changes: Sequence[str] = ()) -> Society:
    """Like `load`, from text. `name` stands for the file in messages."""
    data, lines = _read_yaml(text, name)
    for change in changes:
        _apply(data, change)
    problems = _Problems(name, lines, changes)
    society: Society | None = problems.collect((), lambda: Society.model_validate(data), Society)
    if society is None:
        problems.guess_scenario(data)
    else:
        society = problems.check_scenario(society)
    if problems.found or society is None:
        raise SocietyError("\n".join(problems.found))
    return society


class _Problems:
    """Collects everything wrong with a society, with places and suggestions."""

    def __init__(self, name: str, lines: Mapping[Location, int], changes: Sequence[str]) -> None:
        self.found: list[str] = []
        self._name = name
        self._lines = lines
        self._changed = {tuple(c.partition("=")[0].split(".")) for c in changes}

    def add(self, location: Location, message: str) -> None:
        dotted = ".".join(map(str, location)) or "society"
        if any(tuple(map(str, location))[: len(c)] == c for c in self._changed):
            self.found.append(_one_line(f"--set {dotted}: {message}"))
            return
        line = next(
            (self._lines[location[:n]] for n in range(len(location), -1, -1) if location[:n] in self._lines),
            1,
        )
        self.found.append(_one_line(f"{self._name}:{line}: {dotted}: {message}"))

    def collect(self, prefix: Location, make: Any, model: Any = None) -> Any:
        """What `make` returns, or None with its validation errors added. `model` knows the keys there are."""
        try:
            return make()
        except ValidationError as error:
            for e in error.errors(include_url=False):
                location = prefix + tuple(p for i, p in enumerate(e["loc"]) if not _is_tag(p, e["loc"][:i]))
                self.add(location, _explain(e, model))
        except SocietyError as error:
            self.add(prefix, str(error))
        return None

    def guess_scenario(self, data: Any) -> None:
        """When the outer part is broken: still report what is wrong with the parameters."""
        name = data.get("scenario") if isinstance(data, dict) else None
        if isinstance(name, str):
            cls = self.collect(("scenario",), lambda: scenarios.find(name))
            if cls is not None:
                self.collect(("world",), lambda: cls.Params.model_validate(data.get("world") or {}), cls.Params)

    def check_scenario(self, society: Society) -> Society | None:
        cls = self.collect(("scenario",), society.scenario_class)
        if cls is None:
            return None
        params = self.collect(("world",), lambda: cls.Params.model_validate(society.world), cls.Params)
        names = [c.cohort for c in society.population]
        for i, spec in enumerate(society.population):
            place = ("population", i, "mind")
            self._check_mind(place, spec.mind, cls, society.models)
            if names.index(spec.cohort) != i:
                self.add(("population", i, "cohort"), f"the cohort {spec.cohort!r} is there twice")
        if params is None:
            return None
        self._check_interventions(society, cls(params))
        for problem in cls(params).impossible(society.cohorts()):
            self.add(("world",), problem)
        return society.model_copy(update={"world": params.model_dump(mode="json")})

    def _check_mind(self, place: Location, mind: MindSpec, cls: type[Scenario[Any, Any]], models: Any) -> None:
        """Whether a mind can be made: its name, its settings, its model."""
        from ethnos.actors.minds import making as minds

        if isinstance(mind, ScriptedMind):
            self.collect((*place, "settings"), lambda: make_scripted(cls, mind))
        elif isinstance(mind, RoutedMind):
            self.collect((*place, "rule"), lambda: minds.rule(mind.rule))
            self._check_mind((*place, "small"), mind.small, cls, models)
            self._check_mind((*place, "large"), mind.large, cls, models)
        elif isinstance(mind, LLMMind):
            self.collect((*place, "settings"), lambda: minds.settings(mind.settings))
            if mind.model not in models:
                self.add((*place, "model"), f"no model {mind.model!r}; {_did_you_mean(mind.model, models)}")

    def _check_interventions(self, society: Society, scenario: Scenario[Any, Any]) -> None:
        cohorts = [c.cohort for c in society.population]
        for i, change in enumerate(society.interventions):
            place = ("interventions", i)
            if change.tick is None:
                self.add((*place, "tick"), "is required")
            if isinstance(change, AddAgent) and change.cohort not in cohorts:
                self.add((*place, "cohort"), f"no cohort {change.cohort!r}; {_did_you_mean(change.cohort, cohorts)}")
            if isinstance(change, SetParameter):
                try:
                    scenario = with_parameter(scenario, change.name, change.value)
                except Refused as refusal:
                    self.add(place, str(refusal))


def _one_line(text: str) -> str:
    """Keys and values come from files: what is no visible character in them is spelled out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _is_tag(part: str | int, before: Location) -> bool:
    """Pydantic puts the branch of a union into an error's place; a user has not written it."""
    if part in KINDS and len(before) == 2 and before[0] == "interventions":
        return True
    return isinstance(part, str) and (part.startswith(("literal[", "constrained-", "function-")) or part == "int")


def _explain(error: Any, model: Any) -> str:
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        return f"unknown key; {_did_you_mean(str(error['loc'][-1]), _siblings(error['loc'], model))}"
    if error["type"] == "missing":
        return "is required"
    given = error.get("input")
    shown = "" if isinstance(given, dict | list) else f", not {given!r:.60}"
    return f"{message[0].lower()}{message[1:]}{shown}"


def _siblings(location: Location, model: Any) -> list[str]:
    """The keys a model has at the place of an unknown one."""
    for part in location[:-1]:
        fields = getattr(model, "model_fields", {})
        if isinstance(part, str) and part in fields:
            model = _inner_model(fields[part].annotation)
    return list(getattr(model, "model_fields", {}))


def _inner_model(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_inner_model(a) for a in getattr(annotation, "__args__", ()))
    return next((m for m in inner if m is not None), None)


def _did_you_mean(word: str, known: Any) -> str:
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there are: {', '.join(names)}" if names else "there are none"


def _apply(data: Any, change: str) -> None:
    """Set one value in the raw data. `population.0.count=5` reaches into lists."""
    key, equals, value = change.partition("=")
    if not equals or not key:
        raise SocietyError(f"--set {change}: write it as path.to.key=value")
    *parents, last = key.split(".")
    place = data
    for part in parents:
        place = _descend(place, part, key)
    try:
        parsed = yaml.safe_load(value)
    except yaml.YAMLError:
        parsed = value
    if isinstance(place, list):
        place[_index(place, last, key)] = parsed
    elif isinstance(place, dict):
        place[last] = parsed
    else:
        raise SocietyError(f"--set {key}: there is nothing to set it in")


def _descend(place: Any, part: str, key: str) -> Any:
    if isinstance(place, list):
        return place[_index(place, part, key)]
    if isinstance(place, dict):
        if not isinstance(place.get(part), dict | list):
            place[part] = {}
        return place[part]
    raise SocietyError(f"--set {key}: there is nothing to set it in")


def _index(place: list[Any], part: str, key: str) -> int:
    if not part.isdecimal() or int(part) >= len(place):
        raise SocietyError(f"--set {key}: {part!r} is not one of the list's places 0 to {len(place) - 1}")
    return int(part)


def _read_yaml(text: str, name: str) -> tuple[Any, dict[Location, int]]:
    """The data, and the line of each place in it."""
    try:
        _check_tokens(text, name)
        node = yaml.compose(text, yaml.SafeLoader)
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise SocietyError(f"{name}: not valid YAML: {str(error) or 'nested too deeply'}") from None
    if not isinstance(data, dict):
        raise SocietyError(f"{name}: a society file is a mapping of keys such as `scenario` and `population`")
    lines: dict[Location, int] = {}
    for place, line in _places(node, ()):
        if place in lines:
            raise SocietyError(f"{name}:{line}: {'.'.join(map(str, place))}: this key is there twice")
        lines[place] = line
    return data, lines


def _check_tokens(text: str, name: str) -> None:
    """Stops at what would take the parser long, before it gets there."""
    depth = 0
    for token in yaml.scan(text, yaml.SafeLoader):
        if isinstance(token, yaml.AliasToken):
            raise SocietyError(f"{name}: YAML aliases (*name) are not taken; write the value out")
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        if depth > MAX_DEPTH:
            raise SocietyError(f"{name}: nested more than {MAX_DEPTH} deep; that is no society file")


_OPENING = (
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
)
_CLOSING = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)


def _places(node: yaml.Node | None, location: Location, line: int = 0) -> Iterator[tuple[Location, int]]:
    """Every place with its line: that of its key if it has one."""
    if node is None:
        return
    yield location, line or node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _places(value, (*location, key.value), key.start_mark.line + 1)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            yield from _places(value, (*location, i))

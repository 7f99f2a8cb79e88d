"""Changes from outside: what an experimenter may do to a running world, each an event like all else.

They happen at the beginning of a tick, before its decisions are resolved, so they are seen from the next
observation on. One that is impossible is refused with a reason and changes nothing.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ethnos.errors import SocietyError
from ethnos.world.limits import MAX_MESSAGE_CHARS

Coordinate = Annotated[int, Field(ge=0)]


class Intervention(BaseModel):
    """Base of all interventions."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    do: str
    """Which kind it is."""
    tick: int | None = Field(default=None, ge=1)
    """The tick in which it happens; if not given, the next one."""

    def change(self) -> dict[str, Any]:
        """What is done, without when: what the record keeps and a replay takes up again."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"tick"})


class SetParameter(Intervention):
    """Change a parameter of the scenario from now on."""

    do: Literal["set_parameter"] = "set_parameter"
    name: str = Field(min_length=1, max_length=200)
    """Which one, such as `food.spawn_rate`."""
    value: Any
    """Its new value."""


class AddResources(Intervention):
    """Bring something into the world that it keeps an account of."""

    do: Literal["add_resources"] = "add_resources"
    amount: int = Field(ge=1, le=10**12)
    """How much, in the scenario's own unit."""
    x: Coordinate | None = None
    """Where, in worlds that have places; if not given, the scenario draws it."""
    y: Coordinate | None = None
    """As for x."""


class RemoveResources(Intervention):
    """Take something out of the world that it keeps an account of: as much as is there, at most `amount`."""

    do: Literal["remove_resources"] = "remove_resources"
    amount: int = Field(ge=1, le=10**12)
    """How much at most, in the scenario's own unit."""
    x: Coordinate | None = None
    """From where, in worlds that have places; if not given, from anywhere."""
    y: Coordinate | None = None
    """As for x."""


class AddAgent(Intervention):
    """Bring somebody new into the world, without parents."""

    do: Literal["add_agent"] = "add_agent"
    cohort: str
    """A cohort of the society: it decides on the mind."""
    name: str = ""
    """Its name; if not given, as for any newborn."""
    persona: dict[str, float | str] = Field(default_factory=dict)
    """Traits; the scenario adds those it would add for a founder."""
    x: Coordinate | None = None
    """Where, in worlds that have places; if not given, the scenario draws it."""
    y: Coordinate | None = None
    """As for x."""


class RemoveAgent(Intervention):
    """Take somebody out of the world for good."""

    do: Literal["remove_agent"] = "remove_agent"
    agent: int | str
    """Its id or its name."""


class Tell(Intervention):
    """Say something from outside; it is heard at once, wherever somebody is."""

    do: Literal["tell"] = "tell"
    text: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS)
    """The words."""
    to: list[int | str] | None = None
    """Ids or names of those who hear it; all if not given."""
    speaker: str = Field(default="a voice from outside", min_length=1, max_length=40)
    """How the speaker is called."""


class EditPersona(Intervention):
    """Change traits of an agent."""

    do: Literal["edit_persona"] = "edit_persona"
    agent: int | str
    """Its id or its name."""
    persona: dict[str, float | str] = Field(min_length=1)
    """Traits with their new values; all others stay."""


class PlaceArtifact(Intervention):
    """Put a text into the world."""

    do: Literal["place_artifact"] = "place_artifact"
    name: str
    """Its name."""
    text: str
    """What it says."""
    x: Coordinate | None = None
    """Where, in worlds that have places; if not given, the scenario draws it."""
    y: Coordinate | None = None
    """As for x."""
    lifetime: int | None = Field(default=None, ge=1)
    """Ticks until it is gone; for ever if not given."""


Change = Annotated[
    SetParameter | AddResources | RemoveResources | AddAgent | RemoveAgent | Tell | EditPersona | PlaceArtifact,
    Field(discriminator="do"),
]
KINDS = (
    "set_parameter",
    "add_resources",
    "remove_resources",
    "add_agent",
    "remove_agent",
    "tell",
    "edit_persona",
    "place_artifact",
)
_change: TypeAdapter[Any] = TypeAdapter(Change)


def parse_change(data: Mapping[str, Any]) -> Any:
    """An intervention from plain data. Raises SocietyError that says what is wrong with it."""
    try:
        return _change.validate_python(data)
    except ValidationError as error:
        problems = (
            f"{'.'.join(str(p) for p in e['loc'][1:]) or data.get('do', 'do')}: {e['msg']}"
            for e in error.errors(include_url=False)
        )
        raise SocietyError(f"no such intervention: {'; '.join(problems)}") from None


__all__ = [
    "KINDS",
    "AddAgent",
    "AddResources",
    "Change",
    "EditPersona",
    "Intervention",
    "PlaceArtifact",
    "RemoveAgent",
    "RemoveResources",
    "SetParameter",
    "Tell",
    "parse_change",
]

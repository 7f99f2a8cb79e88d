"""What every deed in Terra has to ask: who is in sight, what is at hand, where things end up."""

from dataclasses import dataclass

from ethnos.errors import Refused
from ethnos.world.scenario import Agent, Tick
from ethnos.world.scenarios.terra.params import TerraParams
from ethnos.world.scenarios.terra.state import Artifact, Being, TerraState
from ethnos.world.scenarios.terra.torus import Torus


@dataclass(frozen=True, slots=True)
class Rules:
    """The parameters and the shape of one world: all that does not change in it."""

    params: TerraParams
    torus: Torus

    @property
    def hearing(self) -> int:
        return self.params.sight if self.params.hearing is None else self.params.hearing

    def in_sight(self, state: TerraState, agent: Agent, name: str, tick: Tick) -> tuple[int, Being]:
        """Id and being of that name, if `agent` sees it. Raises Refused."""
        other = tick.find(name).id
        if other == agent.id:
            raise Refused("that is yourself")
        being = state.beings[other]
        if self.torus.distance(state.beings[agent.id].cell, being.cell) > self.params.sight:
            raise Refused(f"{name} is not in sight")
        return other, being

    def at_hand(self, state: TerraState, being: Being, artifact: int) -> Artifact:
        """The artifact, if it lies on the being's cell or is carried by it. Raises Refused."""
        found = self._usable(state, artifact)
        if artifact not in being.carries and found.cell != being.cell:
            raise Refused(f"artifact {artifact} is neither on your cell nor with you")
        return found

    def lying_here(self, state: TerraState, being: Being, artifact: int) -> Artifact:
        """The artifact, if it lies on the being's cell. Raises Refused."""
        found = self._usable(state, artifact)
        if found.cell != being.cell:
            raise Refused(f"artifact {artifact} does not lie on your cell")
        return found

    def carried(self, state: TerraState, being: Being, artifact: int) -> Artifact:
        """The artifact, if the being carries it. Raises Refused."""
        found = self._usable(state, artifact)
        if artifact not in being.carries:
            raise Refused(f"you do not carry artifact {artifact}")
        return found

    def _usable(self, state: TerraState, artifact: int) -> Artifact:
        if self.params.artifacts.inert:
            raise Refused("artifacts cannot be used in this world")
        if artifact not in state.artifacts:
            raise Refused(f"there is no artifact {str(artifact)[:20]}")
        return state.artifacts[artifact]


def lay(state: TerraState, number: int, cell: int) -> None:
    """Put an artifact on a cell."""
    artifact = state.artifacts[number]
    artifact.cell, artifact.holder = cell, None
    state.lying.setdefault(cell, []).append(number)


def lift(state: TerraState, number: int) -> None:
    """Take an artifact away from wherever it is."""
    artifact = state.artifacts[number]
    if artifact.holder is not None:
        state.beings[artifact.holder].carries.remove(number)
    if artifact.cell is not None:
        state.lying[artifact.cell].remove(number)
        if not state.lying[artifact.cell]:
            del state.lying[artifact.cell]
    artifact.cell = artifact.holder = None


def carry(state: TerraState, number: int, holder: int) -> None:
    """Put an artifact into a being's hands."""
    state.artifacts[number].holder = holder
    state.beings[holder].carries.append(number)

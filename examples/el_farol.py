"""El Farol (Arthur 1994): a bar is fun as long as not too many go there, and everybody decides at once."""

from dataclasses import dataclass

from ethnos import Event, Scenario


@dataclass
class Bar:
    """The bar: all its guests know of it is how many came last night."""

    last: int = 0
    tonight: int = 0


@dataclass
class Go:
    """Go to the bar tonight, or stay at home."""

    out: bool = False


@dataclass(frozen=True, slots=True)
class Night(Event):
    """A night at the bar is over; so many had come."""

    amount: int


@dataclass
class Gambler:
    """Goes out with a fixed chance."""

    chance: float = 0.6

    def decide(self, turn):
        return Go(bool(turn.rng.random() < self.chance))


class ElFarol(Scenario):
    """A hundred people like the bar, but not when more than sixty of them are there."""

    State = Observation = Bar
    actions, neutral, events, minds = (Go,), Go(), (Night,), {"gambler": Gambler}

    def act(self, state, agent, action, tick):
        state.tonight += action.out

    def advance(self, state, tick):
        tick.emit(Night(state.tonight))
        state.last, state.tonight = state.tonight, 0

"""What can be set in Terra. The defaults are the core society of Paolo et al. (2026)."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ethnos.world.scenario import Params

Zone = tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]


class Food(Params):
    """How food comes and goes."""

    initial: int = Field(default=100, ge=0, le=10_000_000)
    """Tiles of food at the start (Paolo et al.: 100)."""
    value: int = Field(default=10, ge=1, le=1_000_000)
    """Energy in a new tile, and the least that a dead being leaves (Paolo et al.: 10)."""
    spawn_rate: float = Field(default=1.0, ge=0, le=1_000_000)
    """Mean number of tiles that appear per tick in the whole world, Poisson (Paolo et al.: 1)."""
    decay_rate: float = Field(default=0.05, ge=0, le=1)
    """Chance per tick that a tile loses 1 energy (Paolo et al.: 0.05)."""
    zones: Annotated[int, Field(ge=0, le=100_000)] | list[Zone] = 1
    """Where food grows: a number of zones whose centres are drawn from the seed (Paolo et al.: 1), a list of
    centres [x, y], or 0 for everywhere alike."""
    sigma: float = Field(default=2.0, gt=0, le=1_000)
    """Spread of a zone: the standard deviation of its Gaussian, in cells (Paolo et al.: 2)."""
    remains: Literal["single", "area", "none"] = "single"
    """What the dead leave: max(value, energy left) on their cell, a new tile on each of the nine cells
    around, or nothing (Paolo et al.: single)."""


class Life(Params):
    """What it takes to live and to have offspring."""

    energy: int = Field(default=50, ge=1, le=1_000_000)
    """Energy at birth, of founders and children alike (Paolo et al.: 50)."""
    lifespan: int = Field(default=100, ge=1, le=1_000_000_000)
    """Ticks until a being dies of old age (Paolo et al.: 100)."""
    reproduction_cost: int = Field(default=50, ge=0, le=1_000_000)
    """Energy that a parent pays for a child (Paolo et al.: 50)."""
    genome: Literal["ocean", "none"] = "ocean"
    """Whether beings have inherited traits: seven of personality, one of fertility (Paolo et al.: ocean)."""
    mutation_rate: float = Field(default=0.5, ge=0, le=1)
    """Chance that a gene changes from parent to child (Paolo et al.: 0.5)."""
    mutation_step: float = Field(default=0.3, ge=0, le=10)
    """Standard deviation of such a change (Paolo et al.: 0.3)."""
    motivation: Literal["base", "creative", "none"] = "base"
    """What beings are told to live for; it becomes part of their persona, and of their children's."""


class Artifacts(Params):
    """Texts that outlive their authors."""

    cost: int = Field(default=0, ge=0, le=1_000_000)
    """Energy that creating one costs (Paolo et al.: 0; their costly variant: 10)."""
    inert: bool = False
    """Whether artifacts can be neither read nor used, a control (Paolo et al.: no)."""
    max_chars: int = Field(default=2_000, ge=0, le=60_000)
    """Longest text, in characters; about 500 tokens of English (Paolo et al.: 500 tokens)."""


class TerraParams(Params):
    """Terra's parameters."""

    width: int = Field(default=50, ge=3, le=16_384)
    """Cells from west to east, where the world meets itself again (Paolo et al.: 50)."""
    height: int = Field(default=50, ge=3, le=16_384)
    """Cells from north to south, where the world meets itself again (Paolo et al.: 50)."""
    sight: int = Field(default=6, ge=1, le=50)
    """How far beings see, give and take: cells in Chebyshev distance (Paolo et al.: 6)."""
    hearing: int | None = Field(default=None, ge=0, le=50)
    """How far a voice carries: cells in Chebyshev distance; as far as sight if not given (Paolo et al.)."""
    food: Food = Food()
    life: Life = Life()
    artifacts: Artifacts = Artifacts()

    @model_validator(mode="after")
    def _fits(self) -> "TerraParams":
        span = 2 * max(self.sight, self.hearing or 0) + 1
        if span > min(self.width, self.height):
            raise ValueError(f"beings would see around the world: make width and height at least {span}")
        if isinstance(self.food.zones, list):
            outside = [z for z in self.food.zones if z[0] >= self.width or z[1] >= self.height]
            if outside:
                raise ValueError(f"food zones outside the world: {outside}")
        return self

"""A world without edges: who leaves in the east comes back in the west."""

from dataclasses import dataclass

DIRECTIONS = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}
NEIGHBOURS = tuple((dx, dy) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dx or dy)


@dataclass(frozen=True, slots=True)
class Torus:
    """A grid of cells numbered row by row from the north-west; x grows to the east, y to the south."""

    width: int
    height: int

    def cell(self, x: int, y: int) -> int:
        return y % self.height * self.width + x % self.width

    def xy(self, cell: int) -> tuple[int, int]:
        y, x = divmod(cell, self.width)
        return x, y

    def shifted(self, cell: int, dx: int, dy: int) -> int:
        """The cell `dx` east and `dy` south of `cell`."""
        y, x = divmod(cell, self.width)
        return (y + dy) % self.height * self.width + (x + dx) % self.width

    def distance(self, a: int, b: int) -> int:
        """Chebyshev distance: how many steps a king would need."""
        ay, ax = divmod(a, self.width)
        by, bx = divmod(b, self.width)
        dx, dy = (ax - bx) % self.width, (ay - by) % self.height
        return max(min(dx, self.width - dx), min(dy, self.height - dy))

    def around(self, cell: int, radius: int) -> list[int]:
        """All cells within Chebyshev distance `radius`, the middle among them; each once if they fit."""
        y, x = divmod(cell, self.width)
        columns = [(x + dx) % self.width for dx in range(-radius, radius + 1)]
        rows = [(y + dy) % self.height * self.width for dy in range(-radius, radius + 1)]
        return [row + column for row in rows for column in columns]

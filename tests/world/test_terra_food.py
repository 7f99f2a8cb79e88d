"""Where food grows."""

import numpy as np
import pytest

from ethnos.world.scenarios.terra.food import Density, _weights
from ethnos.world.scenarios.terra.torus import Torus

RNG = np.random.default_rng


def expected(density: Density) -> np.ndarray:
    weights = _weights(density)
    return np.asarray(weights / weights.sum())


def chi_square(counts: np.ndarray, shares: np.ndarray) -> tuple[float, int]:
    """Statistic and degrees of freedom over the cells with at least 5 expected, all others taken as one."""
    wanted = counts.sum() * shares
    common = wanted >= 5
    wanted = np.append(wanted[common], max(wanted[~common].sum(), 1e-9))
    got = np.append(counts[common], counts[~common].sum())
    return float(((got - wanted) ** 2 / wanted).sum()), len(got) - 1


@pytest.mark.parametrize("zones", [(), ((3, 4),), ((0, 0), (12, 9))])
def test_cells_are_drawn_in_proportion_to_the_density(zones: tuple[tuple[int, int], ...]) -> None:
    density = Density(Torus(20, 15), zones, 2.0)
    counts = np.bincount(density.draw(RNG(1), 50_000), minlength=300)
    statistic, freedom = chi_square(counts, expected(density))
    assert statistic < freedom + 4 * np.sqrt(2 * freedom)


def test_a_zone_goes_around_the_world() -> None:
    weights = _weights(Density(Torus(20, 15), ((0, 0),), 2.0)).reshape(15, 20)
    assert weights[0, 19] == weights[0, 1] == weights[14, 0] == weights[1, 0]


def test_drawing_again_and_weighing_give_the_same_cells_equally_often() -> None:
    """Two ways to the same draw without replacement: second cells of two, one zone, its best cells taken."""
    density = Density(Torus(7, 7), ((3, 3),), 1.5)
    taken = {24: 10, 23: 10, 17: 10}
    by_search = [density.free(RNG(i), 2, [taken]) for i in range(6_000)]
    by_weight = [density._weighed(RNG(i), 2, [taken]) for i in range(6_000)]
    for place in (0, 1):
        a, b = (np.bincount([cells[place] for cells in way], minlength=49) for way in (by_search, by_weight))
        some = a + b >= 10
        statistic = ((a - b)[some] ** 2 / (a + b)[some]).sum()
        assert statistic < some.sum() + 4 * np.sqrt(2 * some.sum())
    assert not {c for cells in (*by_search, *by_weight) for c in cells} & set(taken)


@pytest.mark.parametrize("zones", [(), ((3, 3),)])
def test_the_last_free_cells_are_found_and_then_no_more(zones: tuple[tuple[int, int], ...]) -> None:
    density = Density(Torus(9, 9), zones, 1.0)
    taken = dict.fromkeys(range(81))
    del taken[80], taken[5]
    assert sorted(density.free(RNG(1), 5, [taken])) == [5, 80]
    taken[5] = taken[80] = None
    assert density.free(RNG(1), 5, [taken]) == []


def test_cells_are_different() -> None:
    cells = Density(Torus(50, 50), ((9, 9),), 2.0).free(RNG(1), 300)
    assert len(set(cells)) == 300

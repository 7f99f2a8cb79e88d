"""Terra against what must be true of it, beside what `ethnos validate` measures (tests/worlds)."""

import numpy as np

from ethnos.testing import answers, flows, play, value
from ethnos.world.events import Born, Died, Heard, Said
from ethnos.world.scenario import Cohort, Mind
from ethnos.world.scenarios.terra import Terra, TerraParams
from ethnos.world.scenarios.terra.events import EVENTS
from ethnos.world.scenarios.terra.minds import Forager, Villager, Wanderer
from ethnos.world.spec import kind_of
from ethnos.world.truths.terra import VALIDATIONS
from ethnos.world.world import Step, World
from tests.world.terra import check, events


def society(mind: Mind, seed: int, ticks: int, **params: object) -> list[Step]:
    return list(play(Terra(TerraParams.model_validate(params)), [(Cohort("beings", 20), mind)], seed, ticks))


def end(steps: list[Step]) -> int:
    return steps[-1].tick


def test_wanderers_do_worse_than_foragers() -> None:
    assert end(society(Wanderer(), 1, 300)) < 300


def test_two_that_want_the_same_cell_share_it() -> None:
    """Fairness: 1,000 contests are 1,000 tosses of a coin."""
    (fairness,) = (v for v in VALIDATIONS if v.name.startswith("two who want the same cell"))
    assert fairness.replicates == 1_000
    assert fairness.judge().holds


def test_the_ledger_of_energy_closes_in_every_tick() -> None:
    for mind in (Forager(), Villager()):
        params = TerraParams.model_validate({"artifacts": {"cost": 3}, "life": {"reproduction_cost": 60}})
        world = World(Terra(params), 5)
        steps = [world.setup([Cohort("beings", 20)])]
        stock: float = 0
        while True:
            assert steps[-1].stocks["energy"] - stock == flows(world.spec, steps[-1])["energy"]
            stock = steps[-1].stocks["energy"]
            check(world)
            if world.tick == 200:
                break
            steps.append(world.step(answers(world, {"beings": mind})))


def test_energy_comes_from_food_and_the_dead_and_goes_by_living_and_decay() -> None:
    """The balance as a reader of the record would draw it up, for all ticks together."""
    steps = society(Villager(), 2, 300)
    totals = {
        kind: sum(value(r, "amount") for s in steps for r in s.events if r[1] == kind)
        for kind in ("settled", "food_spawned", "burned", "food_decayed", "perished", "remains_left")
    }
    bonus = totals["remains_left"] - totals["perished"]
    income = totals["settled"] + totals["food_spawned"] + bonus
    assert steps[-1].stocks["energy"] == income - totals["burned"] - totals["food_decayed"]


def test_villagers_show_everything_that_can_happen() -> None:
    steps = society(Villager(), 1, 300)
    kinds = {row[1] for s in steps for row in s.events}
    possible = {kind_of(e) for e in (*EVENTS, Born, Died, Said, Heard)}
    assert possible <= kinds


def test_genes_drift_but_stay_in_range() -> None:
    steps = society(Forager(), 1, 400)
    births = [e for s in steps for e in events(s, "born")]
    founders = [b["persona"]["honesty"] for b in births if b["generation"] == 0]
    late = [b["persona"] for b in births if b["generation"] > 0]
    assert len(set(founders)) == 20
    assert late
    assert all(-1 <= p["honesty"] <= 1 and 0.5 <= p["fertility"] <= 1 for p in late)


def test_a_gene_changes_half_of_the_time() -> None:
    world = World(Terra(TerraParams()), 3)
    world.setup([Cohort("beings", 20)])
    changed = total = 0
    for _ in range(400):
        step = world.step(answers(world, {"beings": Forager()}))
        for born in events(step, "born"):
            parent = world.agents.get(born["target_id"])
            if parent:
                inner = [g for g, v in parent.persona.items() if isinstance(v, float) and abs(v) < 0.3]
                changed += sum(born["persona"][g] != parent.persona[g] for g in inner)
                total += len(inner)
    assert total > 50
    assert abs(changed - total / 2) < 4 * np.sqrt(total / 4)

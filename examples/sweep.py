"""Many small societies in this process, compared with one query: does more food make more people?

python examples/sweep.py
"""

import os
import tempfile

import ethnos

with tempfile.TemporaryDirectory() as folder:
    os.environ["ETHNOS_RUNS_DIR"] = folder
    for rate in (1, 3):
        for seed in (1, 2):
            society = ethnos.load_society(
                "terra", [f"seed={seed}", f"world.food.spawn_rate={rate}", "ticks=60", "population.0.mind=forager"]
            )
            ethnos.run_here(society, name=f"rate{rate}-seed{seed}")

    with ethnos.open_run("rate*") as con:
        alive = "SELECT run, arg_max(population, tick) AS alive, max(population) AS most FROM ticks"
        con.sql(f"{alive} GROUP BY run ORDER BY run").show()

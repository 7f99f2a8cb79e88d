"""The Slurm script against stand-ins for Slurm's own commands, with a real Ray and a real society."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ethnos.record.directory import RunDirectory
from ethnos.record.verify import verify
from tests.docs.pages import ROOT

SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
if [[ $1 == hostname ]]; then echo 127.0.0.1; exit 0; fi
exec "$@" --node-ip-address=127.0.0.1
"""
SCONTROL = """#!/bin/bash
case $1 in
    show) echo one ;;
    requeue) echo "requeued $2" >>"$STANDIN_LOG" ;;
esac
"""


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_job_runs_and_goes_on(tmp_path: Path) -> None:
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    society = tmp_path / "society.yaml"
    society.write_text("scenario: terra\nticks: 20\npopulation: [{cohort: b, count: 5, mind: forager}]\n")
    env = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "ETHNOS_VENV": str(Path(sys.executable).parents[1]),
        "ETHNOS_RUNS_DIR": str(tmp_path / "runs"),
        "STANDIN_LOG": str(tmp_path / "log"),
        "SLURM_JOB_ID": str(os.getpid()),
        "SLURM_JOB_NODELIST": "one",
        "SLURM_CPUS_PER_TASK": "2",
        "SOCIETY": str(society),
        "RUN": "batch",
    }
    script = ROOT / "deploy" / "slurm" / "ethnos.sbatch"
    done = subprocess.run(["bash", str(script)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    run = RunDirectory(tmp_path / "runs" / "batch")
    assert done.returncode == 0, done.stdout + done.stderr
    assert run.manifest().state == "finished"
    assert verify(run).ok
    assert not list(tmp_path.glob(".ray-token*"))

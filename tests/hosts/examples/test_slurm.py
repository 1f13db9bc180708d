"""The scripts in examples/slurm, as a cluster would run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.controller import REPOSITORY
from tests.lab.slurm import Slurm
from tests.lab.slurmjob import submit
from tests.support.paths import ROOT

EXAMPLES = ROOT / "examples" / "slurm"
TRAIN = "echo trained on $SLURMD_NODENAME with $MASTER_ADDR"


@pytest.mark.parametrize("script", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_a_shell_can_parse_it(script: Path) -> None:
    shell = script.read_text().partition("\n")[0].removeprefix("#!")
    assert subprocess.run([shell, "-n", str(script)], capture_output=True).stderr == b""


@pytest.mark.parametrize("script", ["prolog.sh", "healthcheck.sh"])
def test_a_healthy_node_prints_one_line_and_a_sick_one_is_drained(script: str, slurm: Slurm) -> None:
    """slurmd runs both as root on the node; a healthy node continues, a sick one is drained."""
    host = slurm.lab["node2"]
    host.do(
        f'mkdir -p /opt/cluster-doctor/bin; cp "$1" /opt/{script}; chmod 755 /opt/{script}',
        str(EXAMPLES / script),
    )
    host.write(
        "/opt/cluster-doctor/bin/doctor",
        f'#!/bin/sh\nPYTHONPATH={REPOSITORY} exec {sys.executable} -m doctor "$@" --only "shm-*"\n',
        0o755,
    )
    well = host.ask(f"SLURM_JOB_NODELIST='node[1-4]' SLURM_JOB_ID=5 SLURMD_NODENAME=node2 /opt/{script}")
    assert (well.returncode, well.stdout) == (0, "")
    assert well.stderr.startswith("doctor: go: node2, ")
    assert well.stderr.count("\n") == 1
    assert state(slurm) == "idle"
    host.shm("16m")
    sick = host.ask(f"SLURM_JOB_NODELIST='node[1-4]' SLURM_JOB_ID=5 SLURMD_NODENAME=node2 /opt/{script}")
    if script == "prolog.sh":
        assert sick.returncode == 1
        assert "shm-small" in sick.stdout
    else:
        assert sick.returncode == 0
        assert state(slurm) == "drained"
        assert "shm-small" in slurm.run(["sinfo", "-h", "-R", "-o", "%E"]).stdout


def state(slurm: Slurm) -> str:
    return slurm.run(["sinfo", "-h", "-n", "node2", "-o", "%T"]).stdout.strip()


@pytest.mark.long
@pytest.mark.parametrize(("script", "need"), [("nvidia.sbatch", 3), ("ascend.sbatch", 4)])
def test_a_job_trains_where_it_is_healthy(script: str, need: int, slurm: Slurm) -> None:
    """On hosts without devices, so the backend that the examples set by variables is gloo here."""
    if need < 4:
        slurm.lab["node1"].shm("16m")
    body = (EXAMPLES / script).read_text().partition("\n")[2]
    body = "\n".join(line for line in body.splitlines() if not line.startswith("#SBATCH"))
    settings = f"export BACKEND=gloo NEED={need} JOB_FOLDER=$JOB\nexport TRAIN=$JOB/train\n"
    train = f"printf '#!/bin/sh\\n{TRAIN}\\n' >$JOB/train; chmod 755 $JOB/train\n"
    job = submit(slurm, settings + train + body, "--no-kill", "--ntasks-per-node=1")
    assert job.ended() == 0, job.output
    healthy = ["node2", "node3", "node4"] if need < 4 else ["node1", "node2", "node3", "node4"]
    lines = sorted(line for line in job.output.splitlines() if line.startswith("trained on"))
    head = slurm.lab[healthy[0]].address
    assert lines == [f"trained on {name} with {head}" for name in healthy]

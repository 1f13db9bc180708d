"""The scripts in examples/slurm, as a cluster would run them."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab.controller import REPOSITORY
from tests.lab.host import Host
from tests.lab.slurm import Slurm
from tests.lab.slurmjob import submit
from tests.support.cases import cases, from_cases
from tests.support.paths import ROOT

EXAMPLES = ROOT / "examples" / "slurm"
TRAIN = "echo trained on $SLURMD_NODENAME with $MASTER_ADDR"


@pytest.mark.parametrize("script", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_a_shell_can_parse_it(script: Path) -> None:
    shell = script.read_text().partition("\n")[0].removeprefix("#!")
    assert subprocess.run([shell, "-n", str(script)], capture_output=True).stderr == b""


GATE = ("prolog.sh", "healthcheck.sh")


def install(host: Host) -> None:
    """The scripts, and doctor where they look for it."""
    host.do("mkdir -p /opt/cluster-doctor/bin; rm -rf /run/cluster-doctor.row")
    host.write(
        "/opt/cluster-doctor/bin/doctor",
        f'#!/bin/sh\nPYTHONPATH={REPOSITORY} exec {sys.executable} -m doctor "$@"\n',
        0o755,
    )
    for name in GATE:
        host.write(f"/opt/{name}", (EXAMPLES / name).read_text(), 0o755)


def gate(slurm: Slurm, script: str) -> subprocess.CompletedProcess[str]:
    """As slurmd calls it: root, on the node, with the variables of a job."""
    host = slurm.lab["node2"]
    return host.ask(f"SLURM_JOB_NODELIST='node[1-4]' SLURM_JOB_ID=5 SLURMD_NODENAME=node2 /opt/{script}")


@pytest.mark.main
@cases
def test_a_sick_node_is_drained_with_its_reason_and_resumed_when_it_is_well(
    fault: str, check: str, slurm: Slurm
) -> None:
    host = slurm.lab["node2"]
    install(host)
    for script in GATE:
        well = gate(slurm, script)
        assert (well.returncode, well.stdout) == (0, "")
    assert state(slurm) == "idle"
    host.do(fault)
    sick = gate(slurm, "prolog.sh")
    assert (sick.returncode, check in sick.stdout) == (1, True)
    for run, wanted in enumerate(("idle", "drained", "drained")):  # a later look keeps the first reason
        assert gate(slurm, "healthcheck.sh").returncode == 0
        assert state(slurm) == wanted, run
        assert (check in slurm.run(["sinfo", "-h", "-R", "-o", "%E"]).stdout) == (wanted == "drained")
    repair = {"tmp-not-writable": "mount -o remount,rw /tmp", "loopback-down": "ip link set lo up"}
    host.do(repair[check])
    assert gate(slurm, "prolog.sh").returncode == 0
    for wanted in ("drained", "drained", "idle"):
        gate(slurm, "healthcheck.sh")
        assert state(slurm) == wanted


def test_a_node_that_fails_every_second_time_is_left_alone(slurm: Slurm) -> None:
    """And one whose runs cannot be counted is drained by the first."""
    host = slurm.lab["node2"]
    install(host)
    for mode in ("ro", "rw") * 2:
        host.do(f"mount -o remount,{mode} /tmp")
        gate(slurm, "healthcheck.sh")
        assert state(slurm) == "idle"
    host.do("mount -o remount,ro /tmp; rm -f /run/cluster-doctor.row; mkdir /run/cluster-doctor.row")
    gate(slurm, "healthcheck.sh")
    host.do("mount -o remount,rw /tmp; rmdir /run/cluster-doctor.row")
    assert state(slurm) == "drained"


def test_a_node_that_somebody_else_drained_stays_drained(slurm: Slurm) -> None:
    install(slurm.lab["node2"])
    slurm.run(["scontrol", "update", "nodename=node2", "state=drain", "reason=a disk is exchanged"])
    host = slurm.lab["node2"]
    for fault in ("true", "mount -o remount,ro /tmp", "mount -o remount,rw /tmp"):
        host.do(fault)
        for _ in range(3):
            gate(slurm, "healthcheck.sh")
        assert state(slurm) == "drained"
        assert slurm.run(["sinfo", "-h", "-R", "-o", "%E"]).stdout.strip() == "a disk is exchanged"


def test_a_doctor_that_cannot_start_is_not_a_fault_of_the_node(slurm: Slurm) -> None:
    """A Python that does not find our package ends with 1."""
    install(slurm.lab["node2"])
    broken = f"#!/bin/sh\nexec {sys.executable} -c 'import doctor_is_gone'\n"
    slurm.lab["node2"].write("/opt/cluster-doctor/bin/doctor", broken, 0o755)
    for script in GATE:
        assert gate(slurm, script).returncode == 0
    assert state(slurm) == "idle"


SAVES = from_cases(__file__, "SAVES", str)
JOBS = from_cases(__file__, "JOBS", dict[str, tuple[str, ...]])


@pytest.mark.parametrize("name", JOBS)
def test_a_job_on_a_sound_node_changes_nothing(name: str, slurm: Slurm) -> None:
    line, sign = JOBS[name]
    install(slurm.lab["node2"])
    script = (
        f"cat >$JOB/saves.py <<'END'{SAVES}END\necho 'import time; time.sleep(600)' >$JOB/sleeps.py\n{line}\n"
    )
    job = submit(slurm, script, "--nodelist=node2", nodes=1)
    try:
        deadline = time.monotonic() + 60
        while not (job.folder / sign).exists() and time.monotonic() < deadline:
            time.sleep(0.2)
        assert (job.folder / sign).exists(), job.output
        time.sleep(1)
        for script in GATE:
            said = gate(slurm, script)
            assert (said.returncode, said.stdout) == (0, "")
        assert state(slurm) in ("allocated", "mixed")
        assert slurm.run(["sinfo", "-h", "-R", "-o", "%E"]).stdout == ""
    finally:
        job.cancel()


def state(slurm: Slurm) -> str:
    """Without the mark of a node that slurmctld has not heard from lately."""
    return slurm.run(["sinfo", "-h", "-n", "node2", "-o", "%T"]).stdout.strip().rstrip("*")


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


@pytest.mark.long
@cases
def test_a_job_has_the_tasks_that_it_was_given(tasks: int, slurm: Slurm) -> None:
    """On hosts without devices doctor would fill in two by itself, and Slurm refuses more than there are."""
    body = (EXAMPLES / "run.sbatch").read_text().partition("exec ")[2]
    settings = "export BACKEND=gloo NEED=3 TRAIN='echo task'\n"
    job = submit(slurm, f"{settings}cd $JOB; exec {body}", "--no-kill", f"--ntasks-per-node={tasks}")
    assert job.ended() == 0, job.output
    assert job.output.split("\n").count("task") == 3 * tasks
    assert "the default" not in job.output

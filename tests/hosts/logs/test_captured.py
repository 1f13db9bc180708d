"""Logs of jobs that really failed, on hosts with the same names: what the hosts prove about each failure."""

import re
import sys
from dataclasses import dataclass
from importlib.metadata import distribution

import pytest

from doctor.exam.examination import own_interpreters
from tests.lab import Lab
from tests.support.cases import cases, from_cases
from tests.trials.logs.capture import JOBS
from tests.trials.logs.cases import CASES, CHECKPOINTS, Prepare

pytestmark = pytest.mark.slow

PROVED, GONE, OPEN = "proved: ", "not seen any more: ", "undecided: "
HEAD = "train-head.cluster.example"


def explained(lab: Lab, name: str, hosts: int = 3) -> str:
    asked = ("--check", f"node[1-{hosts}]", "--ssh-config", str(lab.ssh_config))
    done = lab.doctor("explain", str(JOBS / name), *asked, env={"COLUMNS": "200"})
    assert done.returncode == 1, done.stdout + done.stderr
    return " ".join(done.stdout.split())


def kernel_killed(lab: Lab) -> None:
    text = (JOBS / "oom/node2.dmesg").read_text()
    lab["node2"].kernel_log(re.sub(r"^\[ *[\d.]+\] ", "", text, flags=re.MULTILINE))


def other_torch(lab: Lab) -> None:
    """node2 has the package of another version."""
    torch = distribution("torch")
    lab["node2"].do(
        """cd "$1"; mkdir /run/upper /run/work
        mount -t overlay -o "lowerdir=$1,upperdir=/run/upper,workdir=/run/work" packages "$1"
        cd "$1"; mv "torch-$2.dist-info" torch-2.1.0.dist-info""",
        str(torch.locate_file("")),
        torch.version,
    )


def full_disk(lab: Lab) -> None:
    """As the job leaves it: a part of its checkpoint is there."""
    CASES["full-disk"].prepare(lab)
    lab["node2"].sh('yes | head -c 5M >"$1/step20.pt"', CHECKPOINTS)


def nothing(_: Lab) -> None:
    """The cause cannot be seen on the hosts afterwards."""


def name_known(lab: Lab) -> None:
    for host in lab:
        host.do('echo "$1 $2" >>/etc/hosts', lab["node1"].address, HEAD)


def prepared(case: str) -> Prepare:
    return CASES[case].prepare


@dataclass(frozen=True)
class Proof:
    """The fault on the hosts, what proves it, the result of the repair, and the repair, if it is no reset."""

    fault: Prepare
    proof: str
    then: str
    repair: Prepare | None = None


KNOWN = (prepared, full_disk, nothing, name_known, kernel_killed, other_torch)
PROOFS = from_cases(__file__, "PROOFS", dict[str, Proof], *KNOWN)


NOT_TAKEN = pytest.mark.skipif(
    f"{sys.prefix}/bin/python" not in own_interpreters({}),
    reason="an interpreter below /tmp is not looked for on hosts",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=NOT_TAKEN if name == "version" else ()) for name in PROOFS]
)
def test_the_hosts_prove_it_while_it_stands(lab: Lab, name: str) -> None:
    case = PROOFS[name]
    case.fault(lab)
    there = explained(lab, name)
    assert f"{PROVED}{case.proof}" in there, there
    (case.repair or Lab.reset)(lab)
    repaired = explained(lab, name)
    assert case.then in repaired, repaired
    assert PROVED not in repaired


def test_a_host_without_power_whose_name_only_this_machine_knows(lab: Lab) -> None:
    for host in lab:
        host.do("sed -i /node3/d /etc/hosts")
    lab["node3"].power_off()
    assert f"{PROVED}host-unreachable fails on node3" in explained(lab, "host-down-mpirun")


def test_the_job_was_given_another_master(lab: Lab) -> None:
    """No host can be repaired: the next logs will show another master."""
    said = explained(lab, "master")
    assert f"{PROVED}master-not-here fails: the master's address is not that of the host of rank 0" in said
    assert "(198.18.0.12 is that of node2, by MASTER_ADDR)" in said


@cases
def test_what_healthy_hosts_cannot_prove_is_not_said_to_be_gone(lab: Lab, name: str, says: str) -> None:
    said = explained(lab, name)
    assert OPEN in said
    assert says in said, said
    assert PROVED not in said
    assert GONE not in said

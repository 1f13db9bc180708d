"""What ranks inherit from a login: variables, limits and CPUs, each fault alone on one host."""

import pytest

from tests.lab import Host, Lab
from tests.support.batches import batches, prove_each
from tests.support.faults import ALONE, Examiner, Fault, assert_healthy

OVER_HCCL = (*ALONE, "--backend", "hccl", "--only", "env-*")


def sets(host: Host, variable: str) -> None:
    host.sshd(SetEnv=variable)


def one_cpu(host: Host) -> None:
    host.do('taskset -pc 0 "$(cat /run/sshd.pid)"')


FAULTS = Fault.table(__file__, "FAULTS", sets, one_cpu)


@pytest.mark.parametrize("names", batches(FAULTS))
def test_found(names: list[str], examine: Examiner) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine)


def test_what_looks_alike_and_is_sound(lab: Lab, examine: Examiner) -> None:
    """The same on all hosts, so that nothing differs; and a task that its launcher has bound to CPUs."""
    alike = "PYTHONHOME=/usr LD_PRELOAD=libc.so.6 TZ=Asia/Shanghai TORCH_DISTRIBUTED_DEBUG=detail"
    for host in lab:
        host.sshd(SetEnv=alike)
    lab["node2"].limits(**{"as": 1 << 40, "fsize": 1 << 40, "cpu": 30 * 86400})
    lab["node3"].sshd(SetEnv=f"{alike} SLURM_PROCID=0")
    one_cpu(lab["node3"])
    assert_healthy(examine(*ALONE, "--python", "/usr/bin/python3"))


def test_what_all_logins_set_alike_is_wrong_on_all(lab: Lab, examine: Examiner) -> None:
    """Unless the launch sets it: that overrides the login."""
    for host in lab:
        host.sshd(SetEnv="HCCL_IF_BASE_PORT=80")
    (found,) = examine(*OVER_HCCL).report["findings"]
    assert (found["check"], found["status"], found["hosts"]) == ("env-invalid", "fail", [])
    script = lab.directory / "run.sh"
    script.write_text("export HCCL_IF_BASE_PORT=50000\ntorchrun --nnodes=4 --nproc_per_node=2 train.py\n")
    assert_healthy(examine(*OVER_HCCL, "--launch", str(script)))

"""What ranks inherit from a login: variables, limits and CPUs, each fault alone on one host."""

import pytest

from tests.lab import Host, Lab
from tests.support.batches import batches, prove_each
from tests.support.faults import ALONE, Examiner, Fault, assert_healthy

MANY = (*ALONE, "--backend", "gloo", "--ranks-per-host", "4", "--expect", "shm_mb=1")
OVER_HCCL = (*ALONE, "--backend", "hccl", "--only", "env-*")
GB = 1 << 30


def sets(host: Host, variable: str) -> None:
    host.sshd(SetEnv=variable)


def one_cpu(host: Host) -> None:
    host.do('taskset -pc 0 "$(cat /run/sshd.pid)"')


FAULTS = {
    "PYTHONHOME names nothing": Fault(
        "python-home-wrong",
        lambda host: sets(host, "PYTHONHOME=/opt/none"),
        says=("without a Python library", "PYTHONHOME=/opt/none", "unset PYTHONHOME"),
        also=("env-drift",),
    ),
    "PYTHONHOME has no library": Fault(
        "python-home-wrong",
        lambda host: sets(host, "PYTHONHOME=/etc"),
        says=("without a Python library: no interpreter starts with it",),
        also=("env-drift",),
    ),
    "LD_PRELOAD of a library that is gone": Fault(
        "preload-missing",
        lambda host: sets(host, "LD_PRELOAD=/opt/libjemalloc.so"),
        "warn",
        ("/opt/libjemalloc.so",),
        also=("env-drift",),
    ),
    "a port that HCCL refuses": Fault(
        "env-invalid",
        lambda host: sets(host, "HCCL_IF_BASE_PORT=80"),
        says=("HCCL_IF_BASE_PORT=80", "1024 to 65520", "grep -rsn HCCL_IF_BASE_PORT"),
        also=("env-drift",),
        args=OVER_HCCL,
    ),
    "a time that HCCL refuses": Fault(
        "env-invalid",
        lambda host: sets(host, "HCCL_CONNECT_TIMEOUT=60"),
        says=("HCCL_CONNECT_TIMEOUT=60", "120 to 7200"),
        also=("env-drift",),
        args=OVER_HCCL,
    ),
    "TZ with a slip": Fault(
        "time-zone-unknown",
        lambda host: sets(host, "TZ=Asia/Shangai"),
        "warn",
        ("Asia/Shangai",),
        also=("env-drift",),
    ),
    "ulimit -v": Fault(
        "address-space-limited",
        lambda host: host.limits(**{"as": 3 * GB}),
        says=("ulimit -v", "3072 MB", "limits.d"),
    ),
    "ulimit -d": Fault(
        "address-space-limited",
        lambda host: host.limits(data=GB),
        says=("the data size of a login is limited", "ulimit -d", "1024 MB"),
    ),
    "a larger ulimit -v": Fault(
        "address-space-limited", lambda host: host.limits(**{"as": 6 * GB}), "warn", ("6144 MB",)
    ),
    "ulimit -f": Fault(
        "file-size-limited", lambda host: host.limits(fsize=GB // 2), says=("ulimit -f", "512 MB")
    ),
    "a larger ulimit -f": Fault(
        "file-size-limited", lambda host: host.limits(fsize=9 * GB), "warn", ("9216 MB",)
    ),
    "ulimit -t": Fault(
        "cpu-time-limited", lambda host: host.limits(cpu=1800), says=("ulimit -t", "1800 s", "-rnw cpu")
    ),
    "a larger ulimit -t": Fault(
        "cpu-time-limited", lambda host: host.limits(cpu=90_000), "warn", ("90000 s",)
    ),
    "two ranks on one CPU": Fault("cpu-affinity-narrow", one_cpu, "warn", ("1 of 2 CPUs",)),
    "four ranks on one CPU": Fault(
        "cpu-affinity-narrow", one_cpu, says=(r"1 of \d+ CPUs", "4 ranks"), args=MANY
    ),
}


@pytest.mark.parametrize("names", batches(FAULTS))
def test_found(names: list[str], examine: Examiner) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine)


def test_what_looks_alike_and_is_sound(lab: Lab, examine: Examiner) -> None:
    """The same on all hosts, so that nothing differs; and a task that its launcher has bound to CPUs."""
    alike = "PYTHONHOME=/usr LD_PRELOAD=libc.so.6 TZ=Asia/Shanghai"
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
    assert (found["check"], found["status"], found["hosts"]) == (
        "env-invalid",
        "fail",
        [each.name for each in lab],
    )
    script = lab.directory / "run.sh"
    script.write_text("export HCCL_IF_BASE_PORT=50000\ntorchrun --nnodes=4 --nproc_per_node=2 train.py\n")
    assert_healthy(examine(*OVER_HCCL, "--launch", str(script)))

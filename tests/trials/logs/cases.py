"""The faults: what is done to the hosts before the job, and how the job is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.lab import Host, Lab

PORT = 29500
CHECKPOINTS = "/checkpoints"
Prepare = Callable[[Lab], None]


@dataclass(frozen=True, slots=True)
class Case:
    """One job. `layout` says where its output goes: plain, redirects (torchrun -r 3), tee (-t 3), mpirun,
    srun.
    """

    hosts: int = 2
    ranks: int = 2
    env: Mapping[str, str] = field(default_factory=dict)
    prepare: Prepare = lambda _: None
    layout: str = "plain"
    absent: tuple[int, ...] = ()
    """Indices of hosts on which the job is not started."""
    master: Mapping[int, str] = field(default_factory=dict)
    """The master address, if one host is given another address than the others."""
    rendezvous: str = "static"
    memory: Mapping[int, int] = field(default_factory=dict)
    """Hosts on which the job may use only this many bytes."""
    srun: tuple[str, ...] = ()
    """Options of srun."""
    during: Prepare | None = None
    """The event after 20 steps; only for jobs of Slurm."""


def faulty(fault: str, victim: int, **env: str) -> dict[str, str]:
    return {"FAULT": fault, "VICTIM": str(victim), **env}


def table(verdict: str) -> Prepare:
    """A firewall on node1 with a verdict other than accept on the master's port."""
    rules = f"""
table inet filter {{
  chain input {{
    type filter hook input priority 0; policy accept;
    iif lo accept
    tcp dport {PORT} {verdict}
  }}
}}
"""
    return lambda lab: lab["node1"].nft(rules)


def occupied(lab: Lab) -> None:
    lab["node1"].listen(PORT)


def small_shm(lab: Lab) -> None:
    lab["node2"].do("mount -o remount,size=1M /dev/shm")


def disks(small: str) -> Prepare:
    """A folder for checkpoints on every host; that of host `small` has room for less than one checkpoint."""

    def prepare(lab: Lab) -> None:
        for host in lab:
            size = "4M" if host.name == small else "400M"
            host.do(f"mkdir {CHECKPOINTS}; mount -t tmpfs -o size={size} disk {CHECKPOINTS}")

    return prepare


def other_torch(lab: Lab) -> None:
    """node2 has a libtorch_cpu.so without the symbols that the rest of its torch needs."""
    stub_library(lab["node2"])


def stub_library(host: Host) -> None:
    import torch

    library = f"{torch.__path__[0]}/lib/libtorch_cpu.so"
    host.do(
        "echo | gcc -shared -x c -Wl,-soname,libtorch_cpu.so -o /run/libtorch_cpu.so -;"
        'mount --bind /run/libtorch_cpu.so "$1"',
        library,
    )


def off(name: str) -> Prepare:
    return lambda lab: lab[name].power_off()


DISK = {"SAVE": CHECKPOINTS}
HEALTHY: dict[str, Case] = {
    "healthy": Case(),
    "healthy-tee": Case(layout="tee", env={"CLEAN": "0"}),
    "healthy-redirects": Case(layout="redirects"),
    "healthy-workers": Case(env={"WORKERS": "1", **DISK}, prepare=disks("")),
    "healthy-mpirun": Case(layout="mpirun"),
    "healthy-srun": Case(layout="srun", srun=("--label",)),
    "healthy-c10d": Case(rendezvous="c10d", ranks=1),
}
FAULTS: dict[str, Case] = {
    "killed": Case(env=faulty("kill", 3)),
    "killed-tee": Case(env=faulty("kill", 1), layout="tee"),
    "killed-mpirun": Case(env=faulty("kill", 2), layout="mpirun"),
    "exception": Case(env=faulty("raise", 2)),
    "exception-redirects": Case(env=faulty("raise", 3), layout="redirects"),
    "exception-mpirun": Case(env=faulty("raise", 1), layout="mpirun"),
    "stopped": Case(env=faulty("stop", 2)),
    "stopped-redirects": Case(env=faulty("stop", 1), layout="redirects"),
    "skipped": Case(env=faulty("skip", 3)),
    "oom": Case(env=faulty("memory", 3), memory={1: 1_200_000_000}),
    "full-disk-bytes": Case(env={**DISK, "PICKLED": "1"}, prepare=disks("node2")),
    "full-disk": Case(env=DISK, prepare=disks("node2")),
    "shm-loader": Case(env={"WORKERS": "1", "SIZE": "200000", "STEPS": "30"}, prepare=small_shm),
    "shm-map": Case(env=faulty("map", 2), prepare=small_shm),
    "port": Case(prepare=occupied, ranks=1),
    "drop": Case(prepare=table("drop"), hosts=3, ranks=1),
    "reject": Case(prepare=table("reject with icmpx type admin-prohibited"), hosts=3, ranks=1),
    "master": Case(hosts=3, ranks=1, master={2: "198.18.0.12"}),
    "missing": Case(hosts=3, ranks=1, absent=(2,)),
    "missing-c10d": Case(hosts=3, ranks=1, absent=(2,), rendezvous="c10d"),
    "name": Case(ranks=1, master={1: "train-head.cluster.example"}),
    "version": Case(prepare=other_torch),
    "killed-srun": Case(env=faulty("kill", 2), layout="srun"),
    "exception-srun": Case(env=faulty("raise", 3), layout="srun", srun=("--label",)),
    "time-limit-srun": Case(env=faulty("stop", 2, TIMEOUT="600"), layout="srun", srun=("--label",)),
    "node-lost-srun": Case(
        env={"STEPS": "5000", "TIMEOUT": "600"}, layout="srun", hosts=3, ranks=1, during=off("node3")
    ),
    "host-down-mpirun": Case(hosts=3, ranks=1, layout="mpirun", prepare=off("node3")),
}
CASES = HEALTHY | FAULTS

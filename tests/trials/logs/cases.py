"""What a case of `cases.yaml` is, and what is done to hosts before its job."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from tests.lab import Lab
from tests.support.cases import from_cases
from tests.trials.kindfile import kinds

PORT = 29500
CHECKPOINTS = "/checkpoints"
Prepare = Callable[[Lab], None]
FIREWALL = from_cases(__file__, "FIREWALL", str)
STUB = from_cases(__file__, "STUB", str)


def firewall(lab: Lab, verdict: str) -> None:
    """Another verdict than accept on the master's port of node1."""
    lab["node1"].nft(FIREWALL.replace("VERDICT", verdict))


def disks(lab: Lab, small: str) -> None:
    """A folder for checkpoints on every host; that of host `small` has room for less than one checkpoint."""
    for host in lab:
        size = "4M" if host.name == small else "400M"
        host.do(f"mkdir {CHECKPOINTS}; mount -t tmpfs -o size={size} disk {CHECKPOINTS}")


def other_torch(lab: Lab, name: str) -> None:
    """The host has a libtorch_cpu.so without the symbols that the rest of its torch needs."""
    import torch

    lab[name].do(STUB, f"{torch.__path__[0]}/lib/libtorch_cpu.so")


DONE: Mapping[str, Callable[[Lab, str], object]] = {
    "firewall": firewall,
    "disks": disks,
    "other_torch": other_torch,
    "occupied": lambda lab, name: lab[name].listen(PORT),
    "small_shm": lambda lab, name: lab[name].do("mount -o remount,size=1M /dev/shm"),
    "no_power": lambda lab, name: lab[name].power_off(),
}
Done = Mapping[str, str]
"""What is done, and to what."""


def do(lab: Lab, done: Done) -> None:
    for what, whom in done.items():
        DONE[what](lab, whom)


class Case(Struct, frozen=True, forbid_unknown_fields=True):
    """One job."""

    hosts: int = 2
    ranks: int = 2
    env: Mapping[str, str] = {}
    before: Done = {}
    layout: str = "plain"
    absent: tuple[int, ...] = ()
    """Indices of hosts on which the job is not started."""
    master: Mapping[int, str] = {}
    """The master address, if one host is given another address than the others."""
    rendezvous: str = "static"
    memory: Mapping[int, int] = {}
    """Hosts on which the job may use only this many bytes."""
    srun: tuple[str, ...] = ()
    """Options of srun."""
    during: Done = {}

    def prepare(self, lab: Lab) -> None:
        do(lab, self.before)


CASES = kinds(__file__, Case, "cases.yaml")

"""A situation: what is done to a sound host before the exam looks at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Struct, convert

from tests.lab import Host, Lab
from tests.lab.amd import AmdGpus, AmdHost
from tests.lab.engine import Engine
from tests.lab.gpus import GpuHost, Gpus
from tests.lab.npus import NpuHost, Rack, fit_npus
from tests.lab.slurm import Slurm
from tests.trials.kindfile import entries

Kind = Literal["plain", "gpus", "npus", "amd"]
Way = Literal["local", "ssh"]
HOSTS: dict[str, Kind] = {"node1": "plain", "node2": "gpus", "node3": "npus", "node4": "amd"}
DEVICES, SWITCHES = 8, 4


@dataclass(slots=True)
class Stage:
    """The hosts: one without devices, and one with each vendor's, which are emulated."""

    lab: Lab
    engine: Engine
    gpus: Gpus
    rack: Rack
    amd: AmdGpus
    own_slurm: Slurm | None = None

    @classmethod
    def on(cls, lab: Lab) -> Stage:
        gpus = Gpus(lab, {"node2": GpuHost(lab["node2"], DEVICES, SWITCHES)})
        amd = AmdGpus(lab, {"node4": AmdHost(lab["node4"], DEVICES)})
        rack = fit_npus(lab, {"node3": "atlas-a2"})
        stage = cls(lab, Engine(lab), gpus, rack, amd)
        stage.reset()
        return stage

    def reset(self) -> None:
        self.engine.remove_all()
        if self.own_slurm is not None:
            self.own_slurm.run(["scancel", "--partition=all"])
            self.lab["node1"].ask(
                "pkill -KILL -f '[n]ode/rank.py'"
            )  # or Slurm drains it for a task that stays
            self.own_slurm.reset()
            return
        self.lab.reset()
        for devices in (self.gpus, self.rack, self.amd):
            devices.reset()

    def slurm(self) -> Slurm:
        """Started with its first job: only such jobs may follow."""
        if self.own_slurm is None:
            self.own_slurm = Slurm(self.lab).start()
        return self.own_slurm

    def close(self) -> None:
        self.engine.remove_all()
        self.rack.free()
        if self.own_slurm is not None:
            self.own_slurm.close()

    @property
    def gpu(self) -> GpuHost:
        return self.gpus["node2"]

    @property
    def npu(self) -> NpuHost:
        return self.rack["node3"]

    @property
    def amd_gpu(self) -> AmdHost:
        return self.amd["node4"]

    def devices(self, kind: Kind) -> Any:
        """The host of this kind, with what is emulated on it."""
        return {"plain": self.host, "gpus": self.gpu, "npus": self.npu, "amd": self.amd_gpu}[kind]

    @property
    def host(self) -> Host:
        """The host without devices."""
        return self.lab["node1"]


class Box(Struct, frozen=True, forbid_unknown_fields=True):
    """A container."""

    shm: str = "64m"
    net: str = "host"


class Ranks(Struct, frozen=True, forbid_unknown_fields=True):
    """Ranks that nobody counted: each has the variables that somebody gave it."""

    world: int = 0
    """How many there are; 0: one, which has only these variables."""
    only: tuple[int, ...] = ()
    env: Mapping[str, str] = {}

    def envs(self) -> list[dict[str, str]]:
        if not self.world:
            return [{**self.env}]
        plain = {"WORLD_SIZE": str(self.world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
        numbers = self.only or range(self.world)
        return [{**plain, "RANK": str(n), "LOCAL_RANK": str(n), **self.env} for n in numbers]


class Situation(Struct, frozen=True, forbid_unknown_fields=True):
    """What `situations.yaml` says about one."""

    name: str
    kind: Kind = "plain"
    ways: tuple[Way, ...] = ("local", "ssh")
    shell: str = ""
    call: Mapping[str, Any] = {}
    each: Mapping[str, Any] = {}
    script: str = ""
    log: tuple[str, ...] = ()
    log_at: int = 89_000
    uptime: int = 90_000
    act: str = ""
    busy: Mapping[str, int] = {}
    job: str = ""
    ranks: tuple[Ranks, ...] = ()
    does: str = "sleeps"
    """What the ranks do."""
    user: str = "root"
    """Whose they are."""
    then: str = ""
    box: Box | None = None
    step: str = ""
    """What the ranks of a step of Slurm do."""

    @property
    def node(self) -> str:
        return next(name for name, kind in HOSTS.items() if kind == self.kind)


class Group(Struct, frozen=True, forbid_unknown_fields=True):
    """The situations of one part of the page."""

    title: str
    situations: tuple[Situation, ...]


GROUPS = convert(entries(__file__, "situations.yaml"), tuple[Group, ...])

"""A situation: what is done to a sound host before the exam looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from tests.lab import Host, Lab
from tests.lab.amd import AmdGpus, AmdHost
from tests.lab.container import Container
from tests.lab.engine import Engine
from tests.lab.gpus import GpuHost, Gpus
from tests.lab.npus import NpuHost, Rack, fit_npus
from tests.lab.slurm import Slurm

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

    @property
    def host(self) -> Host:
        """The host without devices."""
        return self.lab["node1"]


Act = Callable[[Stage], "Container | None"]


@dataclass(frozen=True, slots=True)
class Situation:
    """`act` makes it; if it returns a container, the exam looks inside."""

    name: str
    act: Act
    kind: Kind = "plain"
    ways: tuple[Way, ...] = ("local", "ssh")
    shell: str = ""
    """What the shell that starts doctor on the host does first."""

    @property
    def node(self) -> str:
        return next(name for name, kind in HOSTS.items() if kind == self.kind)


@dataclass(slots=True)
class Group:
    """The situations of one part of the table."""

    title: str
    made: dict[str, Situation] = field(default_factory=dict)

    def add(
        self,
        name: str,
        act: Act,
        kind: Kind = "plain",
        ways: tuple[Way, ...] = ("local", "ssh"),
        shell: str = "",
    ) -> None:
        assert name not in self.made
        self.made[name] = Situation(name, act, kind, ways, shell)

    def on_host(self, name: str, act: Callable[[Host], object], shell: str = "", *ways: Way) -> None:
        """Of the host without devices."""

        def on_stage(stage: Stage) -> None:
            act(stage.host)

        self.add(name, on_stage, ways=ways or ("local", "ssh"), shell=shell)

    def text(self, name: str, script: str, shell: str = "") -> None:
        """Made by a shell on the host without devices."""
        self.on_host(name, lambda host: host.do(script), shell)

    def __iter__(self) -> Iterator[Situation]:
        return iter(self.made.values())

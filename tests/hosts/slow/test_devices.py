"""The clocks of devices beside ranks that spin in `synchronize`. Devices and their tools are emulated."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.hosts.slow.test_three_hosts import slow, the_one
from tests.lab import Host, Lab
from tests.lab.amd import fit_amd
from tests.lab.gpus import fit_gpus
from tests.lab.npus import fit_npus
from tests.lab.smi_tables import Process
from tests.support.cases import cases_with
from tests.support.slow.hosts import LabJob, training

pytestmark = pytest.mark.slow
Fitted = Callable[[LabJob], None]


@contextmanager
def nvidia(lab: Lab, hosts: list[Host]) -> Iterator[Fitted]:
    gpus = fit_gpus(lab, 2, 0)

    def fit(job: LabJob) -> None:
        for host in hosts:
            gpus[host.name][1].processes(("python", job.pid(host), 4096))
            gpus[host.name][1].works()
        gpus["node2"][1].works(1005, 310, 0x48)

    yield fit
    assert gpus.setters == ()


@contextmanager
def amd(lab: Lab, hosts: list[Host]) -> Iterator[Fitted]:
    gpus = fit_amd(lab, 2)

    def fit(job: LabJob) -> None:
        for host in hosts:
            gpu = gpus[host.name][1]
            gpu.mhz, gpu.watts, gpu.busy = 2100, 700, 100
            gpus[host.name].runs(1, ("python", job.pid(host), 4096))
        slow = gpus["node2"][1]
        slow.mhz, slow.held = 1300, ("socket_thermal",)
        gpus["node2"].tell()

    yield fit
    assert gpus.setters == ()


@contextmanager
def ascend(lab: Lab, hosts: list[Host]) -> Iterator[Fitted]:
    rack = fit_npus(lab, "atlas-a2")

    def fit(job: LabJob) -> None:
        for host in hosts:
            mhz = 1000 if host.name == "node2" else 1800
            npus = rack[host.name]
            process = Process("python", job.pid(host), 4096)
            npus.chips[1] = replace(npus.chips[1], processes=(process,), mhz=mhz, busy=80, power=310.0)
            npus.tell()

    yield fit
    assert rack.setters == ()
    rack.free()


@cases_with(nvidia, amd, ascend)
def test_the_clock_of_one_device_is_low(
    make_lab: Callable[..., Lab],
    vendor: Callable[..., Iterator[Fitted]],
    library: str,
    name: str,
    reasons: list[str],
) -> None:
    """Nobody waits less on the host, so only the clocks show it: a suspect."""
    lab = make_lab(2)
    hosts = [lab["node1"], lab["node2"]]
    with vendor(lab, hosts) as fit, training(hosts, 1, KIND="spin", LIBRARY=library) as job:  # type: ignore[attr-defined]
        fit(job)
        code, said = slow(lab, "node[1-2]", "--for", "8")
    found = the_one(said)
    assert (code, found["host"], found["slow"]["lag"], found["confidence"]) == (
        1,
        "node2",
        "slow device",
        "suspect",
    ), said
    device = said["slow"]["ranks"][1]["device"]
    assert (device["name"], device["reasons"]) == (name, reasons)

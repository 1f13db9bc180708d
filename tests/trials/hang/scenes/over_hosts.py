"""Hosts that fail under a job over three hosts, and networks between them."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.lab import Host
from tests.lab.processes import command, processes
from tests.support.cases import from_cases
from tests.support.hang.lost import lose_everything
from tests.support.injob import torchrun_argv
from tests.trials.hang.scenes.frameworks import job
from tests.trials.hang.scenes.scene import HangScene, ScenePlace, SceneTruth

SIZE = 3
DATA = "eth1"
OURS = "[t]rials/hang/jobs"
CUT = from_cases(__file__, "CUT", str)
"""SSH goes on."""
SHUT = from_cases(__file__, "SHUT", str)
FREEZERS = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
BOOTED = "echo '{0:.2f} {0:.2f}' >/run/uptime; mount --bind /run/uptime /proc/uptime"
KILLED = "[{:.6f}] Out of memory: Killed process 4711 (python) total-vm:9000000kB, anon-rss:8000000kB\n"
Strike = Callable[[ScenePlace, Host], SceneTruth]


def torchrun(place: ScenePlace, hosts: Sequence[Host], **env: str) -> None:
    for node, host in enumerate(hosts):
        words = torchrun_argv(hosts, 1, node, place.port)
        place.run(host, [*words, *job("plain")], env)


def gone(host: Host, says: str = "half open") -> SceneTruth:
    return SceneTruth((1,), frozenset({host.name}), says=says)


def loses_power(_: ScenePlace, host: Host) -> SceneTruth:
    lose_everything(host, OURS)
    return gone(host)


def is_started_again(_: ScenePlace, host: Host) -> SceneTruth:
    lose_everything(host, OURS)
    host.do(BOOTED.format(2.0))
    return gone(host, "was started again")


def is_out_of_memory(_: ScenePlace, host: Host) -> SceneTruth:
    now = float(host.do("cut -d' ' -f1 /proc/uptime"))
    lose_everything(host, OURS)
    host.kernel_log(KILLED.format(now))
    return gone(host, "its kernel killed python")


def stops(_: ScenePlace, host: Host) -> SceneTruth:
    """All its processes, as when a virtual machine is paused and its host is not."""
    host.do('pkill -STOP -f "$1"', OURS)
    return SceneTruth((1,), frozenset({host.name}), says="stopped")


def is_paused(_: ScenePlace, host: Host) -> SceneTruth:
    """Its ranks, as by `docker pause`."""
    group = freezer() / f"paused-{host.pid}"
    group.mkdir()
    for each in processes(host.pid):
        if OURS.replace("[t]", "t") in command(each):
            (group / "cgroup.procs").write_text(str(each.pid))
    (group / "cgroup.freeze").write_text("1")
    return SceneTruth((1,), frozenset({host.name}), says="is frozen")


def freezer() -> Path:
    """Where control groups can be frozen."""
    return next(each for each in FREEZERS if (each / "cgroup.procs").exists())


def resume(host: Host) -> None:
    for group in freezer().glob(f"paused-{host.pid}"):
        (group / "cgroup.freeze").write_text("0")
        for pid in (group / "cgroup.procs").read_text().split():
            (group.parent / "cgroup.procs").write_text(pid)
        group.rmdir()


def cannot_freeze() -> str:
    return "" if any((each / "cgroup.procs").exists() for each in FREEZERS) else "it needs cgroup v2"


def is_suspended(place: ScenePlace, _: Host) -> SceneTruth:
    """The whole job, as by `scontrol suspend`: no rank is at fault."""
    for host in place.hosts[:SIZE]:
        host.do('pkill -STOP -f "$1"', OURS)
    return SceneTruth((3,))


def is_cut_off(place: ScenePlace, host: Host) -> SceneTruth:
    """What it and its neighbour send to each other is dropped, and nobody tells them."""
    other = place.hosts[(place.hosts.index(host) + 1) % SIZE]
    other.nft(CUT % host.address)
    host.nft(CUT % other.address)
    return SceneTruth((1,), frozenset({host.name, other.name}))


@contextmanager
def over(place: ScenePlace, strike: Strike) -> Iterator[SceneTruth]:
    hosts = place.hosts[:SIZE]
    host = hosts[place.lot.randrange(1, SIZE)]
    torchrun(place, hosts)
    place.until_trained(hosts, range(SIZE))
    try:
        yield strike(place, host)
    finally:
        for each in hosts:
            each.sh("nft delete table inet cut; umount -l /proc/uptime")
            if not cannot_freeze():
                resume(each)


@contextmanager
def sleeps(place: ScenePlace, named: int) -> Iterator[SceneTruth]:
    """A rank sleeps; only the first hosts are `named` to doctor. If that is not all, nobody may be accused
    but by what is seen of it.
    """
    hosts = place.hosts[:SIZE]
    victim = SIZE - 1
    env = {"FAULT": "sleep", "VICTIM": str(victim), "AT": str(place.step)}
    torchrun(place, hosts, **env)
    pid = place.until_hit(hosts[victim], victim)
    if named < SIZE:
        yield SceneTruth((3,))
        return
    yield SceneTruth((1,), frozenset({hosts[victim].name}), frozenset({pid}), "sleep", rank=victim)


@contextmanager
def does_not_answer(place: ScenePlace) -> Iterator[SceneTruth]:
    """The host of the rank that sleeps has no sshd: nobody is to be accused."""
    with sleeps(place, SIZE) as truth:
        (name,) = truth.hosts
        host = place.lab[name]
        host.nft(SHUT)
        try:
            yield SceneTruth((3,))
        finally:
            host.do("nft delete table inet cut")


@contextmanager
def spawned(place: ScenePlace) -> Iterator[SceneTruth]:
    """mp.spawn on two hosts, two ranks on each: no variable of theirs says which rank they are."""
    hosts, victim = place.hosts[:2], place.lot.randrange(4)
    env = {
        "FAULT": "sleep",
        "VICTIM": str(victim),
        "AT": str(place.step),
        "MASTER_ADDR": hosts[0].address,
        "MASTER_PORT": str(place.port),
    }
    for node, host in enumerate(hosts):
        place.run(host, [sys.executable, *job("spawn"), "2", str(2 * node), "4"], env)
    home = hosts[victim // 2]
    pid = place.until_hit(home, victim)
    yield SceneTruth((1,), frozenset({home.name}), frozenset({pid}), "sleep", rank=victim)


@contextmanager
def loses_its_link(place: ScenePlace) -> Iterator[SceneTruth]:
    """The ranks have a network of their own, and one host's link to it goes down."""
    hosts = place.hosts[:SIZE]
    host = hosts[place.lot.randrange(1, SIZE)]
    for node, each in enumerate(hosts):
        words = [
            word.replace(hosts[0].address, hosts[0].data_address)
            for word in torchrun_argv(hosts, 1, node, place.port)
        ]
        place.run(each, [*words, *job("plain")], {"GLOO_SOCKET_IFNAME": DATA})
    place.until_trained(hosts, range(SIZE))
    host.link_down(DATA)
    try:
        yield SceneTruth((1,), frozenset({host.name}))
    finally:
        host.do('ip link set "$1" up', DATA)


STRIKES = {
    "host loses power": loses_power,
    "host started again": is_started_again,
    "host out of memory": is_out_of_memory,
    "host stops": stops,
    "host cut off": is_cut_off,
}
SCENES = (
    *(HangScene(name, partial(over, strike=strike), size=SIZE) for name, strike in STRIKES.items()),
    HangScene("host paused", partial(over, strike=is_paused), size=SIZE, lacks=cannot_freeze),
    HangScene("host suspended", partial(over, strike=is_suspended), size=SIZE, healthy=True),
    HangScene("host not named", partial(sleeps, named=2), size=2, healthy=True),
    HangScene("host does not answer", does_not_answer, size=SIZE, healthy=True),
    HangScene("host without link", loses_its_link, size=SIZE),
    HangScene("host spawns", spawned, size=2),
)

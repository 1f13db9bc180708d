"""Numbers in findings about several hosts: their names, clocks, interfaces, versions and connections."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from doctor.api import Expect, Here
from doctor.facts.baseline import ChangedFact, CollectiveFloor, Floor, SinceBaseline, SlowerLinks
from doctor.facts.infiniband import InfinibandPort
from doctor.facts.network import Counters, ResolvedNames, Route, Routes
from doctor.facts.run import Offset
from doctor.facts.smoke import JudgedRun, SmokeRounds, Soak
from doctor.facts.software import Python
from doctor.facts.system import Devices, Kernel
from doctor.job.plan import JobPlan, draft
from doctor.job.wishes import JobWishes
from doctor.mesh import MeshResult
from doctor.model import Host, UnreachedHost, UnreachedKind
from doctor.recording import decoded
from tests.support.accept_runs import accepting, alone, losing, shares, timed
from tests.support.captures import every_fact, held
from tests.support.recordings import mesh
from tests.support.shown_numbers import Row


def cards(held: Iterable[str], odd: Counters, usual: Counters, number: int) -> dict[str, dict[str, Counters]]:
    return {host: {"eth0": odd if n <= number else usual} for n, host in enumerate(held, 1)}


def slower(share: float, more: int) -> SlowerLinks:
    return SlowerLinks("what it sends", dict.fromkeys(names(more + 3), ("some", "less")), share=share)


def accepted(slow: dict[str, float]) -> SmokeRounds:
    """An acceptance run."""
    data = json.dumps(accepting(shares(slow), noise=0.0)).encode()
    return SmokeRounds((JudgedRun(decoded(data, Path("run.json")).smoke[0], ()),))


def accepted_losing(lost: dict[str, float], others: float) -> SmokeRounds:
    """An acceptance run whose links sent so much again."""
    data = json.dumps(losing(accepting(shares({}), noise=0.0), lost, others)).encode()
    return SmokeRounds((JudgedRun(decoded(data, Path("run.json")).smoke[0], ()),))


def timed_rounds(rate: float) -> SmokeRounds:
    """An acceptance run that timed collectives; so many MB/s."""
    data = json.dumps(timed(accepting(shares({})), rate * 1e6)).encode()
    return SmokeRounds((JudgedRun(decoded(data, Path("run.json")).smoke[0], ()),))


def alone_rounds(slow: dict[str, float]) -> SmokeRounds:
    """An acceptance run that measured hosts alone."""
    data = json.dumps(alone(accepting(shares({})), slow, noise=0.0)).encode()
    return SmokeRounds((JudgedRun(decoded(data, Path("run.json")).smoke[0], ()),))


def soaked(course: Sequence[float]) -> Soak:
    """Four hosts: what one does after 20 good rounds."""
    others = {"h2": 1e9, "h3": 1e9, "h4": 1e9}
    shares = [1.0] * 20 + [*course]
    rounds = tuple((10.0 * n, {"copy": {"h1": 1e9 * share, **others}}) for n, share in enumerate(shares))
    return Soak(rounds, 1, len(rounds))


def moving(soak: Soak, name: str, values: Sequence[float]) -> Soak:
    """What one host counts before its last 8 rounds, and in them; the others count nothing."""
    others = dict.fromkeys(("h2", "h3", "h4"), 0.0)
    told = [(-1.0, {name: {"h1": values[0], **others}}), (192.0, {}), (206.0, {name: {"h1": values[1]}})]
    return replace(soak, readings=(*told, *((each, {}) for each in (216.0, 280.0))))


def floors_of_host(least: dict[str, float]) -> tuple[CollectiveFloor, ...]:
    return tuple(CollectiveFloor(f"host {what} /data", value, "its floor") for what, value in least.items())


def names(number: int, letter: str = "h") -> list[str]:
    return [f"{letter}{n}" for n in range(1, number + 1)]


def addresses(number: int, same: int = 0) -> dict[str, dict[str, tuple[str, ...]]]:
    """Each host has an address of its own, except for the first few."""
    return {
        f"h{n}": {"eth0": ("10.0.0.250" if n <= same else f"10.0.{n // 200}.{n % 200 + 1}",)}
        for n in range(1, number + 1)
    }


def made(
    number: int, same: int = 0, **wishes: object
) -> tuple[JobPlan, dict[str, dict[str, tuple[str, ...]]]]:
    """The plan and the addresses of hosts that name their data addresses."""
    held = addresses(number, same)
    hosts = [
        Host(host, f"172.16.{n // 200}.{n % 200}", data=own["eth0"][0])
        for n, (host, own) in enumerate(held.items(), 1)
    ]
    return draft(hosts, replace(JobWishes(), **wishes)), held  # type: ignore[arg-type]


def unreachable(plan: JobPlan, **changes: object) -> tuple[object, ...]:
    """All connections to one host are lost; changes are of all links."""
    hosts = tuple(host.name for host in plan.hosts)
    seen = mesh(hosts, *((host, "h2") for host in hosts if host != "h2"))
    links = tuple(replace(link, **changes) for link in seen.links)  # type: ignore[arg-type]
    return (replace(seen, links=links), hosts, plan, {}, {}, {}, {}, {}, {}, {})


def carried(number: int, load: int) -> MeshResult:
    whole = mesh(names(number))
    links = (
        replace(link, carried="back" if link.source == "h2" else "out" if link.target == "h2" else "both")
        for link in whole.links
    )
    return replace(whole, links=tuple(links), load=load)


def unreached(
    kind: UnreachedKind, failed: int, fine: int, detail: str = ""
) -> dict[str, UnreachedHost | None]:
    why = {host: UnreachedHost(host, kind, "it fails", "look", (), detail) for host in names(failed)}
    return why | dict.fromkeys(names(fine, "f"))


def infiniband(number: int, own: InfinibandPort) -> dict[str, list[InfinibandPort]]:
    up = InfinibandPort("mlx5_0", 1, "active", "linkup", "400 Gb/sec", "infiniband")
    other = replace(up, device="mlx5_1")
    return {host: [other, own if host == "h1" else up] for host in names(number)}


DOWN = InfinibandPort("mlx5_0", 1, "down", "polling", "400 Gb/sec", "infiniband")
NET = Routes((Route("eth0", IPv4Network("10.0.0.0/8"), 0),))


def resolved(number: int, wrong: int) -> tuple[object, ...]:
    """The first host resolves the names of some others to an address that they do not have."""
    plan, held = made(number)
    right = {host: own["eth0"] for host, own in held.items()}
    bad = {f"h{n}": ("10.9.9.9",) for n in range(2, wrong + 2)}
    views = {host: ResolvedNames(right | bad if host == "h1" else right, host) for host in held}
    return views, held, plan


def wires(changes: int) -> Any:
    """Of a host that has been up for ten days."""
    files = {"/sys/class/net/eth0/carrier_changes": str(changes), "/proc/uptime": "864000.00 1.00"}
    return held(every_fact()["wires"], files)


ROWS: dict[str, Row] = {
    "data-address-duplicate": lambda same=4: (
        (made(same + 2, same)[1], made(same + 2, same)[0], {}, {}, None),
        f"{same}",
    ),
    "hostname-duplicate": lambda same=4: ((dict.fromkeys(names(same), "gpu"), {}, {}), f"{same}"),
    "mac-address-twice": lambda same=4: (
        (
            {host: {"eth0": Counters(1500, 10000, 0, "02:00:00:00:00:01")} for host in names(same)},
            made(same)[1],
            dict.fromkeys(names(same), NET),
            made(same)[0],
            {},
            None,
        ),
        f"{same}",
    ),
    "names-disagree": lambda wrong=8: (
        resolved(30, wrong),
        f"{wrong - 1}",
    ),
    "names-disagree: stale": lambda number=8: (
        (
            {h: ResolvedNames({"h1": ("10.9.9.9",)}, h) for h in names(number)},
            made(number)[1],
            made(number)[0],
        ),
        f"{number - 1}",
    ),
    "names-disagree: stale names": lambda stale=8, number=30: (
        (
            {h: ResolvedNames(dict.fromkeys(names(stale), ("10.9.9.9",)), h) for h in names(number)},
            made(number)[1],
            made(number)[0],
        ),
        f"{stale} {number - 1} {number - 1} {number - 1} {stale - 3}",
    ),
    "clock-skew: small": lambda skew=4.0: (
        ({"h1": Offset(-skew, -skew), **dict.fromkeys(names(3, "f"), Offset(0.0, 0.0))}, Expect()),
        f"{skew:.1f} 1! -{skew:.1f} -{skew:.3f} -{skew:.3f}",
    ),
    "clock-skew: set": lambda jump=4.0: (
        ({"h1": Offset(0.0, 0.0, jump), **dict.fromkeys(names(3, "f"), Offset(0.0, 0.0))}, Expect()),
        f"{jump:.1f} {jump:.1f} {jump:.3f}",
    ),
    "link-speed-mismatch": lambda slow=1000, fast=100000, others=8: (
        (
            cards(made(others + 1)[1], Counters(1500, slow, 0), Counters(1500, fast, 0), 1),
            made(others + 1)[1],
            made(others + 1)[0],
        ),
        f"{fast} {others} {slow} {slow} {fast}",
    ),
    "link-flapping": lambda changes=800, usual=20: (
        (
            {host: wires(changes if host == "h1" else usual) for host in made(8)[1]},
            made(8)[1],
            made(8)[0],
        ),
        f"{usual / 20:.1f} {changes // 2} {changes / 20:.1f} {changes}",
    ),
    "nic-errors": lambda errors=5000, most=1000: (
        (
            {"eth0": Counters(1500, 1, errors)},
            made(2)[1]["h1"],
            made(2)[0],
            Here("h1", is_head=True),
            Expect(nic_errors=most),
        ),
        f"{most} {errors} {errors}",
    ),
    "port-unreachable: mccl": lambda port=8118: (
        unreachable(made(6)[0], kind="mccl", port=port),
        f"{port} 5! 5!",
    ),
    "large-packets-lost": lambda number=8, load=65536: (
        (carried(number, load), made(number)[0]),
        f"{load // 1024} {number - 1} {2 * (number - 1)}" + f" {load // 1024}" * min(8, number - 1),
    ),
    "host-unreachable: keys": lambda failed=40: (
        (unreached(UnreachedKind.KEY_UNKNOWN, failed, 0, "ED25519 key SHA256:" + "A" * 43),),
        f"{failed} {failed} {failed - 16}",
    ),
    "ib-port-down": lambda hosts=8: ((infiniband(hosts, DOWN), made(hosts)[0]), f"{hosts - 1} 1! 400!"),
    "version-drift": lambda others=8: (
        (
            {h: Kernel("6.1.0" if h == "h1" else "6.2.0", "SMP", "Debian") for h in names(others + 1)},
            {},
            {},
            dict.fromkeys(names(others + 1), Devices({}, "cpu")),
            made(1)[0],
            *({}, {}, {}),
        ),
        f"{others}",
    ),
    "changed-since-baseline": lambda more=4: (
        (SinceBaseline("then", {("h1",): (ChangedFact("thing", {("a", "b"): ("h1",)}),) * (more + 3)}, {}),),
        f"{more}",
    ),
    "changed-since-baseline: forms": lambda more=4: (
        (
            SinceBaseline(
                "then",
                {("h1",): (ChangedFact("thing", {(f"a{n}x", "b"): ("h1",) for n in range(more + 3)}),)},
                {},
            ),
        ),
        f"{more}",
    ),
    "smoke-slower-than-baseline": lambda share=0.25, more=4: (
        (SmokeRounds(()), SinceBaseline("then", {}, {}, (slower(share, more),))),
        f"{100 * share:.0f} {more}",
    ),
    "accept-slow-link": lambda part=0.04: (
        (accepted({"node2": part}), None, None),
        f"{8000 * part:.1f} {100 * part:.0f} 8.00! 8.00! {8000 * part:.1f} …",
    ),
    "accept-slow-link: losses": lambda part=0.04, others=0.002: (
        (accepted_losing({">node2": part}, others), None, None),
        f"{100 * part:.1f} {100 * others:.2f} {100 * others:.2f} {100 * part:.1f} …",
    ),
    "accept-slow-collective": lambda rate=50, floor=400: (
        (timed_rounds(rate), (CollectiveFloor("inter broadcast 4MB", 1e6 * floor, "its floor"),)),
        f"{(bus := 4.194304 / (1e-4 + 4.194304 / rate)) / 0.9:.3g} {floor} {bus:.3g} 4! …",
    ),
    "accept-slow-host": lambda part=0.3: (
        (alone_rounds({"node2 matmul": part}), None, None),
        f"{100 * part:.3g} {100 * part:.0f} 100! 100! {100 * part:.3g} …",
    ),
    "accept-slow-host: floors": lambda write=0.3: (
        (
            alone_rounds({"node2 write": write, "node2 fsync": 0.5}),
            Floor(0.0, "", (), floors_of_host({"write": 350e6, "fsync": 450.0})),
            None,
        ),
        f"{400 * write:.3g} {400 * write:.3g} …",
    ),
    "accept-soak": lambda share=0.4, rounds=8: (
        (SmokeRounds(()), soaked([share] * rounds)),
        f"{(slower := f'{100 - 100 * share:.0f}')} {rounds} {slower} …",
    ),
    "accept-soak: an episode": lambda share=0.4, rounds=8: (
        (SmokeRounds(()), soaked([share] * rounds + [1.0] * 9)),
        f"{(slower := f'{100 - 100 * share:.0f}')} {rounds} {slower} …",
    ),
    "accept-soak: a ramp": lambda rounds=24: (
        (SmokeRounds(()), soaked([math.exp(-(n + 1) / rounds) for n in range(rounds)])),
        f"{rounds - int(rounds * -math.log(0.9) / 2)} {(last := 62 if rounds == 12 else 60)} {last} …",
    ),
    "accept-soak: what was counted then": lambda more=40: (
        (SmokeRounds(()), moving(soaked([0.4] * 8), "throttled", [0.0, more])),
        f"60! 8! 60! {more} …",
    ),
    "accept-soak: what was otherwise then": lambda degrees=80: (
        (SmokeRounds(()), moving(soaked([0.4] * 8), "celsius", [degrees / 2, degrees])),
        f"60! 8! 60! {degrees} {degrees // 2} …",
    ),
    "version-drift: tie": lambda half=4: (
        (
            {
                h: Kernel("6.1.0" if n < half else "6.2.0", "SMP", "Debian")
                for n, h in enumerate(names(2 * half))
            },
            {},
            {},
            dict.fromkeys(names(2 * half), Devices({}, "cpu")),
            made(1)[0],
            *({}, {}, {}),
        ),
        f"{half} {half}",
    ),
    "version-drift: packages": lambda differing=20: (
        (
            {},
            {},
            {
                h: Python(
                    "/opt/python",
                    "3.11",
                    {},
                    others={f"p{n}": v for n in range(differing)},
                    system=frozenset(),
                )
                for h, v in {"h1": "old", "h2": "new", "h3": "new"}.items()
            },
            dict.fromkeys(names(3), Devices({}, "cpu")),
            made(1)[0],
            *({}, {}, {}),
        ),
        f"{differing - 4} {differing - 4} …",
    ),
}

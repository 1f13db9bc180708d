"""Signs of a failing Ascend link: optical values, links that flap, errors that add up."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import median_low

from doctor.api import (
    EXPECT,
    HERE,
    PLAN,
    Backend,
    Damage,
    Evidence,
    Expect,
    Fact,
    Here,
    JobPlan,
    Problem,
    Scope,
    Severity,
    Skip,
    Undecided,
    UnreadableOutput,
    check,
    maybe,
)
from doctor.facts.ascend.hccn_tool import PerDevice, devices, hccn, split_known
from doctor.facts.ascend.network import NPU_LINKS
from doctor.facts.ascend.ports import NPU_COUNTERS, NPU_OPTICS, Optics
from doctor.facts.device_tools import ToolCall
from doctor.facts.key_values import count, fields
from doctor.rules.devices import (
    HostDevice,
    OddDevices,
    alike,
    alike_on_host,
    note_unknown,
    of_cluster,
    of_host,
    problem_of,
)

SHOWN = 4
DAY = 24 * 3600
FAR_ABOVE = 10
"""How many times the median a counter must exceed."""
ERRORS = (
    "mac_rx_fcs_err_pkt_num",
    "mac_rx_bad_pkt_num",
    "mac_tx_bad_pkt_num",
    "roce_rx_err_pkt_num",
    "roce_tx_err_pkt_num",
    "roce_verification_err_num",
    "roce_qp_status_err_num",
    "roce_out_of_order_num",
    "roce_new_pkt_rty_num",
)
CONGESTION = re.compile(r"mac_[rt]x_(?:mac_pause|pfc_pkt)_num|roce_[rt]x_cnp_pkt_num")


@dataclass(frozen=True, slots=True)
class LinkChange:
    """`seconds_ago` is measured by the device's own clock, which may differ from the host's."""

    at: str
    seconds_ago: float | None
    up: bool


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WHEN = r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2} [0-9]{4}"
_CHANGE = re.compile(rf"({_WHEN})\s{{1,20}}LINK (UP|DOWN)\b")


def _time(text: str) -> datetime | None:
    """The time, read without strptime, because its month names depend on the locale."""
    if not re.fullmatch(_WHEN, text):
        return None
    _, month, day, clock, year = text.split()
    hour, minute, second = map(int, clock.split(":"))
    try:
        return datetime(int(year), _MONTHS.index(month) + 1, int(day), hour, minute, second)
    except ValueError:
        return None


def _history(call: ToolCall) -> tuple[LinkChange, ...]:
    found = fields(call.text)
    if count(found.get("link up count", "")) is None:
        raise UnreadableOutput("")
    now = _time(found.get("current time", ""))
    changes = []
    for at, way in _CHANGE.findall(call.text)[:200]:
        then = _time(at)
        ago = (now - then).total_seconds() if now and then else None
        changes.append(LinkChange(at, ago if ago is not None and ago >= 0 else None, way == "UP"))
    return tuple(changes)


NPU_LINK_HISTORY: Fact[PerDevice[tuple[LinkChange, ...]]] = hccn(
    "npu-link-history", "-i $n -link_stat -g", _history
)
"""The latest changes, newest first."""


@check(
    "device-optical",
    NPU_OPTICS,
    PLAN,
    HERE,
    maybe(NPU_LINKS),
    damage=Damage.LOAD,
    severity=Severity.WARN,
    remedy="look-at-npu-optics",
    causes=("device-link-down",),
    backends=(Backend.HCCL,),
)
def device_optical(
    optics: PerDevice[Optics | None], plan: JobPlan, here: Here, links: PerDevice[bool] | None
) -> Iterator[Problem]:
    """The optical module of an NPU is out of its own limits, gets no light, or is missing.

    Why it matters: a module that is hot or dirty, or whose fibre is bent, loses packets first and its link
    later; the collectives on all ranks slow down with it.

    How it is known: the values of `hccn_tool -optical -g` against the thresholds that the module names.

    What to do: if no light is received, check the fibre and the module at its other end. If its own values
    are out of their limits, clean or replace the module.
    """
    known, why = of_host(optics, plan, here.name)
    up = split_known(links)[0] if links else {}
    fitted = any(known.values())
    if not why and not fitted and not any(up.get(device) is False for device in known):
        raise Skip("its NPUs have no optical modules")
    faults = {device: _faults(own, fitted or up.get(device) is False) for device, own in known.items()}
    for (words, _), numbers in alike({d: (found, up.get(d)) for d, found in faults.items() if found}):
        yield problem_of(
            numbers,
            "its optical module is not as it should be",
            *(Evidence(f"hccn_tool -i {n} -optical -g", _readings(known[n])) for n in numbers[:SHOWN]),
            expected="values within the module's own limits",
            actual="; ".join(words),
        )
    if why:
        raise Undecided(why)


def _faults(optics: Optics | None, needed: bool) -> tuple[str, ...]:
    """The faults as texts without numbers, so that devices with the same fault are grouped.

    A copper cable needs no module: if no device has one, nothing is missing.
    """
    if optics is None:
        return ("the module is not present",) if needed else ()
    found: dict[str, list[str]] = {}
    limits = {_key(key): value for key, value in optics.values.items()}
    for key, value in optics.values.items():
        measure = re.fullmatch(r"(temp)erature|(vcc)|([tr]xpower)\d{1,2}", _key(key))
        if measure is None:
            continue
        kind = measure[1] or measure[2] or measure[3]
        low, high = limits.get(f"{kind}lowthres"), limits.get(f"{kind}highthres")
        if kind.endswith("power") and value == 0:
            found.setdefault("no light", []).append(key)
        elif low is not None and high is not None and low < high and not low <= value <= high:
            found.setdefault("too low" if value < low else "too high", []).append(key)
    raised = [key for key, value in optics.flags.items() if value > 0 and re.search("los|lol", _key(key))]
    missing = ["the module is not present"] if optics.present is False else []
    words = [f"{fault}: {', '.join(keys[:SHOWN])}" for fault, keys in found.items()]
    return (*missing, *words, *([f"raised: {', '.join(raised)}"] if raised else []))


def _key(text: str) -> str:
    return re.sub("[^a-z0-9]", "", text.lower())


def _readings(optics: Optics | None) -> str:
    if optics is None:
        return "Optical module is not present."
    read = [f"{key} {value:g}" for key, value in optics.values.items() if "bias" not in _key(key)]
    return ", ".join([*read, *(f"{key} {value:#x}" for key, value in optics.flags.items() if value > 0)])[
        :600
    ]


@check(
    "device-link-flaps",
    NPU_LINK_HISTORY,
    PLAN,
    HERE,
    EXPECT,
    damage=Damage.LOAD,
    severity=Severity.WARN,
    remedy="look-at-npu-link",
    causes=("device-link-down",),
    backends=(Backend.HCCL,),
)
def device_link_flaps(
    history: PerDevice[tuple[LinkChange, ...]], plan: JobPlan, here: Here, expect: Expect
) -> Iterator[Problem]:
    """The link of an NPU went down several times in the last 24 hours.

    Why it matters: each time, packets are lost and sent again; a running job stalls, or fails with timeouts
    on ranks that have nothing to do with it.

    How it is known: the changes that `hccn_tool -link_stat -g` lists, by the device's own clock. Older ones
    do not count, and a restart of host or switch explains one or two (--expect link_flaps=2).

    What to do: check cable, optical module and switch port; replace the module.
    """
    known, why = of_host(history, plan, here.name)
    recent = {
        device: [c for c in own if not c.up and c.seconds_ago is not None and 0 <= c.seconds_ago <= DAY]
        for device, own in known.items()
    }
    flapping = [device for device, downs in recent.items() if len(downs) > expect.link_flaps]
    if flapping:
        counts = sorted({len(recent[device]) for device in flapping})
        often = " to ".join(dict.fromkeys((str(counts[0]), str(counts[-1]))))
        yield problem_of(
            flapping,
            "its link went down several times in the last 24 hours",
            *(
                Evidence(
                    f"hccn_tool -i {n} -link_stat -g", "LINK DOWN " + ", ".join(c.at for c in recent[n][:8])
                )
                for n in flapping[:SHOWN]
            ),
            expected=f"at most {expect.link_flaps} times",
            actual=f"{often} time{'s' if counts[-1] > 1 else ''}",
        )
    timeless = [
        device
        for device, own in known.items()
        if sum(not c.up and c.seconds_ago is None for c in own) > expect.link_flaps
    ]
    if timeless and not why:
        why = f"{devices(timeless)}: the times of its link's changes could not be read"
    if why:
        raise Undecided(why)


@check(
    "device-link-errors",
    NPU_COUNTERS,
    PLAN,
    EXPECT,
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    remedy="look-at-npu-counters",
    backends=(Backend.HCCL,),
)
def device_link_errors(
    counters: Mapping[str, PerDevice[Mapping[str, int]]], plan: JobPlan, expect: Expect
) -> Iterator[Problem]:
    """The link of an NPU has counted far more errors than the others'.

    Why it matters: damaged and repeated packets slow the collectives of all ranks, and announce a link that
    fails.

    How it is known: the counters have added up since the driver was loaded, so only a comparison decides:
    more than ten times the median of all devices, and more than 1000 (--expect link_errors=1000). Counters of
    pauses and congestion are shown, not judged.

    What to do: see whether they still grow; check cable, optical module and switch port.
    """
    known, silent = of_cluster(counters, plan)
    if len(known) < 2 and not silent:
        raise Skip("there is no other NPU to compare with")
    usual = {
        name: median_low(own[name] for own in known.values() if name in own)
        for name in ERRORS
        if any(name in own for own in known.values())
    }
    worn: dict[HostDevice, tuple[str, ...]] = {}
    for seat, own in known.items():
        high = tuple(n for n in usual if own.get(n, 0) > max(expect.link_errors, FAR_ABOVE * usual[n]))
        if high:
            worn[seat] = high
    for host, names, numbers in alike_on_host(worn):
        expected = ", ".join(f"{name} {usual[name]}" for name in names) + " (the median of all devices)"
        shown = {number: known[host, number] for number in numbers[:SHOWN]}
        actual = "; ".join(_counter_values(own, number, names) for number, own in shown.items())
        yield OddDevices.of_host(host, numbers, expected, actual).problem(
            "its link has counted far more errors than the others'",
            *(Evidence(f"hccn_tool -i {n} -stat -g", _error_counters(own)) for n, own in shown.items()),
        )
    note_unknown(silent)


def _counter_values(own: Mapping[str, int], device: int, names: tuple[str, ...]) -> str:
    return f"device {device}: " + ", ".join(f"{name} {own[name]}" for name in names)


def _error_counters(own: Mapping[str, int]) -> str:
    """Its error counters, and those of congestion."""
    shown = [f"{n} {v}" for n, v in own.items() if v and (n in ERRORS or CONGESTION.fullmatch(n))]
    return ", ".join(shown)

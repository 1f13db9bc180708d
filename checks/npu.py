"""Whether all Ascend devices are present, healthy, and free for the job."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from doctor.api import (
    ASCEND,
    EXPECT,
    EXPECTS,
    HERE,
    PLAN,
    Backend,
    Capture,
    Confidence,
    Damage,
    Evidence,
    Expect,
    Fact,
    Here,
    JobPlan,
    Place,
    Problem,
    Run,
    Scope,
    Severity,
    Skip,
    Undecided,
    check,
    maybe,
)
from doctor.facts.ascend.hccn_tool import HCCN
from doctor.facts.ascend.hccn_tool import devices as named
from doctor.facts.ascend.job_npus import VISIBLE, chosen, used
from doctor.facts.ascend.npu_smi_card import NPU_ECC, NPU_SMI
from doctor.facts.ascend.npus import NPUS, Npu
from doctor.facts.system import DEVICES, VIEW, Devices
from doctor.model import SourcedValue, View
from doctor.rules.devices import alike, beyond_hosts, problem_of, unless_on_cpus

NEARLY_ALL = 0.9
SHOWN = 8
MOST = 256
"""The most devices of a host; a larger expectation is a typing mistake."""
ANY = ""
"""Stands for any product."""


def _openable(capture: Capture) -> frozenset[int]:
    form = re.compile(rf"^{ASCEND.files}(\d{{1,3}})$", re.MULTILINE)
    return frozenset(int(number) for number in form.findall(capture.stdout))


NPU_OPENABLE: Fact[frozenset[int]] = Fact(
    "npu-openable",
    Run(
        f'for f in {ASCEND.files}[0-9]*; do [ ! -r "$f" ] || [ ! -w "$f" ] || echo "$f"; done',
        only_if=ASCEND.where[0],
    ),
    _openable,
    timeout=2,
)
"""The device files that can be opened from here. A container may see the files of devices that it was not
given; the kernel refuses to open them for everybody inside, root included."""


@dataclass(frozen=True, slots=True)
class NpuExpectation:
    """How many NPUs a host must have, and the source of this number."""

    count: int
    why: str
    summary: str = "NPUs are missing"
    confidence: Confidence = Confidence.CERTAIN
    severity: Severity | None = None


@check(
    "device-missing",
    DEVICES,
    EXPECTS,
    PLAN,
    maybe(VIEW),
    damage=Damage.GONE,
    scope=Scope.CLUSTER,
    remedy="find-npu",
    backends=(Backend.HCCL,),
)
def device_missing(
    devices: Mapping[str, Devices],
    expects: Mapping[str, Expect],
    plan: JobPlan,
    views: Mapping[str, str],
) -> Iterator[Problem]:
    """A host has fewer NPUs than it should have.

    Why it matters: the rank that was to use the NPU stops at its start (or takes another rank's), and all
    others wait for it. A card that dropped off the bus is the usual reason; in a container, a device that was
    not passed in.

    How it is known: /dev/davinci* is compared with the expected number (--expect devices=8), what the
    container was to be given (ASCEND_VISIBLE_DEVICES), the ranks of the host, the accelerators on its PCI
    bus, the other hosts of the job that have the same product (a warning if only one host has more), and the
    number that servers of its product have, if the host has more than half of it. Numbers that are left out
    between others are a warning. If the launch asks for more NPUs than whole hosts have, no host is at
    fault. Without any of these, a job over hccl needs one NPU.
    ASCEND_RT_VISIBLE_DEVICES is honoured; what a container was not given is not missing.

    What to do: if `lspci -d 19e5:` does not list the card either, reseat it or power the host off and on; if
    it does, the driver could not start it: see the kernel log. Start containers with every device.
    """
    outside = _outside(devices, expects, plan, views)
    counts = _counts(devices)
    beyond = beyond_hosts(devices, expects, plan) is not None
    for host, own in devices.items():
        if host in outside:
            continue
        wanted = _wanted(host, own, counts, expects.get(host, Expect()), plan, views.get(host), beyond=beyond)
        if wanted.count > len(own.npus):
            yield _missing(host, own, wanted, plan)
    if outside:
        why = f"the job runs over hccl, and no host shows an NPU here{unless_on_cpus(plan)}"
        raise Undecided(f"{why}; its NPUs may be given to other containers", outside)


def _outside(
    devices: Mapping[str, Devices], expects: Mapping[str, Expect], plan: JobPlan, views: Mapping[str, str]
) -> tuple[str, ...]:
    """The containers, if no host shows or expects an NPU: the job may run in other containers."""
    seen = any(own.npus or own.of(ASCEND).on_bus for own in devices.values())
    if seen or any(expect.devices for expect in expects.values()):
        return ()
    untold = (host for host in devices if not plan.host(host).devices and not _given_ranks(plan, host))
    return tuple(host for host in untold if views.get(host) == View.CONTAINER)


def _given_ranks(plan: JobPlan, host: str) -> SourcedValue[int] | None:
    """The ranks of a host if somebody said how many they are."""
    ranks = plan.host(host).ranks
    return ranks if ranks and ranks.source not in ("devices found", "on the PCI bus", "default") else None


def _wanted(
    host: str,
    own: Devices,
    counts: Mapping[str, Counter[int]],
    expect: Expect,
    plan: JobPlan,
    view: str | None,
    *,
    beyond: bool,
) -> NpuExpectation:
    """`beyond`: the launch asks for more NPUs than whole hosts have, for which no host is at fault."""
    ids, ranks = chosen(plan), _given_ranks(plan, host)
    there, on_bus = len(own.npus), own.of(ASCEND).on_bus
    if expect.devices:
        return NpuExpectation(expect.devices, "as expected of this host")
    if ids is not None and not beyond:
        return NpuExpectation(max(ids, default=0) + 1, f"for {VISIBLE}={plan.env[VISIBLE]}")
    if (told := plan.host(host).devices) and told.value > there:
        return NpuExpectation(told.value, f"for {told.source}")
    if view == "host" and on_bus > there:
        lost = (
            "the driver made no device for NPUs on the PCI bus" if there else "the NPU driver is not loaded"
        )
        return NpuExpectation(on_bus, "as many as on the PCI bus", lost)
    if ranks and not beyond:
        return NpuExpectation(ranks.value, f"one for each rank ({ranks.source})")
    peers = counts[own.product if own.npus else ANY] - Counter([there])
    more = Counter({count: hosts for count, hosts in peers.items() if count > there})
    # Half or fewer may be single cards, or what a virtual machine was given.
    full = (n for n in ASCEND.servers.get(own.product, ()) if n // 2 < there <= n)
    whole = next(full, None) if view == "host" else None
    if more and more.total() >= NEARLY_ALL * peers.total():
        count, votes = more.most_common(1)[0]
        others = f"as on {votes} other host{'s' if votes > 1 else ''} of the job"
        severity = Severity.WARN if there and votes == 1 and whole in (None, there) else None
        return NpuExpectation(count, others, confidence=Confidence.STRONG, severity=severity)
    if whole:
        meant = f"as servers of {own.product} have; if it is to have {there}: --expect devices={there}"
        return NpuExpectation(whole, meant, confidence=Confidence.STRONG)
    if view == "host" and 0 in own.npus and (last := max(own.npus)) >= there:
        why = f"numbered 0 to {last}; if it is to have {there}: --expect devices={there}"
        return NpuExpectation(last + 1, why, "numbers of NPUs are left out", Confidence.STRONG, Severity.WARN)
    return NpuExpectation(1, "at least one, for an hccl job")


def _counts(devices: Mapping[str, Devices]) -> Mapping[str, Counter[int]]:
    """Product, or ANY -> number of NPUs -> how many hosts have that number: a host without NPUs may be of any
    product.
    """
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for own in devices.values():
        counts[own.product][len(own.npus)] += 1
        counts[ANY][len(own.npus)] += 1
    return counts


def _missing(host: str, own: Devices, wanted: NpuExpectation, plan: JobPlan) -> Problem:
    lost = sorted(set(range(min(wanted.count, MOST))) - set(own.npus))
    known = len(lost) == wanted.count - len(own.npus)
    shown = named(list(own.npus)) if own.npus else "none"
    return Problem(
        wanted.summary if own.npus or own.of(ASCEND).on_bus else "there is no NPU",
        expected=f"{wanted.count}, {wanted.why}{unless_on_cpus(plan)}",
        actual=f"{len(own.npus)}: {shown}" if own.npus else "none",
        subject=named(lost) if known else None,
        hosts=(host,),
        where=tuple(Place(host=host, device=device) for device in lost) if known else (),
        severity=wanted.severity,
        confidence=wanted.confidence,
        evidence=(
            Evidence("/dev/davinci*", shown),
            Evidence("/proc/bus/pci/devices", f"{own.of(ASCEND).on_bus} Huawei accelerators"),
        ),
        values={"device": tuple(f"/dev/davinci{device}" for device in lost)} if known else {},
    )


@check(
    "device-unhealthy",
    NPUS,
    DEVICES,
    PLAN,
    HERE,
    maybe(NPU_ECC),
    maybe(VIEW),
    maybe(NPU_OPENABLE),
    damage=Damage.GONE,
    backends=(Backend.HCCL,),
    tools=(NPU_SMI, HCCN),
)
def device_unhealthy(
    npus: tuple[Npu, ...],
    devices: Devices,
    plan: JobPlan,
    here: Here,
    ecc: Mapping[int, int] | None,
    view: str | None,
    openable: frozenset[int] | None,
) -> Iterator[Problem]:
    """npu-smi does not call an NPU healthy, or does not show it at all.

    Why it matters: a device in Alarm or Critical fails or hangs in the middle of a step, and the other ranks
    report timeouts instead. Warning means that it still works; memory errors announce a failure. If npu-smi
    or hccn_tool hangs, the driver does not answer. An NPU that npu-smi does not list, although its device
    file is there and may be opened, is lost to the driver. In a container a file that may not be opened
    belongs to a device that the container was not given.

    What to do: stop the jobs on it and reset it (`npu-smi set -t reset -i CARD -c CHIP`); if the fault comes
    back, collect logs with `msnpureport` and have the card replaced. The codes are those of Huawei's fault
    dictionary.
    """
    judged, hidden = _judged(npus, devices, plan, here.name)
    sick = {device: npu for device, npu in judged.items() if npu.health.upper() != "OK"}
    for (health, codes, errors), numbers in alike(
        {device: (npu.health, npu.codes, npu.errors) for device, npu in sick.items()}
    ):
        yield _unhealthy(health, codes, errors, [sick[number] for number in numbers])
    cards = {device: npu.card for device, npu in judged.items()}
    hurt = {d: ecc[card] for d, card in cards.items() if ecc and card in ecc}
    for count, numbers in alike({device: errors for device, errors in hurt.items() if errors > 0}):
        yield _corrupted(count, numbers, [cards[number] for number in numbers])
    lost = hidden if view == "host" else [number for number in hidden if number in (openable or ())]
    if lost and len(npus) < len(devices.npus):
        numbers_agree = {npu.device for npu in npus} <= set(devices.npus)
        yield _hidden(lost if numbers_agree else [], len(npus), len(devices.npus))
        hidden = [number for number in hidden if number not in lost]
    if hidden:
        raise Undecided(f"npu-smi does not show {named(hidden)}")
    if ecc is None:
        raise Undecided("npu-smi did not show the count of memory errors")


def _judged(
    npus: Sequence[Npu], devices: Devices, plan: JobPlan, host: str
) -> tuple[dict[int, Npu], list[int]]:
    """The job's NPUs as npu-smi shows them, and those that it does not show.

    A container may number its devices differently from npu-smi: if there are equally many, they count as the
    same devices.
    """
    shown = {npu.device: npu for npu in npus}
    mine = used(shown if len(shown) == len(devices.npus) else devices.npus, plan, host)
    if not mine:
        raise Skip("the job uses no NPU here")
    return {n: shown[n] for n in mine if n in shown}, [n for n in mine if n not in shown]


def _unhealthy(health: str, codes: tuple[str, ...], errors: tuple[str, ...], sick: list[Npu]) -> Problem:
    numbers = [npu.device for npu in sick]
    told = "; ".join((*codes[:SHOWN], *errors[:3]))
    return problem_of(
        numbers,
        f"npu-smi calls its health {health}",
        Evidence("npu-smi info", f"{named(numbers)}: {health}"),
        *(Evidence("npu-smi info -t health", text) for text in (*codes[:SHOWN], *errors[:SHOWN])),
        expected="OK",
        actual=f"{health} ({told})" if told else f"{health}, without an error code",
        severity=Severity.WARN if health.lower() == "warning" else None,
        commands=(
            "sudo msnpureport",
            *(f"# With no job on it: npu-smi set -t reset -i {n.card} -c {n.chip}" for n in sick[:SHOWN]),
        ),
    )


def _corrupted(count: int, numbers: list[int], cards: list[int]) -> Problem:
    return problem_of(
        numbers,
        "its memory had errors that could not be corrected",
        Evidence("npu-smi info -t ecc", f"Double Bit Error Count: {count}"),
        expected="no double-bit error",
        actual=f"{count} double-bit ECC error{'s' if count > 1 else ''}",
        severity=Severity.WARN,
        remedy="look-at-npu-memory",
        values={"card": tuple(dict.fromkeys(str(card) for card in cards))},
    )


def _hidden(hidden: list[int], shown: int, there: int) -> Problem:
    """`hidden` is empty if npu-smi numbers devices differently from the device files."""
    return problem_of(
        hidden,
        "npu-smi does not show it although its device file is there"
        if hidden
        else "npu-smi shows fewer NPUs than there are device files",
        Evidence("npu-smi info", f"{named(hidden)} not shown" if hidden else f"{shown} NPUs"),
        expected=f"{there} NPUs, as many as /dev/davinci* files",
        actual=f"npu-smi shows {shown}",
        confidence=Confidence.STRONG,
        remedy="find-npu",
        values={},
    )


@check(
    "device-busy",
    NPUS,
    DEVICES,
    PLAN,
    HERE,
    EXPECT,
    damage=Damage.BLOCKED,
    remedy="free-npu",
    backends=(Backend.HCCL,),
)
def device_busy(
    npus: tuple[Npu, ...], devices: Devices, plan: JobPlan, here: Here, expect: Expect
) -> Iterator[Problem]:
    """An NPU is in use by another job, or keeps the memory of one.

    Why it matters: two jobs on one NPU run out of its memory or of its communication resources
    (EJ0001, EI0004), or slow each other down; a leftover process holds the device for ever.

    How it is known: the processes that npu-smi shows; if it shows none, more than 15 % of the device's memory
    in use (npu_idle_percent), because npu-smi hides the processes of other containers.

    What to do: find the owners of these processes, and end the leftovers. If they are the job's own, run the
    examination before it starts.
    """
    judged, hidden = _judged(npus, devices, plan, here.name)
    for who, numbers in alike({device: _occupants(npu, expect) for device, npu in judged.items()}):
        if who is not None:
            yield _busy(who, [judged[number] for number in numbers], expect)
    if hidden:
        raise Undecided(f"npu-smi does not show {named(hidden)}")


def _occupants(npu: Npu, expect: Expect) -> tuple[str, ...] | None:
    """The names of its processes, blank for a hidden one; None for an idle device."""
    names = tuple(sorted({process.name.strip() for process in npu.processes}))
    return names or (("",) if npu.full(expect.npu_idle_percent) else None)


def _busy(who: tuple[str, ...], busy: list[Npu], expect: Expect) -> Problem:
    numbers = [npu.device for npu in busy]
    names = [name for name in who if name]
    counted = [process for npu in busy for process in npu.processes]
    if names:
        summary, actual = "processes of another job are on it", ", ".join(names)
    elif counted:
        summary, actual = "processes of another container are on it", "not visible by name from here"
    else:
        summary, actual = "its memory is in use", "the process is not visible from here"
    if names and len(names) < len(who):
        actual += ", and others not visible by name from here"
    return problem_of(
        numbers,
        summary,
        *(_uses(npu) for npu in busy[:SHOWN]),
        expected="no process" if counted else f"at most {expect.npu_idle_percent} % of its memory in use",
        actual=actual,
        confidence=Confidence.CERTAIN if names else Confidence.STRONG,
        values={"device": tuple(f"/dev/davinci{number}" for number in numbers)},
    )


def _uses(npu: Npu) -> Evidence:
    text = f"device {npu.device}: {npu.hbm_used_mb} of {npu.hbm_total_mb} MB in use"
    for process in npu.processes[:SHOWN]:
        text += f"; pid {process.pid} {process.name.strip() or '(no name)'} {process.memory_mb} MB"
    return Evidence("npu-smi info", text)

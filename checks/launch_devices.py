"""The launch: whether the hosts have the accelerators that it is written for."""

from collections.abc import Iterator, Mapping, Sequence

from doctor.api import (
    EXPECTS,
    NO_ACCELERATOR,
    PLAN,
    VENDORS,
    Backend,
    Confidence,
    Damage,
    Evidence,
    Expect,
    JobPlan,
    Problem,
    Scope,
    Severity,
    Skip,
    Undecided,
    Vendor,
    View,
    check,
    fold,
    maybe,
)
from doctor.facts.job import LAUNCHES
from doctor.facts.system import DEVICES, VIEW, Devices
from doctor.job.launch.marks import COUNTED, Mark, marks_in
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.rank_starts import file_of
from doctor.rules.devices import beyond_hosts
from doctor.rules.launch_names import remark

NOBODY_SAID = (NO_ACCELERATOR, "devices found", "on the PCI bus")
"""Sources of a backend that nobody named."""
SHOWN = 4


@check(
    "launch-devices-absent",
    LAUNCHES,
    PLAN,
    DEVICES,
    maybe(VIEW),
    scope=Scope.CLUSTER,
    damage=Damage.BLOCKED,
)
def launch_devices_absent(
    launches: tuple[Launch, ...],
    plan: JobPlan,
    devices: Mapping[str, Devices],
    views: Mapping[str, View],
) -> Iterator[Problem]:
    """The launch is written for accelerators that no host shows.

    Why it matters: the job stops when it opens its first device, and everything that was examined here was
    examined for another job: one over gloo, without devices.

    How it is known: from words in the scripts and env files of --launch. Those that do not work without the
    devices are a fault: CANN's set_env.sh, NPUS_PER_NODE, `--distributed-backend nccl`. Those that do no harm
    without them are a warning: HCCL_ and NCCL_IB_ variables, msrun, which also trains on CPUs. Comments do
    not count. `nccl` in a script does not speak against NPUs, because MindSpeed puts hccl in its place.

    What to do: name the hosts that have the devices. If the devices of these hosts are gone, load the driver.
    If the job is meant to train on CPUs, say so with --backend gloo.
    """
    given = plan.backend.source not in NOBODY_SAID
    if given and not any(COUNTED in mark.text for each in launches for mark in _marks(each.told)):
        raise Skip("the backend was given")
    shown = {v for v in VENDORS for found in devices.values() if found.of(v).numbers or found.of(v).on_bus}
    inside = bool(views) and all(view == View.CONTAINER for view in views.values())
    for launch in launches:
        found = _marks(launch.told) if not launch.live else {}
        found = {
            mark: place
            for mark, place in found.items()
            if not given or (COUNTED in mark.text and mark.strong)
        }
        meant = [vendor for vendor in VENDORS if any(vendor.name == mark.vendor for mark in found)]
        if not meant or _may_serve(meant, shown):
            continue
        if inside and not shown:
            raise Undecided(f"{launch.name} is for {_things(meant)}, which may be given to other containers")
        yield _absent(launch, meant, found, plan, shown, [*devices])


@check(
    "launch-devices",
    DEVICES,
    EXPECTS,
    PLAN,
    scope=Scope.CLUSTER,
    damage=Damage.BLOCKED,
)
def launch_devices(
    devices: Mapping[str, Devices], expects: Mapping[str, Expect], plan: JobPlan
) -> Iterator[Problem]:
    """The launch asks for more devices of a host than any host has, and no host has lost one.

    Why it matters: a rank without a device of its own stops ("invalid device ordinal"), or shares one with
    another rank, which NCCL ("Duplicate GPU detected") and HCCL refuse; all others wait for it.

    How it is known: the ranks of a host, by the launch, Slurm or --ranks-per-host, and the numbers that
    CUDA_VISIBLE_DEVICES and its likes name, from 0 on, are compared with the devices of the host that has the
    most, or is to have the most (--expect devices=8). If that is no usual number, such as 7, and one that the
    host may have lost would do, the host is at fault instead, and so is one that has fewer than others.

    What to do: start as many ranks on each host as it has devices, and name only devices that are there.
    """
    if plan.vendor is None or plan.backend.value is Backend.GLOO:
        raise Skip("the job trains on no devices")
    if beyond := beyond_hosts(devices, expects, plan):
        asked, most = beyond
        named = asked.source.partition("=")[0] in plan.vendor.visible
        thing = plan.vendor.thing
        yield Problem(
            f"the launch names {thing} {asked.value - 1}, which no host has"
            if named
            else f"the launch asks for {asked.value} ranks on a host, and no host has so many {thing}s",
            expected=f"{thing} 0 to {most - 1}" if named else f"at most {most} ranks on a host",
            actual=asked.source if named else f"{asked.value} ({asked.source})",
            subject=asked.source.partition("=")[0],
            confidence=Confidence.STRONG,
            evidence=(Evidence(f"{plan.vendor.files}*", f"at most {most} on a host, of {fold([*devices])}"),),
            commands=(
                remark(f"name {thing}s 0 to {most - 1}" if named else f"start {most} ranks on a host"),
            ),
        )


def _marks(told: Sequence[ProcessEnv]) -> Mapping[Mark, str]:
    """The words that mean accelerators, each with its file and line."""
    found: dict[Mark, str] = {}
    for each in told:
        if each.command:
            found.update({mark: f"{file_of(each)}:{mark.line}" for mark in each.marks})
        elif each.source != "inventory":
            text = "\n".join(f"{name}={value}" for name, value in each.env.items())
            found.update(dict.fromkeys(marks_in(text), each.source))
    return found


def _may_serve(meant: Sequence[Vendor], shown: set[Vendor]) -> bool:
    """Whether some of the devices that are there are meant."""
    backends = {vendor.backend for vendor in meant}
    return any(backends.intersection((vendor.backend, *vendor.replaces)) for vendor in shown)


def _things(vendors: Sequence[Vendor]) -> str:
    return " or ".join(f"{vendor.thing}s" for vendor in vendors)


def _absent(
    launch: Launch,
    meant: Sequence[Vendor],
    found: Mapping[Mark, str],
    plan: JobPlan,
    shown: set[Vendor],
    seen: Sequence[str],
) -> Problem:
    """`seen` are the hosts that could be looked at."""
    strong = any(mark.strong for mark in found)
    others = f", but {_things([vendor for vendor in VENDORS if vendor in shown])}" if shown else ""
    first = sorted(found, key=lambda mark: not mark.strong)
    rest = [host for host in plan.names if host not in seen]
    part = f"; {fold(rest)} could not be looked at" if rest else ""
    return Problem(
        f"the launch is for {_things(meant)}, and no host shows one{others}{part}",
        expected=f"{_things(meant)} on {fold(plan.names)}",
        actual="none" + (f"{others}; the job would train over {plan.carrier.value}" if not shown else others),
        subject=f"{launch.name}: {first[0].text}",
        severity=None if strong else Severity.WARN,
        confidence=Confidence.STRONG,
        evidence=(
            *(Evidence(found[mark], mark.text) for mark in first[:SHOWN]),
            *(Evidence(f"{vendor.files}*", f"no such file on {fold(seen)}") for vendor in meant),
        ),
        commands=tuple(f"ls -d {vendor.files}[0-9]*" for vendor in meant),
    )

"""Which device each rank takes: one of its own, that is there, and the one of the rank table."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from shlex import quote

from doctor.devices import Vendor
from doctor.job.launch.common import spans_hosts
from doctor.job.launch.launcher import ToldNumber
from doctor.job.launch.process_env import ProcessEnv
from doctor.job.launch.rank_env import role_variable
from doctor.job.launch.ranks import device_conflicts, may_be_inherited, ranks_of, visible_devices
from doctor.model import Confidence, Evidence, Place, Problem, Severity
from doctor.rules.launch_names import LaunchNames


def shared_devices(names: LaunchNames, most_on_a_host: int) -> Iterator[Problem]:
    """Two ranks of one host on one device. Ranks that see different devices may call them alike."""
    present = ranks_of(names.launch)
    several = spans_hosts(names.launch, [names.host(t) or t.host for t in present], most_on_a_host)
    groups: dict[Hashable, list[ProcessEnv]] = {}
    for process in present:
        host, device = names.host(process) or process.host, _device(process)
        seen = visible_devices(process)
        if device is None or device.value is None or (host is None and several):
            continue
        if seen is not None and _listed(seen) is None:
            continue  # the one device that it sees may be another's for the next rank
        groups.setdefault((host, process.env.get("GROUP_RANK"), device.said, device.value, seen), []).append(
            process
        )
    for same in groups.values():
        device = _device(same[0])
        if len(same) > 1 and device is not None and device.value is not None:
            by_hand = may_be_inherited(names.launch, same)
            yield Problem(
                f"{len(same)} ranks of one host take the same device",
                expected=f"another {device.said} for each rank of a host",
                actual=f"{device.said}={device.text} for {names.labels(same)}",
                subject=names.subject(f"device {device.value}"),
                hosts=names.hosts(same),
                where=_places(names, same, device.value),
                severity=Severity.WARN if by_hand else None,
                confidence=Confidence.SUSPECT if by_hand else Confidence.CERTAIN,
                evidence=names.evidence(same, device.said),
                commands=(f"export {device.said}=$i  # $i: another number for each rank of the host",),
            )


def devices_beyond(
    names: LaunchNames, devices: Mapping[str, frozenset[int]], vendor: Vendor
) -> Iterator[Problem]:
    """More ranks than devices, by the numbers of those that each host has; without any it is left out."""
    visible: dict[str | None, set[str | None]] = {}
    for process in ranks_of(names.launch):
        visible.setdefault(names.host(process), set()).add(visible_devices(process))
    beyond: dict[tuple[str, str, int, str | None], list[ProcessEnv]] = {}
    for process in ranks_of(names.launch):
        host, device = names.host(process), _device(process)
        if host is None or not devices.get(host) or device is None or device.value is None:
            continue
        (seen,) = visible[host] if len(visible[host]) == 1 else ("differs",)
        limit = len(devices[host]) if seen is None else _listed(seen)
        physical = device.said == "DEVICE_ID" and device.value in devices[host]
        if limit is not None and not physical and not 0 <= device.value < limit:
            beyond.setdefault((host, device.said, limit, seen), []).append(process)
    for (host, said, limit, seen), processes in beyond.items():
        texts = ", ".join(f"{said}={each.env[said]} ({names.label(each)})" for each in processes[:4])
        places = (_places(names, [each], int(each.env[said])) for each in processes)
        yield Problem(
            f"{said} is beyond the devices of the host",
            expected=f"0 to {limit - 1}: {limit} devices" + (f" are visible ({seen})" if seen else ""),
            actual=texts + (f" and {len(processes) - 4} more" if len(processes) > 4 else ""),
            subject=names.subject(said),
            hosts=(host,),
            where=tuple(place for each in places for place in each),
            evidence=names.evidence(processes, said),
            commands=(f"ssh {quote(host)} 'ls -d {vendor.files}[0-9]*'",),
        )


def against_table(names: LaunchNames, path: str, devices_by_rank: Mapping[int, int]) -> Iterator[Problem]:
    """DEVICE_ID and the rank table have to name the same device."""
    for clash in device_conflicts(names.launch, devices_by_rank):
        yield Problem(
            "DEVICE_ID is not the device that the rank table has for this rank",
            expected=f"DEVICE_ID={clash.expected} for rank {clash.rank}",
            actual=f"DEVICE_ID={clash.device}, for {clash.told.source}",
            subject=names.subject(f"rank {clash.rank}"),
            hosts=names.hosts([clash.told]),
            where=_places(names, [clash.told], clash.device),
            evidence=(
                *names.evidence([clash.told], "DEVICE_ID"),
                Evidence(path, f"rank {clash.rank} has device {clash.expected}"),
            ),
            commands=(f"export DEVICE_ID={clash.expected}",),
        )


def _device(process: ProcessEnv) -> ToldNumber | None:
    """torch goes by LOCAL_RANK, MindSpore by DEVICE_ID."""
    of_torch = "LOCAL_RANK" in process.env and process.env.keys() & {"RANK", "WORLD_SIZE"}
    name = "LOCAL_RANK" if of_torch else "DEVICE_ID"
    if name == "DEVICE_ID" and role_variable(process):
        return None  # a dynamic cluster counts the ranks of a host itself
    return ToldNumber(name, process.env[name]) if name in process.env else None


def _listed(seen: str) -> int | None:
    """How many devices a *_VISIBLE_DEVICES names; None for one: then each rank has a device of its own."""
    names = [name.strip() for name in seen.split(",")]
    return len(names) if len(names) > 1 and all(names) and "-1" not in names and seen != "differs" else None


def _places(names: LaunchNames, processes: list[ProcessEnv], device: int) -> tuple[Place, ...]:
    return tuple(Place(place.host, place.rank, device) for place in names.places(processes))

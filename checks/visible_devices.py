"""The devices that ranks can open: what *_VISIBLE_DEVICES of the login or the launch leaves to them."""

import re
from collections.abc import Iterator, Mapping, Sequence

from doctor.api import (
    HERE,
    PLAN,
    Damage,
    Here,
    JobPlan,
    Problem,
    Severity,
    Skip,
    Vendor,
    check,
    maybe,
)
from doctor.facts.gpus import Gpus
from doctor.facts.nvidia.gpus import GPUS
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.facts.system import DEVICES, Devices
from doctor.rules.devices import HIDE_ALL, beyond_hosts, ranks_said, too_few_named
from doctor.rules.login import devices_are_chosen, environment_of, wrong_value

_UUID = re.compile(r"GPU-[0-9A-Fa-f-]{1,60}")


@check(
    "devices-hidden",
    DEVICES,
    maybe(GPUS),
    maybe(ENVIRONMENT),
    PLAN,
    HERE,
    damage=Damage.GONE,
    causes=("gpu-missing", "device-missing"),
)
def devices_hidden(
    devices: Devices, listed: Gpus | None, login: Environment | None, plan: JobPlan, here: Here
) -> Iterator[Problem]:
    """A variable leaves the ranks of this host fewer devices than there are ranks.

    Why it matters: a rank that finds no device of its own stops ("invalid device ordinal"), or shares one
    with another rank, and NCCL and HCCL refuse two ranks on one device.

    How it is known: from CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES or
    ASCEND_RT_VISIBLE_DEVICES of the login, or of the launch, which overrides it. The runtimes stop reading at
    the first word that is not a device of the host; CUDA sees no device at all if one is named twice. The
    variable is not judged if nobody says how many ranks a host has, nor that of a login if Slurm gives the
    devices. Of a launch that names fewer than there are ranks, launch-values tells, and of more ranks than
    devices launch-devices. If it hides all, it is a warning: the job may be meant for CPUs.

    What to do: name as many devices as the host has ranks, each once, or start fewer ranks.
    """
    vendor, said = plan.vendor, ranks_said(plan, here.name)
    if vendor is None or not (numbers := devices.of(vendor).numbers):
        raise Skip("the host shows no accelerator")
    if said is None:
        raise Skip("nobody says how many ranks the host has")
    env = environment_of(plan, login)
    scheduled = devices_are_chosen(plan, login)
    uuids = [gpu.uuid for gpu in listed.listed] if listed else []
    for name in vendor.visible:
        of_login = name not in plan.env
        if name not in env or (of_login and scheduled):
            continue
        if too_few_named(name, plan):
            raise Skip("launch-values tells of the devices that the launch names")
        if not of_login and beyond_hosts({here.name: devices}, {}, plan):
            raise Skip("launch-devices tells of what the launch asks for")
        left = _left(env[name], vendor, numbers, uuids)
        if left is not None and left < min(said.value, len(numbers)):
            yield _problem(name, env, left, said.value, plan, here, of_login=of_login)
            return


def _problem(
    name: str, env: Mapping[str, str], left: int, ranks: int, plan: JobPlan, here: Here, *, of_login: bool
) -> Problem:
    whose = f"{name} of the login" if of_login else name
    thing = plan.vendor.thing if plan.vendor else "device"
    things = f"{left or 'no'} {thing}{'' if left == 1 else 's'}"
    summary = f"{whose} leaves {things} to the {ranks} {'rank' if ranks == 1 else 'ranks'} of this host"
    severity = Severity.WARN if env[name].strip() in HIDE_ALL else None
    host = here.name if of_login else ""
    return wrong_value(name, env[name], summary, f"{ranks}, each once", plan, host, severity)


def _left(text: str, vendor: Vendor, numbers: Sequence[int], uuids: Sequence[str]) -> int | None:
    """How many devices the runtime takes; None if that is unknown: parts of GPUs, or names without a list."""
    if not text.strip() and not vendor.empty_hides:
        return None
    found: list[object] = []
    for word in text.split(","):
        word = word if vendor.blank_ends else word.strip()
        if word.startswith("MIG-") or (word.startswith("GPU-") and not uuids):
            return None
        device = _device(word, numbers, uuids)
        if device is None or (device in found and vendor.seen_twice == "end"):
            break
        if device in found and vendor.seen_twice == "none":
            return 0
        found += [device] if device not in found else []
    return len(found)


def _device(word: str, numbers: Sequence[int], uuids: Sequence[str]) -> object:
    """The device that a word names; None if it names none, or several."""
    if re.fullmatch(r"[0-9]{1,4}", word):
        return int(word) if int(word) < len(numbers) else None
    fitting = [uuid for uuid in uuids if _UUID.fullmatch(word) and uuid.startswith(word)]
    return uuids.index(fitting[0]) if len(fitting) == 1 else None

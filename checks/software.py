"""Software: the same versions and variables everywhere, and versions that fit each other."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from shlex import quote

from doctor.api import (
    AMD,
    EXPECT,
    NVIDIA,
    PLAN,
    VENDORS,
    Backend,
    Confidence,
    Damage,
    Evidence,
    Expect,
    Framework,
    JobPlan,
    Problem,
    Scope,
    Severity,
    Skip,
    Undecided,
    check,
    fold,
    grouped,
    maybe,
)
from doctor.facts.amd.gpus import AMD_GPUS
from doctor.facts.ascend.npus import NPUS, Npu
from doctor.facts.gpus import Gpus, gpus_named
from doctor.facts.job import LAUNCHES
from doctor.facts.nvidia.gpus import GPU_HEALTH, GPUS, NvidiaHealth
from doctor.facts.nvidia.nvidia_smi import told
from doctor.facts.software import (
    ENVIRONMENT,
    PYTHON,
    VERSIONS,
    Environment,
    Python,
    Versions,
    of_one_host,
)
from doctor.facts.system import DEVICES, KERNEL, Devices, Kernel
from doctor.job.framework import FRAMEWORKS, common_framework
from doctor.job.launch.process_env import Launch
from doctor.job.launch.wrappers import is_python, program_name
from doctor.rules.devices import HIDE_ALL, alike_on_host
from doctor.rules.gpus import cuda_gpus, gpu_problem
from doctor.rules.interpreter import frameworks_of, no_common_framework, other_framework
from doctor.rules.login import START_FILES
from doctor.rules.machines import votes_of

NOT_THERE = "not installed"
LOADED_DRIVERS = {
    name: vendor
    for vendor in VENDORS
    for path, (name, _) in vendor.versions.items()
    if path.startswith(("/proc/", "/sys/"))
}
"""Drivers by name whose version is known only from a kernel that has loaded them."""
NEARLY_ALL = 0.75
"""Of the GPUs of a model."""
DRIVER_LIBRARY = "libcuda.so"
UNUSABLE = {"0": "an empty file", "folder": "a folder"}
"""By the size of a library."""
FEW = 4
"""The packages that a finding names."""
MOST_LISTED = 40
"""Those that its evidence names."""
INSTALLERS = {"pip", "uv", "wheel"}
"""They install packages, and no rank imports them."""
OURS = (
    "cluster-doctor",
    *(
        "annotated-doc",
        "annotated-types",
        "bcrypt",
        "cffi",
        "click",
        "clustershell",
        "cryptography",
        "invoke",
    ),
    *("markdown-it-py", "mdurl", "msgspec", "paramiko", "psutil", "py-spy", "pycparser", "pydantic"),
    *("pydantic-core", "pygments", "pynacl", "pyyaml", "rich", "shellingham", "tomli", "typer"),
    *("typing-extensions", "typing-inspection"),
)
"""What an installation of doctor brings: somebody has it on one host and not on the others."""


@check(
    "version-drift",
    KERNEL,
    VERSIONS,
    PYTHON,
    DEVICES,
    PLAN,
    maybe(NPUS),
    maybe(GPUS),
    maybe(AMD_GPUS),
    maybe(GPU_HEALTH),
    damage=Damage.RISK,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    several_hosts=True,
)
def version_drift(
    kernels: Mapping[str, Kernel],
    versions: Mapping[str, Versions],
    pythons: Mapping[str, Python],
    devices: Mapping[str, Devices],
    plan: JobPlan,
    npus: Mapping[str, Sequence[Npu]],
    gpus: Mapping[str, Gpus],
    amd: Mapping[str, Gpus],
    health: Mapping[str, Mapping[int, NvidiaHealth]] | None = None,
) -> Iterator[Problem]:
    """Hosts differ in the model of their accelerators, or in a version: kernel, system, drivers, packages.

    Why it matters: a host that missed an upgrade is the usual reason why one node of many is slower or fails;
    HCCL and NCCL refuse or misbehave between different versions (EI0008). A package that one host lacks ends
    its ranks at an import. The slower model holds up the ranks on the faster one, and its memory is often
    smaller.

    How it is known: each host lists the packages that the job's interpreter finds, with the commit of those
    that were installed from a repository or stay in one. Packages of the system's own tools are left out. The
    files of NCCL, RCCL, HCCL and the CUDA runtime that ranks would load are compared by name and size. A GPU
    is named if nearly all others of its model have another VBIOS.

    What to do: bring the hosts that differ to the version of the majority. Without a majority both sides are
    shown. Only hosts with the same product (the same kind of accelerator) are compared. If some have only
    torch and others only MindSpore, that is named, and their packages are not compared with each other.
    """
    for product in dict.fromkeys(found.product for found in devices.values()):
        alike = [host for host, found in devices.items() if found.product == product]
        yield from _drift(
            {host: kernels[host] for host in alike if host in kernels},
            {host: versions[host] for host in alike if host in versions},
            {host: pythons[host] for host in alike if host in pythons},
            {host: devices[host] for host in alike},
        )
        for thing, names in (
            ("NPU model", {host: [npu.name for npu in npus.get(host, ())] for host in alike}),
            ("GPU model", {host: _gpus_of(gpus, host, plan) for host in alike}),
            (
                "AMD GPU model",
                {host: [gpu.name for gpu in amd[host].listed] for host in alike if host in amd},
            ),
        ):
            models = {host: _models(own) for host, own in names.items()}
            yield from _outliers(thing, {host: own for host, own in models.items() if own}, "model")
    yield from _other_firmware(gpus, health or {})


def _other_firmware(
    gpus: Mapping[str, Gpus], health: Mapping[str, Mapping[int, NvidiaHealth]]
) -> Iterator[Problem]:
    """GPUs of a model whose VBIOS nearly no other GPU of that model has."""
    by_model: dict[str, dict[tuple[str, int], str]] = defaultdict(dict)
    for host, listed in gpus.items():
        for gpu in listed.listed:
            own = health.get(host, {}).get(gpu.index)
            vbios = told(own.said.get("vbios_version", "")) if own else ""
            if vbios and "?" not in vbios:
                by_model[gpu.name][host, gpu.index] = vbios
    for seats in by_model.values():
        usual, count = Counter(seats.values()).most_common(1)[0]
        if count >= NEARLY_ALL * len(seats):
            odd = {seat: vbios for seat, vbios in seats.items() if vbios != usual}
            for host, vbios, indices in alike_on_host(odd):
                yield gpu_problem(
                    indices,
                    "the VBIOS of the GPU differs from that of the others of its model",
                    Evidence("nvidia-smi --query-gpu=vbios_version", f"{gpus_named(indices)}: {vbios}"),
                    host=host,
                    expected=f"{usual}, as on {count} GPUs",
                    actual=vbios,
                )


def _gpus_of(gpus: Mapping[str, Gpus], host: str, plan: JobPlan) -> list[str]:
    there = host in gpus and not gpus[host].silent
    return [gpu.name for gpu in cuda_gpus(gpus[host], plan)] if there else []


def _models(names: Sequence[str]) -> str:
    """The models of a host. One card among several of another model drives a screen."""
    counted = Counter(filter(None, names))
    several = [name for name, number in counted.items() if number > 1]
    return " and ".join(sorted(several or counted))


def _drift(
    kernels: Mapping[str, Kernel],
    versions: Mapping[str, Versions],
    pythons: Mapping[str, Python],
    devices: Mapping[str, Devices],
) -> Iterator[Problem]:
    things: dict[str, Mapping[str, str]] = {
        "kernel": {host: kernel.release for host, kernel in kernels.items()},
        "system": {host: kernel.distribution for host, kernel in kernels.items() if kernel.distribution},
    }
    for name in dict.fromkeys(name for found in versions.values() for name in found.installed):
        things[name] = {
            host: found.installed.get(name, NOT_THERE)
            for host, found in versions.items()
            if _can_tell(name, devices[host])
        }
    has = {host: frameworks_of(python) for host, python in pythons.items()}
    if common_framework(has)[1]:
        frameworks = {
            host: " and ".join(FRAMEWORKS[name] for name in names) for host, names in has.items() if names
        }
        yield from _outliers("framework", frameworks, "framework")
        groups = [{h: pythons[h] for h in has if has[h] == own} for own in dict.fromkeys(has.values())]
    else:
        groups = [dict(pythons)]
    for thing, values in things.items():
        yield from _outliers(thing, values, "version")
    for group in groups:
        for thing, values in _packages_by_name(group).items():
            yield from _outliers(thing, values, "version")
        for thing, values in _libraries_by_name(group).items():
            yield from _outliers(thing, values, "file")
        yield from _other_packages(group)


def _packages_by_name(pythons: Mapping[str, Python]) -> Mapping[str, Mapping[str, str]]:
    """The interpreter and each of its packages -> the version on each host."""
    names = dict.fromkeys(name for found in pythons.values() for name in found.packages)
    return {
        "python": {host: python.version for host, python in pythons.items() if python.version},
        **{
            name: {
                host: found.packages.get(name, NOT_THERE)
                for host, found in pythons.items()
                if found.version and name not in found.unversioned
            }
            for name in names
        },
    }


def _libraries_by_name(pythons: Mapping[str, Python]) -> Mapping[str, Mapping[str, str]]:
    """Each library that ranks load -> its file on each host that has one. Other rows compare the driver and
    the packages.
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for host, python in pythons.items():
        for name, (size, file) in _loaded(python).items():
            if size not in UNUSABLE and not name.startswith(DRIVER_LIBRARY):
                packaged = "-packages/" in file
                of_file = f"{file.rpartition('/')[2]} of {size} bytes"
                found[name][host] = "the one of its package" if packaged else of_file
    return found


def _loaded(python: Python) -> Mapping[str, tuple[str, str]]:
    """The libraries that its torch or MindSpore loads, out of those that are there."""
    vendor, version = python.built or (None, "")
    major = re.search(r"\d+", version)
    cuda = ("libnccl.", DRIVER_LIBRARY, f"libcudart.so.{major[0] if major else '-'}")
    names = {NVIDIA: cuda, AMD: ("librccl.",)}.get(vendor, ()) if vendor else ()
    if python.has_torch_npu or "mindspore" in python.packages:
        names = (*names, "libhccl.")
    return {name: found for name, found in python.libraries.items() if name.startswith(names)}


def _other_packages(pythons: Mapping[str, Python]) -> Iterator[Problem]:
    """All that no row of its own compares. What most hosts lack accuses none that has it."""
    found = {
        host: {
            _plain(name): version for name, version in own.others.items() if name not in (own.system or ())
        }
        for host, own in pythons.items()
        if own.version and own.system is not None
    }
    if len({frozenset(own.items()) for own in found.values()}) < 2:
        return
    left_out = {_plain(name) for own in pythons.values() for name in own.system or ()} | INSTALLERS
    if len({OURS[0] in own for own in found.values()}) > 1:
        left_out |= {*OURS}
    odd: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    tied: list[tuple[str, Sequence[tuple[str, Sequence[str]]]]] = []
    for name in sorted({name for own in found.values() for name in own if name[0] != "~"} - left_out):
        votes, tie = votes_of({host: own.get(name, NOT_THERE) for host, own in found.items()})
        usual = votes[0][0]
        if tie and NOT_THERE not in (value for value, _ in votes):
            tied.append((name, votes))
        elif not tie and usual != NOT_THERE:
            for value, hosts in votes[1:]:
                for host in hosts:
                    odd[host].append((name, value, usual))
    for rows, alike in grouped((tuple(rows), host) for host, rows in odd.items()).items():
        yield Problem(
            "packages of the job's interpreter differ from the other hosts'",
            expected=_few([f"{name} {usual}" for name, _, usual in rows]),
            actual=_few([f"{name} {value}" for name, value, _ in rows]),
            hosts=tuple(alike),
            subject="packages",
            evidence=(Evidence("packages", ", ".join(f"{row[0]} {row[1]}" for row in rows[:MOST_LISTED])),),
        )
    if tied:
        lines = [
            f"{name} " + " and ".join(f"{value} on {fold(hosts)}" for value, hosts in votes)
            for name, votes in tied[:8]
        ]
        yield Problem(
            "packages: hosts differ, and no majority says which are right",
            expected="the same packages on every host",
            actual=_few(lines, len(tied)),
            hosts=tuple(found),
            subject="packages",
            confidence=Confidence.SUSPECT,
            evidence=tuple(Evidence("packages", line) for line in lines),
        )


@lru_cache(maxsize=10_000)
def _plain(name: str) -> str:
    """A name as an index knows it: tools write metadata of one package in several ways."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _few(packages: Sequence[str], number: int = 0) -> str:
    left = max(number, len(packages)) - FEW
    more = [f"and {left} more"] if left > 0 else []
    return ", ".join([*packages[:FEW], *more])


def _can_tell(name: str, devices: Devices) -> bool:
    """Whether the host would report the version: a driver that is not loaded is a separate fault, not another
    version.
    """
    vendor = LOADED_DRIVERS.get(name)
    return vendor is None or bool(devices.of(vendor).driver)


def _outliers(thing: str, values: Mapping[str, str], what: str) -> Iterator[Problem]:
    votes, tie = votes_of(values)
    if tie:
        sides = "; ".join(f"{value} on {len(hosts)} hosts" for value, hosts in votes)
        yield Problem(
            f"{thing}: hosts differ, and no majority says which {what} is right",
            expected=f"the same {what} on every host",
            actual=sides,
            hosts=tuple(values),
            subject=thing,
            confidence=Confidence.SUSPECT,
            evidence=tuple(Evidence(thing, f"{host}: {value}") for host, value in list(values.items())[:8]),
        )
        return
    for value, hosts in votes[1:]:
        yield Problem(
            f"{thing} differs from the other hosts'",
            expected=f"{votes[0][0]}, as on {len(votes[0][1])} hosts",
            actual=value,
            hosts=hosts,
            subject=thing,
            evidence=(Evidence(thing, value),),
        )


@check(
    "env-drift",
    ENVIRONMENT,
    PLAN,
    maybe(LAUNCHES),
    damage=Damage.RISK,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    several_hosts=True,
)
def env_drift(
    environments: Mapping[str, Environment], plan: JobPlan, launches: tuple[Launch, ...] | None
) -> Iterator[Problem]:
    """Variables that matter to the job, or the number of its user, differ between hosts.

    Why it matters: a HCCL_ or NCCL_ variable that a start file sets on one host only gives its ranks another
    timeout, buffer or interface than their peers have; they give up first, or never connect. A user whose
    number differs cannot write what the others wrote in a file system that they share. A login that hides all
    devices leaves its ranks none, and those of the other hosts wait for them.

    What to do: set it everywhere or nowhere; better in the job script than in a host's start files. Variables
    that are meant to be per host (ranks, addresses, visible devices), and those that the launch sets for all
    ranks, are not compared.
    """
    names = {name for found in environments.values() for name in found.variables if not of_one_host(name)}
    for name in sorted(names - plan.env.keys()):
        values = {host: found.variables.get(name, "(not set)") for host, found in environments.items()}
        yield from _outliers(name, values, "value")
    told = [process for launch in launches or () for process in launch.told]
    for name in plan.vendor.visible if plan.vendor and not plan.allocated else ():
        nothing = HIDE_ALL[not (plan.vendor and plan.vendor.empty_hides) :]
        hides = {host: found.variables.get(name, "0") for host, found in environments.items()}
        hides = {host: value for host, value in hides.items() if value.strip() in nothing}
        by_launch = any(each.apart or name in (*each.env, *each.unknown) for each in told)
        kept = name not in (*plan.env, *plan.unset, *plan.lines) and not by_launch
        if hides and len(hides) < len(environments) and kept:
            yield Problem(
                f"{name} of the login hides all devices, on this host alone",
                expected="not set, as on the other hosts",
                actual=f"{name}={next(iter(hides.values()))}",
                hosts=tuple(hides),
                subject=name,
                severity=Severity.FAIL,
                evidence=(Evidence("environment of the login", f"{name}={next(iter(hides.values()))}"),),
                commands=(f"grep -rsn {name} {START_FILES}",),
            )
    users = {host: found.user for host, found in environments.items() if found.user}
    for user in dict.fromkeys(name for name, _ in users.values()):
        numbers = {host: number for host, (name, number) in users.items() if name == user}
        yield from _outliers(f"number of user {user}", numbers, "number")


@check(
    "torch-missing",
    PYTHON,
    EXPECT,
    PLAN,
    maybe(LAUNCHES),
    damage=Damage.BLOCKED,
    remedy="install-torch",
)
def torch_missing(
    python: Python, expect: Expect, plan: JobPlan, launches: tuple[Launch, ...] | None
) -> Iterator[Problem]:
    """The job's interpreter has no torch that it can load, or not the expected version; or no MindSpore.

    Why it matters: the ranks on this host stop at their first import, and the others wait for them.

    What to do: name the right interpreter (`--python PATH`, or `python:` in the inventory), or install torch
    into this one; if the interpreter was named, the finding says which others of the host have torch. If none
    is named, doctor takes the one that the launch names by its path or in an environment that it activates,
    else the first that has torch: that of the environment in which it is called, `python3`, then those at
    usual places. The check applies when torch is expected: by an exam with a smoke run, by `--expect
    torch=any`, or with a version such as `torch=2.7`; and if the launch names the interpreter, and starts its
    ranks with torchrun or another launcher of one framework.

    MindSpore is wanted instead of torch if `--framework` or the launch says so (msrun, MS_* variables), or if
    all hosts have it, not all have torch, and no launcher of torch (torchrun, accelerate, deepspeed) starts
    the job. If the interpreter has only the framework that is not wanted, it is not the job's, and nothing is
    trained with it.
    """
    named = "/" in python.path and not python.version
    launched = {launch.python for launch in launches or () if launch.python and not launch.live}
    if python.path in launched and not python.version:
        raise Skip("the interpreter of the launch is not there, see launch-files-missing")
    by_launch = python.asked in launched and bool(python.asked)
    if by_launch and not expect.torch and plan.framework and plan.framework.source.startswith("--launch"):
        told = (each for launch in launches or () for each in launch.told)
        sure = all(any(is_python(program_name(word)) for word in each.command) for each in told)
        for problem in _judged(python, replace(expect, torch="any"), plan):
            yield replace(problem, severity=None if sure else Severity.WARN, remedy=None)
        return
    if not expect.torch and not named:
        raise Skip("no torch is expected (--expect torch=any asks for it)")
    yield from _judged(python, expect, plan)


def _judged(python: Python, expect: Expect, plan: JobPlan) -> Iterator[Problem]:
    """What the interpreter lacks, or that it is not there."""
    wanted = plan.framework.value if plan.framework and expect.torch in ("any", "") else "torch"
    if not python.version:
        yield Problem(
            "the job's interpreter is not there",
            expected=f"an interpreter with {FRAMEWORKS[wanted]} (--python PATH, or python: in the inventory)",
            actual=f"{python.path}: no such program{_elsewhere(python, wanted)}",
            subject=python.path,
            commands=() if python.other else (f"ls -l {quote(python.path)}", "command -v python3"),
            remedy=_name_other(python),
            values={"other": python.other},
        )
        return
    if plan.frameworks_differ and frameworks_of(python) and expect.torch == "any":
        raise Undecided(no_common_framework(plan), essential=True)
    version = python.packages.get(wanted)
    if wanted in python.unfit:
        there = f"{FRAMEWORKS[wanted]} {version or ''}".strip()
        yield _lacking(python, wanted, f"{there} for another Python", expect)
    elif wanted in python.unversioned:
        if expect.torch != "any":
            raise Undecided(f"the torch of {python.path} does not state its version")
    elif version is None:
        _refuse_another(python, wanted, plan)
        yield _lacking(python, wanted, f"no {FRAMEWORKS[wanted]}", expect)
    elif expect.torch != "any" and not (version + ".").startswith(expect.torch.rstrip(".") + "."):
        yield _lacking(python, wanted, f"torch {version}", expect)


def _refuse_another(python: Python, wanted: Framework, plan: JobPlan) -> None:
    """Another framework than that of the job shows another interpreter than the job's."""
    other, said = other_framework(python, plan), plan.framework
    if other and said and other != wanted:
        has = " ".join(filter(None, (FRAMEWORKS[other], python.packages.get(other))))
        raise Undecided(
            f"this is not the job's interpreter: {python.path} has {has} and no {FRAMEWORKS[wanted]}, "
            f"and the job trains with {FRAMEWORKS[wanted]} ({said.source}); --python names another",
            essential=True,
        )


def _lacking(python: Python, wanted: Framework, actual: str, expect: Expect) -> Problem:
    any_version = expect.torch == "any"
    return Problem(
        f"the job's interpreter has {actual}",
        expected=FRAMEWORKS[wanted] if any_version else f"torch {expect.torch}",
        actual=f"{python.path} (Python {python.version}) has {actual}{_elsewhere(python, wanted)}",
        subject=python.path,
        evidence=(
            Evidence(python.path, f"packages found: {_packages(python)}"),
            *(Evidence("compiled for another Python", file) for file in python.unfit.values()),
        ),
        remedy=_name_other(python),
        values={
            "python": python.to_type,
            "other": python.other,
            "torch": wanted if any_version else f"torch=={expect.torch.rstrip('.')}.*",
        },
    )


def _name_other(python: Python) -> str | None:
    """Nothing has to be installed if another interpreter has torch."""
    return "name-torch" if python.other else None


def _elsewhere(python: Python, wanted: Framework) -> str:
    """The interpreters of the host that have the framework, if the named one has it not."""
    found = (f"{path} ({FRAMEWORKS[wanted]} {version})" for path, version in python.elsewhere.items())
    return f"; {FRAMEWORKS[wanted]} is in {', '.join(found)}" if python.elsewhere else ""


def _packages(python: Python) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(python.packages.items())) or "none"


@check("torch-npu-unusable", PYTHON, EXPECT, PLAN, DEVICES, damage=Damage.BLOCKED, remedy="prepare-torch-npu")
def torch_npu_unusable(python: Python, expect: Expect, plan: JobPlan, devices: Devices) -> Iterator[Problem]:
    """The interpreter that the job would use has no torch_npu, or does not find the libraries of CANN.

    Why it matters: the ranks on this host cannot use its NPUs. Over SSH and in job scripts the usual reason
    is that CANN's `set_env.sh` was not sourced, which `.bashrc` does for a login at a terminal.

    What to do: source set_env.sh in a small wrapper of the interpreter, and name that (`--python PATH`, or
    `python:` in the inventory); or install the torch_npu of the same version as torch. The check applies to
    jobs over hccl for which torch is expected (see torch-missing). The versions are compared by
    version-incompatible.
    """
    if not expect.torch:
        raise Skip("no torch is expected (--expect torch=any asks for it)")
    if plan.backend.value is not Backend.HCCL:
        raise Skip("the job does not run over hccl")
    if not devices.npus:
        raise Skip("the host has no NPU")
    if not python.version or not {"torch"} & {*python.packages, *python.unversioned}:
        raise Skip("the interpreter has no torch, see torch-missing")
    if not python.has_torch_npu:
        yield _npu(python, "torch_npu is not installed", f"{python.path} has torch and no torch_npu")
    elif "torch-npu" in python.unfit:
        file = python.unfit["torch-npu"]
        yield _npu(python, "torch_npu is compiled for another Python", f"{python.path} finds {file}")
    elif python.hccl is False:
        yield _npu(
            python,
            "torch_npu does not find CANN's libraries: set_env.sh was not sourced",
            "libhccl.so is neither on LD_LIBRARY_PATH nor in the linker's cache",
        )


def _npu(python: Python, summary: str, actual: str) -> Problem:
    return Problem(
        summary,
        expected="torch_npu and CANN's libraries, as the job will have them",
        actual=actual,
        subject=python.path,
        evidence=(Evidence(python.path, f"packages found: {_packages(python)}"),),
        values={"python": python.to_type, "torch": _base(python.packages.get("torch", "")) or "VERSION"},
    )


@check("library-unusable", PYTHON, PLAN, maybe(LAUNCHES), damage=Damage.BLOCKED)
def library_unusable(
    python: Python, plan: JobPlan, launches: tuple[Launch, ...] | None = None
) -> Iterator[Problem]:
    """A library that ranks load for their devices is an empty file, a folder, or a stub of CUDA.

    Why it matters: ranks end when they load it ("file too short", "Is a directory"), or they find no GPU. A
    stub only helps to link programs: it answers every call with an error.

    How it is known: libnccl, librccl, libhccl, libcuda and libcudart are looked for as the loader does it, in
    the packages of torch, along the login's library path and in the loader's cache. Nothing is loaded. A job
    over gloo needs none of them, nor one with a torch for other devices. If a launch is given, which may set
    that path, load modules or start a container, it is a warning.

    What to do: install the package that has the file again (a full disk or a download that was cut leaves it
    empty), or take its folder out of the library path.
    """
    if plan.backend.value not in (Backend.NCCL, Backend.HCCL):
        raise Skip("the job does not run over nccl or hccl")
    if "LD_LIBRARY_PATH" in plan.env:
        raise Skip("the launch sets LD_LIBRARY_PATH")
    script = any(not launch.live for launch in launches or ())
    for name, (size, file) in _loaded(python).items():
        stub = name.startswith(DRIVER_LIBRARY) and "/stubs/" in file
        if (name.startswith("libhccl.") == (plan.backend.value is Backend.HCCL)) and (
            size in UNUSABLE or stub
        ):
            yield Problem(
                f"{name} is {UNUSABLE.get(size) or 'a stub of the CUDA toolkit'}",
                expected="a shared library",
                actual=f"{file} is {UNUSABLE.get(size) or 'a stub'}",
                subject=name,
                evidence=(Evidence(python.path, f"{name} is found at {file} ({size} bytes)"),),
                commands=(f"ls -lL {quote(file)}", "echo $LD_LIBRARY_PATH"),
                severity=Severity.WARN if script else None,
                confidence=Confidence.SUSPECT if script else Confidence.CERTAIN,
            )


@check("version-incompatible", PYTHON, VERSIONS, damage=Damage.BLOCKED)
def version_incompatible(python: Python, versions: Versions) -> Iterator[Problem]:
    """Versions on one host that do not work together.

    Why it matters: torch_npu is built for one version of torch; with another, `import torch_npu` fails or
    crashes later. A driver works with the range of firmware that it names itself.

    What to do: install the torch_npu of the same base version as torch; upgrade the firmware.
    """
    torch, npu = python.packages.get("torch"), python.packages.get("torch-npu")
    if torch and npu and _base(torch) != _base(npu):
        yield Problem(
            "torch_npu was built for another torch",
            expected=f"torch {_base(npu)} for torch_npu {npu}",
            actual=f"torch {torch}",
            subject="torch_npu",
            severity=Severity.FAIL,
            evidence=(Evidence(python.path, _packages(python)),),
            commands=(f"{python.to_type} -m pip install {quote(f'torch=={_base(npu)}')}",),
        )
    firmware, span = versions.installed.get("firmware"), versions.firmware_range
    if firmware and span and not _number(span[0]) <= _number(firmware) <= (*_number(span[1]), 1 << 30):
        yield Problem(
            "the NPU firmware is outside the range that the driver names",
            expected=f"{span[0]} to {span[1]} for driver {versions.installed.get('driver', '?')}",
            actual=firmware,
            subject="firmware",
            severity=Severity.WARN,
            evidence=(Evidence("/usr/local/Ascend/driver/version.info", f"compatible_version_fw={span}"),),
        )


def _base(version: str) -> str:
    """2.5.1.post1 and 2.5.1+cpu -> 2.5.1."""
    match = re.match(r"\d+(?:\.\d+){0,2}", version)
    return match[0] if match else version


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version))

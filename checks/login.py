"""What a login hands down to every rank that it starts: variables, limits and CPUs that spoil a training."""

from collections.abc import Iterator
from shlex import quote

from doctor.api import (
    EXPECT,
    HERE,
    PLAN,
    Backend,
    Damage,
    Evidence,
    Expect,
    Here,
    JobPlan,
    Problem,
    Severity,
    Skip,
    Undecided,
    check,
    maybe,
)
from doctor.facts.limits import CPUS, INFINITE, LIMITS, Cpus, Limits
from doctor.facts.memory import MB, MEMORY, Memory
from doctor.facts.software import ENVIRONMENT, PYTHON, Environment, Python
from doctor.rules.login import START_FILES, environment_of, started_by_launcher

SHARING = 4
"""With this many ranks on one CPU the job is ruined; with fewer it is slow."""


def _who_sets(name: str) -> tuple[str, ...]:
    return (
        f"grep -rsn {name} {START_FILES}",
        f"unset {name}    # in the job's script, before it starts Python",
    )


@check("python-home-wrong", ENVIRONMENT, maybe(PYTHON), PLAN, damage=Damage.BLOCKED)
def python_home_wrong(login: Environment, python: Python | None, plan: JobPlan) -> Iterator[Problem]:
    """PYTHONHOME names a different place from that of the job's interpreter.

    Why it matters: every Python of the login takes its standard library from there. If that is not its own,
    it does not start ("No module named 'encodings'"), or it runs with the modules of a different version.

    What to do: take PYTHONHOME out of the start files of the login and out of the job's script. A virtual
    environment does not need it.
    """
    home = environment_of(plan, login).get("PYTHONHOME", "").partition(":")[0]
    if not home:
        return
    gone = home in login.absent.get("PYTHONHOME", ())
    if python and not gone and (not python.version or python.path.startswith(home.rstrip("/") + "/")):
        return
    if not python and not gone:
        raise Undecided(
            f"whether PYTHONHOME={home} is the place of the job's interpreter, which could not be examined",
            essential=True,
        )
    yield Problem(
        "PYTHONHOME names a place without a Python library: no interpreter starts with it"
        if gone
        else "PYTHONHOME is not the place of the job's interpreter",
        expected="PYTHONHOME not set",
        actual=home,
        subject=f"PYTHONHOME={home}",
        severity=None if gone else Severity.WARN,
        evidence=(
            Evidence("environment of the login", f"PYTHONHOME={home}"),
            *((Evidence(python.path, f"Python {python.version}"),) if python else ()),
        ),
        commands=_who_sets("PYTHONHOME"),
        of_all="PYTHONHOME names a place without a Python library, on every host" if gone else "",
    )


@check("preload-missing", ENVIRONMENT, severity=Severity.WARN, damage=Damage.RISK)
def preload_missing(login: Environment) -> Iterator[Problem]:
    """LD_PRELOAD names a library that is not there.

    Why it matters: the linker goes on without it and says so on stderr each time a program starts. What the
    library was to do is not done: on aarch64 ranks fail to load torch without libgomp ("cannot allocate
    memory in static TLS block"), elsewhere they get a different memory allocator from that of their peers.

    What to do: correct the path, or take it out of LD_PRELOAD.
    """
    for path in login.absent.get("LD_PRELOAD", ()):
        yield Problem(
            "LD_PRELOAD names a library that is not there",
            expected="a file that exists",
            actual=path,
            subject=path,
            evidence=(Evidence("environment of the login", f"LD_PRELOAD has {path}"),),
            commands=(f"grep -rsn {quote(path)} {START_FILES}",),
        )


@check("time-zone-unknown", ENVIRONMENT, severity=Severity.WARN, damage=Damage.RISK)
def time_zone_unknown(login: Environment) -> Iterator[Problem]:
    """TZ names a time zone that the host does not know.

    Why it matters: programs use UTC instead, and do not say so. The logs of this host's ranks, and names of
    checkpoints that contain the time, are hours apart from those of its peers.

    What to do: correct the name, or install the time zones (tzdata). Different zones are env-drift.
    """
    for zone in login.absent.get("TZ", ()):
        yield Problem(
            "TZ names a time zone that the host does not know",
            expected="a name in /usr/share/zoneinfo",
            actual=zone,
            subject=f"TZ={zone}",
            evidence=(Evidence("environment of the login", f"TZ={zone}"),),
            commands=(f"grep -rsn {quote(zone)} {START_FILES}",),
        )


@check("address-space-limited", LIMITS, maybe(MEMORY), PLAN, EXPECT, damage=Damage.LOAD)
def address_space_limited(
    limits: Limits, memory: Memory | None, plan: JobPlan, expect: Expect
) -> Iterator[Problem]:
    """A login may use too little address space (ulimit -v) or data (ulimit -d).

    Why it matters: a rank reserves far more addresses than it has memory: torch some gigabytes for threads
    and libraries, CUDA and CANN more than all memory of the host. Under the limit `import torch`, thread
    starts or the first use of a device fail with "out of memory" while memory is free.

    What to do: take the limit (`as`, `data`) out of /etc/security/limits.conf, limits.d and the start files
    of the shell. A limit above the host's memory is a warning at most, and none for a job without devices.
    """
    if limits.address_space is limits.data is None:
        raise Skip("the kernel does not list this limit")
    whole = memory.total if memory else 0
    gloo = plan.backend.value is Backend.GLOO
    need = expect.address_space_mb * MB if gloo else max(whole, expect.address_space_mb * MB)
    for option, what, item, limit in (
        ("v", "address space", "as", limits.address_space or INFINITE),
        ("d", "data size", "data", limits.data or INFINITE),
    ):
        if limit < need or limit < (whole if gloo else INFINITE):
            yield _limit(option, what, item, limit, MB, "unlimited", limit < need)


@check("file-size-limited", LIMITS, EXPECT, damage=Damage.LOAD)
def file_size_limited(limits: Limits, expect: Expect) -> Iterator[Problem]:
    """A login may write small files only (ulimit -f).

    Why it matters: the kernel ends a rank with SIGXFSZ when a file grows beyond the limit: at the first
    checkpoint, after hours, or at once when it sets up shared memory.

    What to do: take the limit (`fsize`) out of /etc/security/limits.conf, limits.d and the start files of the
    shell.
    """
    if limits.file_size is None:
        raise Skip("the kernel does not list this limit")
    if limits.file_size < expect.file_size_mb * MB:
        wanted = f"unlimited, or {expect.file_size_mb} MB at least"
        fails = limits.file_size < expect.file_size_fail_mb * MB
        yield _limit("f", "file size", "fsize", limits.file_size, MB, wanted, fails)


@check("cpu-time-limited", LIMITS, EXPECT, damage=Damage.LOAD)
def cpu_time_limited(limits: Limits, expect: Expect) -> Iterator[Problem]:
    """A process of a login may compute for some time only (ulimit -t).

    Why it matters: the kernel ends a rank with SIGXCPU or SIGKILL once its threads have together computed for
    that time: in the middle of the training, and each rank at another step.

    What to do: take the limit (`cpu`, in minutes) out of /etc/security/limits.conf, limits.d and the start
    files of the shell.
    """
    if limits.cpu_seconds is None:
        raise Skip("the kernel does not list this limit")
    if limits.cpu_seconds < expect.cpu_hours * 3600:
        wanted = f"unlimited, or {expect.cpu_hours} hours at least"
        fails = limits.cpu_seconds < expect.cpu_fail_hours * 3600
        yield _limit("t", "cpu time", "cpu", limits.cpu_seconds, 1, wanted, fails)


def _limit(option: str, what: str, item: str, actual: int, unit: int, wanted: str, fails: bool) -> Problem:
    return Problem(
        f"the {what} of a login is limited",
        expected=wanted,
        actual=f"{actual // unit} {'MB' if unit == MB else 's'}",
        subject=f"ulimit -{option}",
        severity=None if fails else Severity.WARN,
        evidence=(Evidence("/proc/self/limits", f"Max {what} {actual}"),),
        commands=(
            f"grep -rnw {item} /etc/security/limits.conf /etc/security/limits.d",
            f"grep -rsn 'ulimit.*-{option}' {START_FILES}",
        ),
    )


@check("cpu-affinity-narrow", maybe(CPUS), maybe(ENVIRONMENT), PLAN, HERE, damage=Damage.LOAD)
def cpu_affinity_narrow(
    cpus: Cpus | None, login: Environment | None, plan: JobPlan, here: Here
) -> Iterator[Problem]:
    """A login may use fewer CPUs than it will have ranks.

    Why it matters: ranks, their data loaders and the threads of the communication library inherit the CPUs of
    the login. Several ranks on one CPU take turns, so that every collective waits for all of them.

    What to do: find what binds the login (taskset, CPUAffinity= of sshd's unit, the cpuset of a container),
    and give it all CPUs. The check does not apply to a task that a launcher has started (srun, mpirun,
    torchrun), because the launcher chose its CPUs.
    """
    if cpus is None:
        raise Skip("which CPUs it may use could not be read")
    if started_by_launcher(login):
        raise Skip("a launcher has chosen the CPUs of this task")
    ranks = plan.ranks_on(here.name)
    if cpus.allowed < min(cpus.shared, ranks):
        yield Problem(
            "the login is bound to fewer CPUs than it will have ranks",
            expected=f"{min(cpus.shared, ranks)} CPUs or more, for {ranks} ranks",
            actual=f"{cpus.allowed} of {cpus.shared} CPUs",
            severity=None if ranks >= SHARING * cpus.allowed else Severity.WARN,
            evidence=(
                Evidence("/proc/self/status", f"Cpus_allowed_list: {cpus.allowed} of {cpus.shared} CPUs"),
            ),
            commands=(
                'taskset -c "$(cat /sys/devices/system/cpu/online)" bash    # has all CPUs, for the job',
                "systemctl show -p CPUAffinity ssh sshd; cat /proc/self/cgroup    # what bound this one",
            ),
        )

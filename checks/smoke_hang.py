"""Ranks of the smoke run that do not start, hang, die, or leave the order of the others."""

import re
from collections.abc import Iterator, Mapping
from shlex import quote

from doctor.api import PLAN, VENDORS, Confidence, Damage, JobPlan, Place, Problem, Scope, check, maybe
from doctor.facts.smoke import SMOKE, SmokeRounds
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.rules.login import START_FILES, environment_of
from doctor.rules.smoke import accused, at_least

DEVICES = (
    *(id for vendor in VENDORS for id in (f"{vendor.prefix}missing", *vendor.sick, vendor.busy)),
    "fabric-manager-down",
)
NETWORK = (
    "firewall-blocks",
    "port-unreachable",
    "large-packets-lost",
    "hostname-loopback",
    "names-disagree",
    "interface-missing",
    "interface-wrong",
    "mtu-mismatch",
)
FABRIC = (
    "device-unreachable",
    "device-link-down",
    "device-tls-mismatch",
    "device-net-unhealthy",
    "ib-port-down",
    "nvlink-down",
)
MEMORY = ("shm-small", "shm-full", "memory-low")


@check(
    "smoke-not-started",
    SMOKE,
    PLAN,
    maybe(ENVIRONMENT),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    remedy="see-why-no-rank",
    causes=(
        "torch-missing",
        "version-incompatible",
        *NETWORK,
        *MEMORY,
        *DEVICES,
        "tmp-not-writable",
        "disk-full",
        "nproc-low",
        "stuck-process",
        "version-drift",
    ),
)
def smoke_not_started(
    seen: SmokeRounds, plan: JobPlan, logins: Mapping[str, Environment]
) -> Iterator[Problem]:
    """A rank of the smoke run did not start, or did not join the others.

    Why it matters: a job waits for its last rank. torch reports this only when the rendezvous times out,
    after ten minutes or half an hour, and then names a key of the store rather than a host.

    How it is known: every rank shows in memory shared with its host's agent how far it has got: process
    started, libraries loaded, connected. The finding names those that are behind when all others wait, and
    how far they got.

    Causes seen in practice: an interpreter without torch, or with a torch that fails at import (a missing
    libascend_hal.so or libcudart, torch_npu built for another torch); a driver that does not answer, so that
    the first call to the device never returns; a Python environment on a network file system that is slow on
    this host only; a name server that does not answer, which costs 5 seconds for each connection to the
    store; a host name that resolves to 127.0.1.1, on which gloo and HCCL then listen.

    What to do: name the job's interpreter with --python, or `python:` in the inventory. If an import failed,
    run the same import by hand on that host. If the rank started and never joined, check names, firewall and
    the interface that the job uses on that host. If PYTHONPATH or PYTHONHOME of the launch, or of
    every login, puts the same other module in the place of one that the framework needs, that line is at
    fault, and no host; so it is suspected if the interpreter ends at its start on all hosts alike.
    """
    problems = accused(seen, "smoke-not-started", "join")
    shadowed = _shadowed_alike(seen, plan, logins)
    yield from [shadowed] if shadowed else ()
    yield from (each for each in problems if not shadowed or each.actual != shadowed.actual)


def _shadowed_alike(seen: SmokeRounds, plan: JobPlan, logins: Mapping[str, Environment]) -> Problem | None:
    """The problem of the launch or the logins if no host of a run could import the framework, for a module
    that all are given alike.
    """
    starts = [each for run in seen.runs for each in run.charges if each.kind == "host"]
    alike = len(starts) > 1 and len({each.actual for each in starts}) == 1
    if not alike or any(host.version for run in seen.runs for host in run.result.hosts):
        return None
    own = starts[0].summary.partition(": ")[2].partition("/bin/")[0] + "/"
    for name in ("PYTHONPATH", "PYTHONHOME"):
        given = {environment_of(plan, logins.get(host)).get(name, "") for host in seen.hosts}
        folders = [f"{each.rstrip('/')}/" for each in "".join(given).split(":") if each]
        folders = [each for each in folders if not each.startswith(own)]
        proven = all(any(f in s.evidence[0].text for f in folders) for s in starts)
        before_all = re.match(r"\S+ ended early \(exit status \d", starts[0].actual) is not None
        if len(given) > 1 or not folders or not (proven or before_all):
            continue
        words, line = starts[0].summary.partition(": ")[2], plan.lines.get(name, "the launch")
        return Problem(
            f"no host can start its ranks: {words}",
            expected=starts[0].expected,
            actual=starts[0].actual,
            subject=f"{name}={given.pop()}",
            where=tuple(Place(host=host) for host in seen.hosts),
            evidence=starts[0].evidence,
            confidence=Confidence.CERTAIN if proven else Confidence.SUSPECT,
            commands=(
                f"# Correct {name} in {line}."
                if name in plan.env
                else f"ssh {quote(seen.hosts[0])} 'grep -rsn {name} {START_FILES}'",
            ),
        )
    return None


@check(
    "smoke-hang",
    SMOKE,
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    remedy="find-what-hangs",
    causes=("smoke-not-started", "smoke-crash", *NETWORK, *FABRIC, *DEVICES, *MEMORY, "stuck-process"),
)
def smoke_hang(seen: SmokeRounds) -> Iterator[Problem]:
    """The smoke run stood still: a rank never reached a collective, or one never ended.

    Why it matters: a job in this state uses up its whole allocation and prints nothing. The timeout that ends
    it, half an hour in torch (HCCL_EXEC_TIMEOUT on Ascend, EI0002 in its log), appears on the ranks that
    wait; the one that they wait for is silent.

    How it is known: each rank shows which collective it is about to enter, is inside of, or has left. When
    none of them moves any more, the rank that is outside while the others wait inside is the culprit; a
    process that is stopped, or in uninterruptible sleep, is recognised. When all are inside the same
    collective, the hosts try plain connections to each other at once, and the host or link that fails is
    named. If nothing fails there either, the finding says that no culprit could be named. A run that stalled
    for a while and then went on is a warning.

    Causes seen in practice: a debugger or a scheduler that stops a process; a read from a network file system
    that never returns (state D); a cable or switch port that failed during the run; a firewall that drops
    idle connections; packets larger than a switch allows; on NVIDIA an Xid error or a dead NVLink, on Ascend
    a port of the NPU that is down, or TLS switched on at one end only.

    What to do: the finding shows where the rank was, with its stack if it could be taken. Run the host alone:
    if it hangs there too, check its processes, disks and devices; if not, the network between the named
    hosts. For your own job, take the same stack with `py-spy dump --pid PID` on the rank that does not wait.
    """
    yield from accused(seen, "smoke-hang", "done")


@check(
    "smoke-crash",
    SMOKE,
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    remedy="see-what-killed-it",
    causes=(*MEMORY, *DEVICES, "version-incompatible", "disk-full", "nproc-low", "kernel-log"),
)
def smoke_crash(seen: SmokeRounds) -> Iterator[Problem]:
    """A rank of the smoke run died, or the connection to its host was lost.

    Why it matters: the other ranks then fail too, with "Connection closed by peer" or a timeout, each with
    its own traceback, and the first one that is printed is seldom from the rank that died first.

    How it is known: the agent of each host sees at once how a process ended, and which rank had left the
    common order before. Ranks that died because the first one did are victims and are not accused.

    Causes seen in practice: SIGKILL by the kernel's out-of-memory killer (dmesg says so) or by a limit of the
    container; SIGBUS when /dev/shm is full; SIGSEGV or SIGILL where torch or its device library was built for
    another processor or driver; an exception with its text (out of device memory, no such device, a port that
    is in use); the host itself restarting.

    What to do: read the last words of the rank in the finding, then dmesg on that host. Give a container more
    memory and --shm-size; bring the driver and the device library to versions that fit.
    """
    yield from accused(seen, "smoke-crash", "done")


@check(
    "smoke-mismatch",
    SMOKE,
    damage=Damage.WRONG,
    scope=Scope.CLUSTER,
    remedy="compare-software",
    causes=("version-incompatible", "version-drift", "env-drift"),
)
def smoke_mismatch(seen: SmokeRounds) -> Iterator[Problem]:
    """A rank called a different collective from its peers: skipped, added, reordered or of another shape.

    Why it matters: collectives have no names. One that is skipped on one rank is silently paired with the
    next one of the others: the sums are wrong and training goes on, until it hangs somewhere else. A
    different shape or type makes gloo abort a rank that did nothing wrong, and NCCL and HCCL wait for ever
    (EI0002).

    How it is known: the smoke run's schedule is fixed, and every call of a rank is compared with it: group,
    number in the group, operation, type and bytes. The finding names the scheduled call and the actual one. A
    call too few or too many shows only later; the step is named where the rank's own counts prove it.

    Causes seen in practice: in this run, whose code is the same everywhere, a different version of torch, or
    a patched one (sitecustomize, PYTHONPATH). In jobs: a branch on `rank == 0`, a data loader with one batch
    less on one rank, a parameter without gradient on some ranks, checkpoints or evaluation on some ranks
    only.

    What to do: compare the software of the named host with the others'. In your own job look for code that
    only some ranks run between the last collective that agreed and this one.
    """
    at_least(seen, "smoke-mismatch", "done", ranks=2)
    yield from accused(seen, "smoke-mismatch", "done")

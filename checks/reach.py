"""Hosts that could not be examined, or only in part."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote

from doctor.api import (
    Confidence,
    Damage,
    Evidence,
    Place,
    Problem,
    Scope,
    Severity,
    Undecided,
    check,
    fold,
    grouped,
    probably,
)
from doctor.facts.run import CUT_OFF, UNREACHED, PartialAnswer
from doctor.model import MOST_PLACES, UnreachedHost, UnreachedKind

NEARLY_ALL = 0.9
UNKNOWN = (UnreachedKind.DEADLINE, UnreachedKind.ASTRAY)
UNRESOLVED = (UnreachedKind.NAME, UnreachedKind.DEADLINE, UnreachedKind.CONTROLLER)
"""Failures before or instead of a name that was resolved."""
SLURM = (UnreachedKind.NODE, UnreachedKind.STEP)
MOST_KEYS = 16
OWN_KEYS = "for key in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $key; done"
_KEY = re.compile(r"[!-~]{1,300} ([a-z0-9@.-]{1,64}) (SHA256:[A-Za-z0-9+/]{43})")
"""The detail from the transport: the name in known_hosts, the kind of the key, its fingerprint."""


@check("host-unreachable", UNREACHED, damage=Damage.GONE, scope=Scope.CLUSTER)
def host_unreachable(reach: Mapping[str, UnreachedHost | None]) -> Iterator[Problem]:
    """A host could not be reached.

    Why it matters: a job that includes this host will not start, or will wait for it until a timeout.
    Nothing else is known of the host: it counts as unexamined, not as healthy.

    What to do: the finding names the step that failed (name, TCP, SSH, host key, login, shell) and the
    command to type. If nearly all hosts fail alike, the cause is on the way to them: this machine, the jump
    host, DNS or the network, and the finding says so instead of blaming every host. Hosts that were not asked
    because the run had no time left, because this machine ran out of memory, threads or descriptors, or
    because the run was stopped are unknown, and not at fault. For hosts whose keys are not known yet it shows
    the fingerprints, and the command that trusts them once they were compared; a key that has changed is
    never accepted.
    """
    failed = {host: why for host, why in reach.items() if why is not None}
    late = {host: why for host, why in failed.items() if why.kind in UNKNOWN}
    short = {host: why for host, why in failed.items() if why.kind is UnreachedKind.CONTROLLER}
    failed = {host: why for host, why in failed.items() if host not in late and host not in short}
    common = _common(list(failed.values()), len(reach))
    if common:
        alike = [
            host for host, why in failed.items() if (why.kind, why.summary) == (common.kind, common.summary)
        ]
        for host in alike:
            del failed[host]
        yield Problem(
            f"{len(alike)} of {len(reach)} hosts fail alike: {common.summary}",
            expected="hosts that answer",
            actual="this machine knows the keys of none of them"
            if common.kind is UnreachedKind.KEY_UNKNOWN
            else "srun starts nothing on this allocation"
            if common.kind is UnreachedKind.STEP
            else "one failure common to them all: look at what enters, and at its options"
            if common.kind is UnreachedKind.ENTRY
            else "one failure common to them all: look at this machine, the jump host, DNS or the network",
            evidence=_evidence(common, reach, alike),
            confidence=Confidence.STRONG,
            where=tuple(Place(host=host) for host in alike),
            commands=_steps(common, reach, alike),
        )
    resolved = [host for host, why in reach.items() if why is None or why.kind not in UNRESOLVED]
    for host, why in failed.items():
        if why.kind is UnreachedKind.NAME and (meant := probably(host, resolved)):
            failed[host] = _misspelled(why, meant)
    groups = grouped(((why.kind, why.summary), host) for host, why in failed.items())
    for host, why in failed.items():
        alike = groups[why.kind, why.summary]
        yield Problem(
            why.summary,
            expected=_expected(why),
            actual=why.kind.value.replace("-", " "),
            subject=_subject(why.ranks),
            hosts=(host,),
            where=tuple(Place(host=host, rank=rank) for rank in why.ranks[:MOST_PLACES]),
            evidence=_evidence(why, reach, alike),
            commands=_steps(why, reach, alike),
        )
    for why in {why.summary: why for why in short.values()}.values():
        yield Problem(
            why.summary,
            expected="a controller that can ask every host",
            actual="hosts that were not asked, or not to the end",
            severity=Severity.WARN,
            evidence=_evidence(why),
            commands=_steps(why),
        )
    unasked = {**late, **short}
    if unasked:
        raise Undecided(_reasons(unasked), tuple(unasked))


def _misspelled(why: UnreachedHost, meant: str) -> UnreachedHost:
    """Even if the name servers did not answer: the names beside it could be resolved."""
    return replace(why, summary=f"No such name. Did you mean {meant}?")


def _reasons(unasked: Mapping[str, UnreachedHost]) -> str:
    hosts = grouped((why.summary, host) for host, why in unasked.items())
    if len(hosts) == 1:
        return next(iter(hosts))
    return " ".join(f"{fold(names)}: {summary}" for summary, names in hosts.items())


def _common(failures: Sequence[UnreachedHost], hosts: int) -> UnreachedHost | None:
    """The failure that nearly all hosts share; two hosts are too few to decide."""
    if hosts < 3 or not failures:
        return None
    (kind, summary), count = Counter((why.kind, why.summary) for why in failures).most_common(1)[0]
    if count < 3 or count < NEARLY_ALL * hosts:
        return None
    return next(why for why in failures if (why.kind, why.summary) == (kind, summary))


def _expected(why: UnreachedHost) -> str:
    if why.kind is UnreachedKind.ENTRY:
        return "a shell in the container"
    if why.kind in SLURM:
        return "a node on which Slurm runs a step"
    return "every rank of the job" if why.ranks else "a shell that answers"


def _subject(ranks: Sequence[int]) -> str | None:
    return f"rank {ranks[0]}" if len(ranks) == 1 else None


def _evidence(
    why: UnreachedHost, reach: Mapping[str, UnreachedHost | None] | None = None, alike: Sequence[str] = ()
) -> tuple[Evidence, ...]:
    if why.kind is UnreachedKind.KEY_UNKNOWN and reach:
        keys = _keys(reach, alike)
        return tuple(Evidence("ssh", f"{host}: {key}") for host, key in keys.items())
    return (Evidence("srun" if why.kind in SLURM else "ssh", why.detail),) if why.detail else ()


def _steps(
    why: UnreachedHost, reach: Mapping[str, UnreachedHost | None] | None = None, alike: Sequence[str] = ()
) -> tuple[str, ...]:
    """The next step in words, then the commands to type, on the examining machine."""
    if why.kind is UnreachedKind.KEY_UNKNOWN and reach and (keys := _keys(reach, alike)):
        return _first_contact(keys)
    return (f"# {why.remedy}", *why.commands)


def _keys(reach: Mapping[str, UnreachedHost | None], hosts: Sequence[str]) -> dict[str, str]:
    """Host -> kind and fingerprint of the unknown key that it showed."""
    shown = {host: _KEY.fullmatch(why.detail) for host in hosts if (why := reach[host]) is not None}
    return {host: f"{key[1]} {key[2]}" for host, key in shown.items() if key}


def _first_contact(keys: Mapping[str, str]) -> tuple[str, ...]:
    """The keys to compare, and the command that trusts the keys of these hosts and no others."""
    width = max(map(len, keys))
    listed = [f"#   {host:<{width}}  {key}" for host, key in keys.items()]
    more = [f"#   and {len(listed) - MOST_KEYS} more: -v shows them"] if len(listed) > MOST_KEYS else []
    return (
        f"# Compare with what each host says of its own keys ({OWN_KEYS}):",
        *listed[:MOST_KEYS],
        *more,
        "# If they are equal, trust them:",
        f"doctor check {quote(fold(keys))} --accept-new",
    )


@check("probe-incomplete", CUT_OFF, damage=Damage.GONE, severity=Severity.WARN, scope=Scope.CLUSTER)
def probe_incomplete(cut: Mapping[str, PartialAnswer | None]) -> Iterator[Problem]:
    """A host's answer was cut off or damaged.

    Why it matters: the missing facts were not examined, and every check that needs them is unknown.

    What to do: the finding names what is missing and why. Raise --timeout if the host is only slow; run the
    named command on that host if it hangs.
    """
    for host, lost in cut.items():
        if lost is not None:
            yield Problem(
                f"its answer is incomplete: {lost.reason}",
                expected="the complete answer",
                actual=f"missing: {', '.join(lost.facts)}"
                if lost.facts
                else "the end of the answer is missing",
                hosts=(host,),
            )
    damaged = tuple(host for host, lost in cut.items() if lost is not None)
    if damaged:
        raise Undecided("the missing part of the answer was not examined", damaged)

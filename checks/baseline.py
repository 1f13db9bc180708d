"""What has changed since a baseline was made of good runs: facts of the hosts, and rates of their links."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace

from doctor.api import Damage, Evidence, Problem, Scope, Severity, Skip, Undecided, check, fold, grouped
from doctor.facts.baseline import SINCE, UNSTEADY, ChangedFact, SinceBaseline, SlowerLinks
from doctor.facts.smoke import SMOKE, SmokeRounds

OF_NOBODY = ("inter ", "all ")
"""Collectives between hosts: a ring does not say who slows it."""
OF_LINKS = ("what it ", "its ")
MOST = 44
FEW = 3
"""The most facts, hosts or forms of a change that are named one by one."""


@check("changed-since-baseline", SINCE, scope=Scope.CLUSTER, severity=Severity.WARN, damage=Damage.RISK)
def changed_since_baseline(seen: SinceBaseline) -> Iterator[Problem]:
    """A host is not what it was in the baseline: a version, a setting, memory, the speed of a port.

    Why it matters: what worked then and does not work now differs in something. An update that reached one
    host, a card that came back from repair with another firmware, an MTU that a restart put back are found
    here before they are found in a job.

    How it is known: `doctor baseline` wrote down what each host of good runs reported. A host is known by its
    serial number, else by its name; a host that the baseline does not have is compared with the hosts of its
    kind: the same product, model and number of devices. Only facts that both runs report are compared; sizes
    within 5 %, free memory and clocks are no change. With another interpreter its packages are not compared.
    What changed on the same hosts is one finding, and if all hosts changed alike, it is said once.

    What to do: if the change was intended, make a new baseline. Else put it back.
    """
    for hosts, facts in seen.changed.items():
        several = len(facts) > 1
        yield Problem(
            _changed(seen.day, facts),
            expected=_values(facts, 0) if several else "",
            actual=_values(facts, 1) if several else "",
            evidence=tuple(Evidence(fact.title, _forms(fact)) for fact in facts),
            hosts=hosts,
        )
    if seen.strangers:
        raise Undecided(next(iter(seen.strangers.values())), tuple(seen.strangers))


def _changed(day: str, facts: tuple[ChangedFact, ...]) -> str:
    (first, *others) = facts
    if not others and len(first.forms) == 1:
        ((before, after),) = first.forms
        return f"{first.title}: {after}; {before} in the baseline of {day}"
    named = ", ".join(fact.title for fact in facts[:FEW])
    more = f" and {len(facts) - FEW} more" if len(facts) > FEW else ""
    return f"changed since {day}: {named}{more}"


def _values(facts: tuple[ChangedFact, ...], end: int) -> str:
    """The first of them as they were (0) or are (1)."""
    return ", ".join(f"{fact.title} {next(iter(fact.forms))[end]}" for fact in facts[:FEW])


def _forms(fact: ChangedFact) -> str:
    """Each form of the change, with its hosts."""
    told = [f"{fold(hosts)}: {before} -> {after}" for (before, after), hosts in [*fact.forms.items()][:FEW]]
    return "\n".join([*told, *([f"… {len(fact.forms) - FEW} more"] if len(fact.forms) > FEW else [])])


@check(
    "smoke-slower-than-baseline",
    SMOKE,
    SINCE,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    damage=Damage.LOAD,
    remedy="look-at-link",
    causes=("smoke-slow-link", "changed-since-baseline"),
)
def smoke_slower_than_baseline(_: SmokeRounds, seen: SinceBaseline) -> Iterator[Problem]:
    """A host sends, computes or stores less than it did in the baseline.

    Why it matters: a link that was as fast as the others, and is slower now, has a fault that comes on: a
    cable, an optical plug, a port that fell back. If all links are slower, the network is shared with others
    or was changed. What computes or stores less is throttled, worn, or set up otherwise.

    How it is known: the smoke run sends between pairs of hosts, in the same way as the run of the baseline
    did. A host's rate is that of the better half of its pairs. It is named if it carries less of what it did
    than the hosts of its kind do, by at least 10 % and by six times the noise of either run; if the rates of
    the baseline were noisy, only if it carries less than a quarter of what was likely then. Round trips must
    take five times as long, and a millisecond more. Nothing is compared if the rates vary now, if the
    processors are busier than they were, or if another backend or another number of hosts measures otherwise.
    Of two hosts only the direction is known.

    Of `doctor accept` the same is known of each collective of each size (by at least 30 %, and of those
    between hosts nobody is named), of what a host computes and copies, and of what it stores (a quarter is
    left; of appends a twentieth): folders only while nobody else uses the host. A login, the start of Python
    and torch or a reverse lookup takes twice as long, and a second more.

    What to do: check the speed and the error counters of the host's port and of the switch port at the other
    end. If the change was intended, make a new baseline.
    """
    for alike in grouped((_together(slow), slow) for slow in seen.slower).values():
        first, *others = alike
        more = f" and {len(others)} more" if others else ""
        yield Problem(
            _slower(seen.day, replace(first, what=first.what + more)),
            evidence=tuple(Evidence(slow.what, _rates(slow.hosts)) for slow in alike[:MOST]),
            subject=first.subject,
            hosts=() if first.what.startswith(OF_NOBODY) else tuple(first.hosts),
            remedy=None if first.what.startswith((*OF_LINKS, *OF_NOBODY)) else "find-what-slows",
        )
    if seen.not_compared:
        raise Skip(seen.not_compared)
    named = {host for slow in seen.slower for host in slow.hosts}
    shaky = {host for (host, key), steady in seen.steady.items() if not steady and key.endswith("_gbit_s")}
    if unsteady := shaky - named:
        raise Undecided(UNSTEADY, tuple(sorted(unsteady)))


def _together(slow: SlowerLinks) -> Hashable:
    """Collectives are slow together, and so is what a host computes, or stores."""
    kind = slow.what.split(" ")[0]
    if kind in ("inter", "all", "intra"):
        return kind == "intra", tuple(slow.hosts) if kind == "intra" else ()
    return slow.what, tuple(slow.hosts), slow.subject


def _slower(day: str, slow: SlowerLinks) -> str:
    if slow.share is not None:
        return f"{slow.what}: on all hosts alike {slow.share:.0%} of what it was on {day}"
    if len(slow.hosts) == 1:
        ((before, after),) = slow.hosts.values()
        return f"{slow.what}: {after}; {before} in the baseline of {day}"
    return f"{slow.what}: worse than on {day}"


def _rates(hosts: Mapping[str, tuple[str, str]]) -> str:
    told = [f"{host}: {before} -> {after}" for host, (before, after) in [*hosts.items()][:FEW]]
    return "\n".join([*told, *([f"… {len(hosts) - FEW} more"] if len(hosts) > FEW else [])])

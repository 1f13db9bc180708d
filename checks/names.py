"""Names and time: what ranks call each other, and whether clocks agree."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping

from doctor.api import (
    EXPECT,
    HERE,
    PLAN,
    Confidence,
    Evidence,
    Expect,
    Here,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    Skip,
    Undecided,
    check,
    is_loopback,
)
from doctor.facts.network import NAMES, Names
from doctor.facts.run import CLOCKS, Offset
from doctor.facts.system import IDENTITY, Identity


@check("hostname-loopback", NAMES, PLAN, HERE, several_hosts=True, remedy="own-name-in-hosts")
def hostname_loopback(names: Names, plan: JobPlan, here: Here) -> Iterator[Problem]:
    """The host's own name resolves to a loopback address.

    Why it matters: gloo, HCCL and MindSpore ask for the address of the host's own name and bind to it. Bound
    to 127.x, no other host can connect, and the job hangs at start. Debian and Ubuntu write such a line,
    127.0.1.1, into /etc/hosts at installation.

    What to do: give the name the host's own data address in /etc/hosts, or name the interface for the job
    with GLOO_SOCKET_IFNAME, HCCL_SOCKET_IFNAME or HCCL_IF_IP.
    """
    if plan.interface_wish() or plan.env.get("HCCL_IF_IP"):
        raise Skip("the job names its interface")
    own = names.addresses.get(names.own, ())
    if own and is_loopback(own[0]):
        address = plan.data_address(here.name)
        values: dict[str, str | int] = {"name": names.own, "loopback": own[0]}
        yield Problem(
            "its own name resolves to a loopback address",
            expected=f"the address that peers connect to{f', {address}' if address else ''}",
            actual=f"{names.own} is {own[0]}",
            evidence=(Evidence(f"getent ahosts {names.own}", ", ".join(own)),),
            values=values | ({"address": address} if address else {}),
        )


@check("hostname-duplicate", IDENTITY, scope=Scope.CLUSTER, several_hosts=True, remedy="set-hostname")
def hostname_duplicate(identities: Mapping[str, Identity]) -> Iterator[Problem]:
    """Several hosts report the same host name.

    Why it matters: MindSpore numbers the devices of a machine by its host name: two machines with one name
    get device ids past the card count (`Call aclrtSetDevice failed, ret[107001]`). Launchers and logs mix the
    two up as well.

    What to do: give each host a name of its own.
    """
    owners: dict[str, list[str]] = {}
    for host, identity in identities.items():
        owners.setdefault(identity.hostname, []).append(host)
    for name, hosts in owners.items():
        if len(hosts) > 1:
            yield Problem(
                f"{len(hosts)} hosts call themselves {name}",
                expected="a host name of its own for each host",
                actual=name,
                hosts=tuple(hosts),
                subject=f"hostname {name}",
                evidence=(Evidence("uname -n", f"{name} on {', '.join(hosts)}"),),
            )


@check("names-disagree", NAMES, PLAN, scope=Scope.CLUSTER, several_hosts=True, remedy="name-in-hosts")
def names_disagree(views: Mapping[str, Names], plan: JobPlan) -> Iterator[Problem]:
    """A name of the job resolves to different addresses on different hosts, or not at all on some.

    Why it matters: ranks find the head by its name. The host that resolves it to another address connects to
    the wrong machine, or waits for one that does not exist.

    What to do: mend /etc/hosts or DNS on the odd host out. When no host resolves a name that the person gave,
    that name is only known to this machine: nothing is wrong as long as the job uses addresses.
    """
    wrong: dict[str, list[str]] = {}
    right: dict[str, str] = {}
    for name in (host.name for host in plan.hosts):
        seen = {
            viewer: frozenset(names.addresses[name])
            for viewer, names in views.items()
            if viewer != name and name in names.addresses
        }
        answers = Counter(seen.values())
        if len(seen) < 2 or len(answers) < 2:
            continue
        (common, votes), *others = answers.most_common()
        own = views[name].addresses.get(name, ()) if name in views else ()
        truth = frozenset(address for address in own if not is_loopback(address))
        if truth in answers:
            common = truth
        elif votes == others[0][1]:
            yield _undecided(name, seen)
            continue
        right[name] = _words(common)
        for viewer, addresses in seen.items():
            if addresses != common and not addresses & common:
                wrong.setdefault(viewer, []).append(
                    f"{name} is {_words(addresses)}, elsewhere {_words(common)}"
                )
    for viewer, errors in wrong.items():
        first = errors[0].split(" ", 1)[0]
        yield Problem(
            f"resolves {len(errors)} of the job's names otherwise than its peers"
            if len(errors) > 1
            else f"resolves {first} otherwise than its peers",
            expected=f"{first} is {right[first]}",
            actual=errors[0].partition(",")[0],
            hosts=(viewer,),
            subject=f"name {first}" if len(errors) == 1 else None,
            evidence=(Evidence("getent ahosts", "\n".join(errors[:8])),),
            values={"name": first, "address": right[first].partition(",")[0]},
        )


def _undecided(name: str, seen: Mapping[str, frozenset[str]]) -> Problem:
    by_answer: dict[str, list[str]] = {}
    for viewer, addresses in seen.items():
        by_answer.setdefault(_words(addresses), []).append(viewer)
    return Problem(
        f"{name} resolves to different addresses, and no majority says which is right",
        expected="one address on every host",
        actual="; ".join(f"{answer} on {', '.join(hosts[:4])}" for answer, hosts in by_answer.items()),
        hosts=tuple(seen),
        subject=f"name {name}",
        confidence=Confidence.SUSPECT,
        evidence=tuple(Evidence(f"getent ahosts {name}", f"{host}: {_words(a)}") for host, a in seen.items()),
    )


def _words(addresses: frozenset[str]) -> str:
    return ", ".join(sorted(addresses)) or "not found"


@check(
    "clock-skew",
    CLOCKS,
    EXPECT,
    severity=Severity.WARN,
    scope=Scope.CLUSTER,
    several_hosts=True,
    remedy="set-clock",
)
def clock_skew(offsets: Mapping[str, Offset], expect: Expect) -> Iterator[Problem]:
    """Clocks of hosts differ.

    Why it matters: logs of ranks cannot be put on one time line, and TLS between NPUs refuses a certificate
    that is not yet valid on a host whose clock is behind.

    What to do: run a time service (chrony, systemd-timesyncd) on every host. A difference counts only as far
    as it is larger than the time that the question and the answer took.
    """
    middles = [(offset.low + offset.high) / 2 for offset in offsets.values()]
    if not middles:
        raise Undecided("no clock could be read")
    reference = statistics.median([*middles, *([0.0] if len(middles) == 2 else [])])
    for host, offset in offsets.items():
        skew = offset.beyond(reference)
        if abs(skew) > expect.clock_skew_s:
            yield Problem(
                f"its clock is {abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}"
                if abs(skew) >= 10
                else f"its clock is {abs(skew):.1f} s {'ahead' if skew > 0 else 'behind'}",
                expected=f"within {expect.clock_skew_s:g} s of the other hosts",
                actual=f"{skew:+.1f} s",
                hosts=(host,),
                where=(Place(host=host),),
                severity=Severity.FAIL if abs(skew) > expect.clock_skew_fail_s else None,
                evidence=(
                    Evidence(
                        "date +%s.%N",
                        f"{offset.low:+.3f} s to {offset.high:+.3f} s against this machine's clock",
                    ),
                ),
            )

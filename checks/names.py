"""Names and time: whether names of hosts resolve correctly, and whether clocks agree."""

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import groupby
from operator import itemgetter
from shlex import quote

from doctor.api import (
    EXPECT,
    HERE,
    INTERFACE_VARIABLES,
    PLAN,
    Backend,
    Confidence,
    Damage,
    Evidence,
    Expect,
    Here,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    Skip,
    Sphere,
    Undecided,
    check,
    fold,
    grouped,
    is_loopback,
    maybe,
)
from doctor.facts.network import ADDRESSES, NAMES, ResolvedNames
from doctor.facts.run import CLOCKS, Offset
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.facts.system import IDENTITY, MACHINE, Machine
from doctor.rules.login import environment_of
from doctor.rules.machines import named_twice, votes_of


@check(
    "hostname-loopback",
    NAMES,
    ADDRESSES,
    maybe(ENVIRONMENT),
    PLAN,
    HERE,
    damage=Damage.BLOCKED,
    several_hosts=True,
    remedy="own-name-in-hosts",
    causes=("hostname-duplicate",),
)
def hostname_loopback(
    names: ResolvedNames,
    addresses: Mapping[str, tuple[str, ...]],
    login: Environment | None,
    plan: JobPlan,
    here: Here,
) -> Iterator[Problem]:
    """The host's own name resolves to a loopback address, or to none of the host's own.

    Why it matters: gloo, HCCL and MindSpore look up the address of the host's own name and bind to it. If
    that is 127.x, no other host can connect, and the job hangs at start. Debian and Ubuntu write such a line,
    127.0.1.1, into /etc/hosts at installation. A name that does not resolve, or only to addresses that the
    host does not have, makes gloo fall back to loopback as well.

    What to do: give the name the host's own data address in /etc/hosts, or name the interface for the job
    with GLOO_SOCKET_IFNAME, HCCL_SOCKET_IFNAME or HCCL_IF_IP.
    """
    gloo = plan.backend.value is Backend.GLOO
    variables = ("GLOO_SOCKET_IFNAME",) if gloo else (*INTERFACE_VARIABLES, "HCCL_IF_IP")
    if any(map(environment_of(plan, login).get, variables)):
        raise Skip("the job names its interface")
    own = names.addresses.get(names.own, ())
    held = {address for addresses in addresses.values() for address in addresses}
    usable = [address for address in own if is_loopback(address) or address in held]
    if usable and not is_loopback(usable[0]):
        return
    address = plan.data_address(here.name)
    unnamed = names.own.partition(".")[0] in ("localhost", "localhost4", "localhost6")
    yield Problem(
        "it has no name of its own: it calls itself localhost"
        if unnamed
        else "its own name resolves to a loopback address"
        if usable
        else "its own name resolves to no address of its own",
        expected=f"the address that peers connect to{f', {address}' if address else ''}",
        actual=f"{names.own} is {', '.join(own) or 'not found'}",
        evidence=(Evidence(f"getent ahosts {names.own}", ", ".join(own) or "not found"),),
        values={"name": names.own} | ({"address": address} if address else {}),
        commands=_given_name(address) if unnamed else (),
    )


def _given_name(address: str | None) -> tuple[str, ...]:
    """localhost must stay what it is: programs of every host connect to it."""
    return (
        "sudo hostnamectl set-hostname NEW-NAME",
        f"echo {address or 'ITS-ADDRESS'} NEW-NAME | sudo tee -a /etc/hosts",
    )


@check(
    "host-named-twice",
    IDENTITY,
    maybe(MACHINE),
    maybe(ADDRESSES),
    PLAN,
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    several_hosts=True,
)
def host_named_twice(
    identities: Mapping[str, str],
    machines: Mapping[str, Machine],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    plan: JobPlan,
) -> Iterator[Problem]:
    """One machine is in the list of hosts under two names.

    Why it matters: the job would start twice as many ranks on that machine as it has devices, and ranks under
    both names would take each other's ports and addresses.

    How it is known: both names led to the same boot of the same kernel, the same root file system, the same
    host name and the same addresses. Containers of one machine differ in their root file systems.

    What to do: leave one of the names out of the list. Nothing is wrong with the machine.
    """
    surplus = named_twice(identities, machines, addresses)
    rest = quote(fold(name for name in plan.names if name not in surplus)) if surplus else ""
    for name, first in surplus.items():
        yield Problem(
            f"{name} and {first} are one machine: the list of hosts names it twice",
            expected="each machine once",
            actual=f"{first} and {name} both lead to {identities[name]}, boot {machines[name].boot}",
            hosts=(name,),
            subject=f"{first} = {name}",
            where=(Place(host=name, peer=first),),
            evidence=(
                Evidence("/proc/sys/kernel/random/boot_id", f"{machines[name].boot} on both"),
                Evidence("/proc/self/mountinfo", f"mount {machines[name].root} is the root of both"),
            ),
            commands=(
                f"# Name each machine once: leave {name} out of the list of hosts.",
                f"doctor check {rest}",
            ),
        )


@check(
    "hostname-duplicate",
    IDENTITY,
    maybe(MACHINE),
    maybe(ADDRESSES),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    several_hosts=True,
    remedy="set-hostname",
)
def hostname_duplicate(
    identities: Mapping[str, str],
    machines: Mapping[str, Machine],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
) -> Iterator[Problem]:
    """Several hosts report the same host name.

    Why it matters: MindSpore numbers the devices of a machine by its host name: two machines with one name
    get device ids past the card count (`Call aclrtSetDevice failed, ret[107001]`). Launchers and logs mix the
    two up as well.

    What to do: give each host a name of its own. One machine that the list names twice is host-named-twice.
    """
    surplus = named_twice(identities, machines, addresses)
    owners = grouped((name, host) for host, name in identities.items() if host not in surplus)
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


MOST_NAMES = 3
"""The most names whose addresses a sentence tells."""


@check(
    "names-disagree",
    NAMES,
    ADDRESSES,
    PLAN,
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    several_hosts=True,
    remedy="name-in-hosts",
)
def names_disagree(
    views: Mapping[str, ResolvedNames], addresses: Mapping[str, Mapping[str, tuple[str, ...]]], plan: JobPlan
) -> Iterator[Problem]:
    """A name of the job resolves to different addresses on different hosts, or not at all on some.

    Why it matters: ranks find the head by its name. The host that resolves it to another address connects to
    the wrong machine, or waits for one that does not exist.

    How it is known: an answer is right if the host of that name has the address. If that host could not be
    examined, the majority of the answers counts.

    What to do: fix /etc/hosts or DNS on the host that differs. If no host resolves a name that the user gave,
    only this machine knows that name: nothing is wrong as long as the job uses addresses.
    """
    answers: dict[str, dict[str, frozenset[str]]] = {name: {} for name in plan.names}
    for viewer, names in views.items():
        for name, found_there in names.addresses.items():
            if name in answers and name != viewer:
                answers[name][viewer] = frozenset(found_there)
    wrong: dict[str, list[tuple[str, str, str]]] = {}
    stale: dict[str, tuple[str, tuple[str, ...]]] = {}
    for name, seen in answers.items():
        if not any(seen.values()):
            continue
        held = frozenset(a for found in addresses.get(name, {}).values() for a in found if not is_loopback(a))
        truth = held if any(answer & held for answer in seen.values()) else _majority(seen)
        if truth is None:
            yield _undecided(name, seen)
        elif held and not truth & held:
            stale[name] = (_words(truth), tuple(seen))
        else:
            right = frozenset(address for answer in seen.values() for address in answer & truth)
            for viewer, answer in seen.items():
                if not answer & truth:
                    wrong.setdefault(viewer, []).append((name, _words(answer), _words(right)))
    if stale:
        yield _stale(stale)
    for viewer, errors in wrong.items():
        name, found, truth_words = errors[0]
        rest = len(errors) - 1
        more = f" and {rest} more name{'s' if rest > 1 else ''}" if rest else ""
        yield Problem(
            f"resolves {name}{more} differently from its peers",
            expected=f"{name} is {truth_words}",
            actual=f"{name} is {found}",
            hosts=(viewer,),
            subject=f"name {name}",
            evidence=tuple(
                Evidence(f"getent ahosts {n}", f"{found}; elsewhere {truth}")
                for n, found, truth in errors[:8]
            ),
            values={"name": name, "address": truth_words.partition(",")[0]},
        )


def _majority(seen: Mapping[str, frozenset[str]]) -> frozenset[str] | None:
    """The answer that most hosts give; "not found" does not count. None if two are equally frequent."""
    votes, tie = votes_of({viewer: answer for viewer, answer in seen.items() if answer})
    return None if tie else votes[0][0]


def _stale(names: Mapping[str, tuple[str, tuple[str, ...]]]) -> Problem:
    """All hosts resolve a name to an address that the host of that name does not have."""
    first, *others = names
    said = [
        f"{name} is {answer} on {seen[0] if len(seen) == 1 else f'{len(seen)} hosts'}"
        for name, (answer, seen) in names.items()
    ]
    more = [f"{len(said) - MOST_NAMES} more"] if len(said) > MOST_NAMES else []
    viewers = dict.fromkeys(viewer for _, seen in names.values() for viewer in seen)
    return Problem(
        f"{len(names)} names resolve to addresses that their hosts do not have"
        if others
        else f"{first} resolves to an address that {first} does not have",
        expected="an address of one of its interfaces",
        actual="; ".join((*said[:MOST_NAMES], *more)),
        hosts=tuple(viewers) if len(viewers) == 1 else (),
        where=tuple(Place(host=viewer) for viewer in viewers),
        subject=f"{'names' if others else 'name'} {fold(names)}",
        severity=Severity.WARN,
        confidence=Confidence.STRONG,
        evidence=tuple(Evidence(f"getent ahosts {name}", answer) for name, (answer, _) in names.items())[:8],
        commands=(
            f"ssh {quote(first)} ip -br addr",
            f"ssh {quote(next(iter(viewers)))} grep -nw {quote(first)} /etc/hosts",
            "# Give the name one of these addresses where it is another: in /etc/hosts, or in DNS for all.",
        ),
    )


def _undecided(name: str, seen: Mapping[str, frozenset[str]]) -> Problem:
    by_answer = grouped((_words(addresses), viewer) for viewer, addresses in seen.items())
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
    damage=Damage.RISK,
    severity=Severity.WARN,
    scope=Scope.CLUSTER,
    several_hosts=True,
    remedy="set-clock",
    sphere=Sphere.HOST,
)
def clock_skew(offsets: Mapping[str, Offset | None], expect: Expect) -> Iterator[Problem]:
    """Clocks of hosts differ, or the clock of one was set while it was asked.

    Why it matters: logs of ranks cannot be put on one time line, and TLS between NPUs refuses a certificate
    that is not yet valid on a host whose clock is behind.

    How it is known: each host's clock is known up to the time that request and answer took. The time on which
    most hosts agree is right, and this machine's clock counts as one of them; a host is only blamed for a
    difference beyond its own uncertainty. Each clock is read twice: if it advanced by more than the answer
    took, or went back, it was set meanwhile, and the later reading is compared. If this holds for all hosts,
    it is this machine's clock that was set.

    What to do: run a time service (chrony, systemd-timesyncd) on every host.
    """
    known = {host: offset for host, offset in offsets.items() if offset is not None}
    if len(known) < 2:
        raise Undecided("no two clocks could be compared")
    jumped = {host for host, offset in known.items() if abs(offset.jump) > expect.clock_skew_s}
    if jumped == known.keys():
        raise Undecided("all clocks were set while they were read, or that of this machine was")
    right = _agreed([*known.values(), Offset(0.0, 0.0)])
    for host, offset in known.items():
        if host in jumped:
            yield _jumped(host, offset)
        skew = offset.apart(right)
        if abs(skew) > expect.clock_skew_s:
            yield Problem(
                f"its clock is {_seconds(skew)} {'ahead' if skew > 0 else 'behind'}",
                expected=f"within {expect.clock_skew_s:g} s of the other hosts",
                actual=f"{skew:+.1f} s",
                hosts=(host,),
                severity=Severity.FAIL if abs(skew) > expect.clock_skew_fail_s else None,
                evidence=(
                    Evidence(
                        "date +%s.%N",
                        f"{offset.low:+.3f} s to {offset.high:+.3f} s against this machine's clock",
                    ),
                ),
            )
    unread = tuple(host for host, offset in offsets.items() if offset is None)
    if unread:
        raise Undecided("clock: its clock could not be read", unread)


def _jumped(host: str, offset: Offset) -> Problem:
    way = "ahead" if offset.jump > 0 else "back"
    return Problem(
        f"its clock was set {_seconds(offset.jump)} {way} while it was asked",
        expected="a clock that runs evenly",
        actual=f"a jump of {offset.jump:+.1f} s",
        hosts=(host,),
        evidence=(Evidence("date +%s.%N", f"read twice: {offset.jump:+.3f} s that did not pass"),),
    )


def _seconds(size: float) -> str:
    return f"{abs(size):.0f} s" if abs(size) >= 10 else f"{abs(size):.1f} s"


def _agreed(offsets: Sequence[Offset]) -> Offset:
    """The interval that most offsets share (Marzullo), or of several the one nearest to this machine."""
    best: tuple[int, float] = (0, 0.0)
    found = Offset(0.0, 0.0)
    highs: list[float] = []  # the ends of the intervals that contain the current low, least first
    for low, same in groupby(sorted((offset.low, offset.high) for offset in offsets), itemgetter(0)):
        for _, high in same:
            heappush(highs, high)
        while highs[0] < low:
            heappop(highs)
        rank = (len(highs), -min(abs(low), abs(highs[0])))
        if rank > best:
            best, found = rank, Offset(low, highs[0])
    return found

"""Which hosts can really connect to which, and which firewall rules apply."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from doctor.api import (
    HERE,
    PLAN,
    RANKS,
    UNDECIDED,
    Backend,
    Capture,
    Confidence,
    Damage,
    Evidence,
    Fact,
    Here,
    Holders,
    JobPlan,
    Place,
    Problem,
    Run,
    Scope,
    Severity,
    Sphere,
    Stretch,
    Undecided,
    UnreadableOutput,
    check,
    fewest_networks,
    grouped,
    maybe,
)
from doctor.facts.limits import PORTS, Ports
from doctor.facts.network import ADDRESSES, FIXED_NEIGHBOURS, LINKS, ROUTES, Counters, Routes
from doctor.facts.routing import POLICY, Policy
from doctor.facts.run import ANSWERED, MESH
from doctor.firewall import Decision, Ruleset, combine, opening, parse_iptables_save, parse_nft
from doctor.job.plan import interface_with
from doctor.mesh import Link, MeshBlame, MeshResult, culprits, unproved
from doctor.mesh.result import Pairs
from doctor.model import MOST_PLACES
from doctor.rules.policy import detours, job_interface
from doctor.rules.ways import MANY, between, is_guessed, lost_routes, peers_in, wrong_neighbours
from doctor.text.hostprogram import host_program

MATTERS = 0.01
"""A rule that closes a smaller share of the ephemeral range (such as one service's port) is not a fault."""

LOCALHOST = "127.0.0.1"
SHOWN = 4
"""The most suspects for which the commands are shown."""

_SEEN = {
    "dropped": "get no answer (dropped)",
    "refused": "are refused",
    "no-route": "are answered with no route or a firewall's reject",
    "reset": "are reset",
    "silent": "are accepted and never answered",
    "wrong-answer": "are answered by something other than this host",
    "error": "fail",
}
_GUESSED = "the data address that was tried is a guess; data: in the inventory or GLOO_SOCKET_IFNAME names it"

Case = tuple["str | None", Ports, JobPlan, Here, "MeshResult | None"]
"""A host: the interface that has its data address, its ports, its job, and what connections were tried."""
Stopped = tuple[Decision, list[Stretch]]
"""The decision that stops connections, and the hosts with which they are stopped."""
# Sections, each headed by "== NAME" and ended by "== end RC".
_RULES = host_program(__file__, "firewall.sh")
"""How the rule sets of the host's firewall are listed, to be combined into one. Listing the rules of a kernel
module loads it, and reading must not change the host: nft is called only if nf_tables is already loaded, and
legacy iptables only if its tables exist; otherwise there are no rules. iptables' own view of nft tables is
read only if nft shows such tables.
"""


def _rules(capture: Capture) -> Ruleset:
    sections = _sections(capture.stdout)
    saved = [
        table
        for name, text in sections.items()
        if name not in ("nft", "chains")
        for table in parse_iptables_save(
            text, "ip6" if name.startswith("ip6") else "ip", f"iptables-{name.rpartition('-')[2]}"
        )
    ]
    return combine(parse_nft(sections.get("nft", ""), sections.get("chains", "")), saved)


def _sections(text: str) -> dict[str, str]:
    """The sections by name. One that failed makes all unreadable, because half a rule set decides nothing."""
    found: dict[str, str] = {}
    name, lines = "", list[str]()
    for line in text.splitlines():
        if line.startswith("== end "):
            if line != "== end 0":
                raise UnreadableOutput(f"{name} could not list its rules (it ended with {line[7:20]})")
            found[name] = "\n".join(lines)
            name = ""
        elif line.startswith("== ") and not name:
            name, lines = line[3:], []
        else:
            lines.append(line)
    if name:
        raise UnreadableOutput("the list of rules is incomplete")
    return found


RULES: Fact[Ruleset] = Fact("firewall", Run(_RULES), _rules, needs_root=True, cap=2 << 20, ends=True)


@check(
    "port-unreachable",
    MESH,
    ANSWERED,
    PLAN,
    maybe(ROUTES),
    maybe(FIXED_NEIGHBOURS),
    maybe(LINKS),
    maybe(POLICY),
    maybe(ADDRESSES),
    maybe(RULES),
    maybe(PORTS),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    several_hosts=True,
    remedy="look-at-firewall",
    causes=(
        "firewall-blocks",
        "route-leads-nowhere",
        "rule-diverts-traffic",
        "neighbour-fixed-wrong",
        "mac-address-twice",
        "data-address-duplicate",
    ),
)
def port_unreachable(
    mesh: MeshResult,
    answered: tuple[str, ...],
    plan: JobPlan,
    routes: Mapping[str, Routes],
    fixed: Mapping[str, Mapping[str, str]],
    links: Mapping[str, Mapping[str, Counters]],
    policies: Mapping[str, Policy],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    rules: Mapping[str, Ruleset],
    ports: Mapping[str, Ports],
) -> Iterator[Problem]:
    """One host of the job cannot connect to another.

    Why it matters: ranks connect to the head's master port and then to each other on ports that the kernel
    chooses. If one direction is closed the job hangs at start, and torch names no host, or the wrong one.

    How it is known: a small agent listened on each host's data address for a second, and every other host
    connected to it, in both directions. A failure that a host's own routes or neighbours explain is its own
    fault, and so is one whose packets its own kernel refuses to send. For the rest, the culprits are the
    fewest hosts that explain all failures, unless the firewall of another host stops all of these
    connections; if two explanations are equally good, both hosts are named and the finding says undecided. If
    the address that was tried is a guess, because nothing says which one ranks use, the failure is a warning,
    and the hosts count as not examined. So does a host from or to which nothing was tried.

    What to do: let the cluster's addresses through the firewall of the named host, for all TCP ports. Packets
    dropped without an answer nearly always mean a firewall; "refused" means a firewall that rejects; "no
    route" means either.
    """
    guesses: dict[str, str] = {}
    by_rules = _lost_by_rules(policies, addresses, plan, mesh)
    proved = _proved_blames(routes, fixed, links, plan, mesh, by_rules)
    explained = {link for blame in proved for link in blame.links}
    likely = culprits(link for link in mesh.links if link not in explained)
    for blame in (*proved, *_by_firewalls(likely, rules, ports, addresses, plan)):
        guessed = all(is_guessed(plan, link.target) for link in blame.links)
        yield _problem(blame, mesh, plan, Severity.WARN if guessed else None)
        ends = {host for link in blame.links for host in (link.source, link.target)}
        if guessed:
            guesses |= dict.fromkeys(blame.hosts or sorted(ends), _GUESSED)
    doubtful = unproved(mesh, answered, guesses)
    if doubtful:
        reasons = "; ".join(f"{host}: {reason}" for host, reason in list(doubtful.items())[:4])
        raise Undecided(f"not proved in every direction ({reasons})", tuple(doubtful))


def _problem(blame: MeshBlame, mesh: MeshResult, plan: JobPlan, severity: Severity | None) -> Problem:
    outcome = Counter(link.outcome for link in blame.links).most_common(1)[0][0]
    own = [link for link in blame.links if link.outcome == "error" and (link.source,) == blame.hosts]
    ports = _ports(blame, plan)
    seen = _SEEN.get(outcome, outcome)
    decided = blame.decided or blame.common
    subject = between(blame.links)
    if len(blame.links) == 1:
        subject = f"{blame.links[0].source} -> {blame.links[0].target}:{blame.links[0].port}"
    return Problem(
        _summary(blame, ports, seen),
        expected="connections both ways between all hosts, on the job's ports and ephemeral ones",
        actual=_actual(blame, mesh),
        hosts=blame.hosts,
        subject=subject,
        where=tuple(
            Place(host=link.target, port=link.port, peer=link.source) for link in blame.links[:MOST_PLACES]
        ),
        confidence=Confidence.CERTAIN if decided else Confidence.SUSPECT,
        severity=severity,
        evidence=tuple(_evidence(link) for link in blame.links[:8]),
        values={"host": blame.hosts[:SHOWN]} if blame.hosts else {},
        commands=(f"ip route get {own[0].address}", "ip rule show; ip -6 rule show") if own else (),
    )


def _ports(blame: MeshBlame, plan: JobPlan) -> str:
    words = {
        "master": f"the master port {plan.master_port.value}",
        "hccl": f"HCCL's port {plan.hccl_base_port.value}",
        "mccl": f"MindSpore's ports ({_ports_tried(blame)})",
        "ephemeral": "ephemeral ports",
    }
    return " and ".join(words[kind] for kind in blame.kinds)


def _ports_tried(blame: MeshBlame) -> str:
    """The first few of the ports on which MindSpore's ranks would listen."""
    tried = sorted({link.port for link in blame.links if link.kind == "mccl"})
    return ", ".join(map(str, tried[:SHOWN])) + (", …" if tried[SHOWN:] else "")


def _summary(blame: MeshBlame, ports: str, seen: str) -> str:
    if blame.common:
        return (
            f"nearly all connections between all hosts, to {ports}, {seen}: the cause is common to them all"
        )
    if blame.direction == "split":
        return f"these hosts reach one another and not the rest: connections to {ports} {seen}"
    if not blame.decided:
        return f"connections to {ports} {seen} between these hosts{UNDECIDED}"
    if blame.direction == "inbound":
        return f"connections to its {ports.removeprefix('the ')} {seen}"
    if blame.direction == "outbound":
        return f"its own connections to others, to {ports}, {seen}"
    return f"connections from it and to it, on {ports}, {seen}"


def _actual(blame: MeshBlame, mesh: MeshResult) -> str:
    fine = sum(not link.failed for link in (mesh.tested if blame.common else mesh.touching(blame.hosts)))
    where = " to or from it" if len(blame.hosts) == 1 else ""
    return f"{len(blame.links)} connections failed, {fine} others{where} worked"


def _evidence(link: Link) -> Evidence:
    tries = f" after {link.tries} tries" if link.tries > 1 else ""
    silent = f"no host answers ARP for {', '.join(link.unresolved)}" if link.unresolved else ""
    details = "; ".join(filter(None, (link.detail, silent)))
    detail = f" ({details})" if details else ""
    return Evidence(
        f"connect from {link.source}",
        f"{link.target} {link.address}:{link.port} ({link.kind}): {link.outcome}{tries}{detail}",
    )


@check(
    "firewall-blocks",
    RULES,
    ADDRESSES,
    PORTS,
    PLAN,
    HERE,
    maybe(MESH),
    damage=Damage.BLOCKED,
    several_hosts=True,
    sphere=Sphere.NETWORK,
)
def firewall_blocks(
    rules: Ruleset,
    addresses: Mapping[str, tuple[str, ...]],
    ports: Ports,
    plan: JobPlan,
    here: Here,
    mesh: MeshResult | None,
) -> Iterator[Problem]:
    """A firewall rule would stop the job's connections.

    Why it matters: an active firewall is not a fault as long as it lets the cluster's addresses through. The
    master port alone is not enough: gloo and NCCL connect to ports that the kernel chooses, and HCCL to
    60000-60031. Without devices, rank r of MindSpore listens on 8118 + 256 r.

    How it is known: the rules of nftables and iptables (both back-ends), whatever wrote them (ufw, firewalld,
    Docker, a person), are followed for a new connection from each other host's data address. If real
    connections prove the contrary, this is a warning; if the rules cannot be evaluated, it is unknown. A rule
    that depends on how many connections there are, how fast they come or how long a packet is (connlimit,
    limit, length) may let one connection through and stop the job's: that is a warning, and the host is not
    proved healthy.

    A rule that sends the job's connections elsewhere (dnat, redirect) is a fault if these connections fail.

    What to do: let the other hosts' addresses through, instead of switching the firewall off.
    """
    holders = plan.holders
    mine = holders.address.get(here.name)
    if mine is None or len(holders.address) < 2:
        raise Undecided("the data addresses of this host and its peers are not known")
    if holders.count(mine.version) < 2:
        raise Undecided(f"no other host has an IPv{mine.version} data address, as this one has")
    interface = next((name for name, held in addresses.items() if str(mine) in held), None)
    doubts: list[str] = []
    case = (interface, ports, plan, here, mesh)
    ways: dict[bool, dict[str, Stopped]] = {}
    open_ways: dict[bool, dict[str, Stopped]] = {}
    for inbound in (True, False):
        ways[inbound], open_ways[inbound] = _stopped(rules, inbound, case, doubts)
    for of in (ways, open_ways):
        for inbound, stopped in of.items():
            if stopped and (not _only_answers(stopped) or not of[not inbound]):
                yield _blocked(stopped, inbound, rules, case)
    for perhaps in filter(None, open_ways.values()):
        decision, _ = next(iter(perhaps.values()))
        raise Undecided(
            f"a rule depends on {decision.reason.rpartition(' depends on ')[2]}, so no connection that works "
            "proves it harmless: type what the warning says, or --skip firewall-blocks if it is",
            essential=True,
        )
    if doubts:
        raise Undecided(f"the rules cannot be decided: {doubts[0]}")


@check("loopback-blocked", RULES, PORTS, RANKS, PLAN, HERE, damage=Damage.BLOCKED, sphere=Sphere.NETWORK)
def loopback_blocked(
    rules: Ruleset, ports: Ports, ranks: int, plan: JobPlan, here: Here
) -> Iterator[Problem]:
    """A firewall rule stops the connections of a host with itself.

    Why it matters: ranks and launchers of one host connect to each other over the loopback interface, by the
    host's own address as by 127.0.0.1: so does the rank that is beside the master. They wait until they time
    out, while connections with other hosts work.

    How it is known: the rules of nftables and iptables are followed for a new connection from the host to
    itself, over lo. A policy that drops stops it if nothing accepts what comes in by lo. Of a rule that stops
    other hosts, too, firewall-blocks tells.

    What to do: accept what comes in by lo. Every firewall needs that rule, and nobody else can use it.
    """
    data, alone = plan.data_address(here.name), len(plan.hosts) == 1
    own = [*dict.fromkeys(filter(None, (data, LOCALHOST if alone or data is None else None)))]
    wanted = [("ephemeral ports", ports.ephemeral[0], ports.ephemeral[-1])] if ports.ephemeral else []
    if here.is_head:
        wanted.append(("the master port", plan.master_port.value, plan.master_port.value))

    def stops(now: Ruleset) -> dict[str, Decision]:
        decided = {
            f"{what} {span} of {address}": decision
            for address in own
            for what, first, last in wanted
            for decision, span in (_decide(now, True, (address, address), (first, last), None, ports),)
            if decision is not None and decision.blocked
        }
        return {what: each for what, each in decided.items() if _rule(each) not in told}

    known = here.name in plan.holders.address
    ways = [_stopped(rules, way, (None, ports, plan, here, None), [])[0] for way in (True, False) if known]
    told = {_rule(decision) for others in ways for decision, _ in others.values()}  # by firewall-blocks
    if stopped := stops(rules):
        yield Problem(
            "the firewall stops the connections of this host with itself",
            expected="new TCP connections over lo accepted",
            actual=f"{', '.join(stopped)}, by {_rule(next(iter(stopped.values())))}",
            subject="interface lo",
            severity=None if here.is_head or ranks > 1 or plan.of_node else Severity.WARN,
            confidence=Confidence.CERTAIN,
            evidence=tuple(
                Evidence(f"{each.table} {each.chain}".strip(), f"{what}: {each.rule}")
                for what, each in stopped.items()
            ),
            commands=opening(rules, [*dict.fromkeys((*own, LOCALHOST))], lambda now: [*stops(now).values()]),
        )


def _stopped(
    rules: Ruleset, inbound: bool, case: Case, doubts: list[str]
) -> tuple[dict[str, Stopped], dict[str, Stopped]]:
    """What the rules stop, and what they may stop, by ports. What they leave open joins `doubts`."""
    interface, ports, plan, here, mesh = case
    mine = plan.holders.address[here.name]
    stopped: dict[str, Stopped] = {}
    perhaps: dict[str, Stopped] = {}
    for stretch in plan.holders.stretches(mine.version, rules.address_cuts):
        peer = stretch.another(mine)
        if peer is None:
            continue
        ends = (str(plan.holders.address[peer]), str(mine))
        for what, first, last in _wanted(plan, ports, here, inbound):
            decision, span = _decide(rules, inbound, ends, (first, last), interface, ports)
            if decision is None:
                continue
            tried = _tried(what, [stretch], inbound, here, plan.holders, mesh) if decision.diverts else []
            if decision.blocked or decision.varies or (tried and all(link.failed for link in tried)):
                found = perhaps if decision.varies else stopped
                found.setdefault(f"{what} {span}", (decision, []))[1].append(stretch)
            elif not (decision.diverts and stopped):
                doubts.append(decision.reason)
    return stopped, perhaps


def _only_answers(stopped: Mapping[str, Stopped]) -> bool:
    """Whether only the answers are stopped, by a rule of the other direction, which is reported there."""
    return all(decision.reason.startswith("the answers") for decision, _ in stopped.values())


def _wanted(plan: JobPlan, ports: Ports, here: Here, inbound: bool) -> list[tuple[str, int, int]]:
    """The ports that this host must be reached on (inbound), or must reach."""
    wanted = [("ephemeral ports", ports.ephemeral[0], ports.ephemeral[-1])] if ports.ephemeral else []
    if plan.backend.value is Backend.HCCL:
        wanted.append(("HCCL's ports", plan.hccl_ports[0], plan.hccl_ports[-1]))
    for host, own in plan.mccl_ports.items():
        if (host == here.name) == inbound:
            wanted += [("MindSpore's port", port, port) for port in own]
    if here.is_head == inbound:
        wanted.append(("the master port", plan.master_port.value, plan.master_port.value))
    return wanted


def _decide(
    rules: Ruleset,
    inbound: bool,
    ends: tuple[str, str],
    wanted: tuple[int, int],
    interface: str | None,
    ports: Ports,
) -> tuple[Decision | None, str]:
    """The worst decision that applies to a relevant share of a range of ports, and the ports of that share.

    `ends` are the addresses of the peer and of this host.
    """
    peer, own = ends
    first, last = wanted
    ephemeral = (ports.ephemeral[0], ports.ephemeral[-1]) if ports.ephemeral else (0, 0)
    source, dest = (peer, own) if inbound else (own, peer)
    spans = rules.decide_ports(source, dest, first, last, interface, ephemeral, incoming=inbound)
    unsure = [span for span in spans if span.decision.action.value == "unknown"]
    for some in (
        [span for span in spans if span.decision.blocked],
        [span for span in unsure if span.decision.varies],
        unsure,
    ):
        if sum(span.last - span.first + 1 for span in some) >= MATTERS * (last - first + 1):
            return some[0].decision, ", ".join(str(span) for span in some[:3])
    return None, ""


def _blocked(
    stopped: Mapping[str, Stopped],
    inbound: bool,
    rules: Ruleset,
    case: Case,
) -> Problem:
    *_, plan, here, mesh = case
    decision, _ = next(iter(stopped.values()))
    way = "from" if inbound else "to"
    verb = {"reject": "rejects", "unknown": "limits"}.get(decision.action.value, "drops")
    verb = "diverts" if decision.diverts else verb
    contrary = not decision.varies and _proved_contrary(stopped, inbound, here, plan.holders, mesh)
    stretches = {stretch for _, found in stopped.values() for stretch in found}
    peers = peers_in(stretches, here.name, plan, mesh)
    everybody = peers.number == len(plan.hosts) - 1
    # Including others is harmless, and lets hosts with the same drops fold into one finding.
    few = peers.number < MANY and not everybody
    held = plan.holders
    addresses = fewest_networks(map(held.address.__getitem__, peers.named)) if few else held.networks
    typed = opening(rules, addresses, lambda now: _still(now, inbound, case, decision.varies))
    whom = "all other hosts" if everybody else str(peers)
    return Problem(
        f"the firewall {verb} what the job needs {way} other hosts"
        + ("; yet real connections got through" if contrary else ""),
        expected=f"new TCP connections {way} the cluster's addresses accepted",
        actual=f"{', '.join(stopped)}: {verb} {way} {whom}"
        + (f": {decision.reason}" if decision.varies else f", by {_rule(decision)}"),
        subject=next(iter(stopped)),
        where=(Place(host=here.name),) if everybody else peers.places(here.name),
        severity=Severity.WARN if contrary or decision.varies else None,
        confidence=Confidence.SUSPECT if decision.varies else Confidence.CERTAIN,
        evidence=tuple(
            Evidence(
                f"{d.table} {d.chain}".strip(), f"{what}: {d.rule}" + (f" ({d.reason})" if d.reason else "")
            )
            for what, (d, _) in stopped.items()
        ),
        commands=typed,
        values={"typed": typed},  # hosts with other commands are separate findings
    )


def _still(rules: Ruleset, inbound: bool, case: Case, varies: bool) -> list[Decision]:
    """The decisions by which these rules stop the job, or may stop it."""
    stopped, perhaps = _stopped(rules, inbound, case, [])
    return [decision for decision, _ in (perhaps if varies else stopped).values()]


def _rule(decision: Decision) -> str:
    """The deciding rule, and its place."""
    place = f"{decision.table} {decision.chain}".strip()
    return f"{decision.rule!r} in {place}" if place else decision.rule or "its rules"


def _proved_contrary(
    stopped: Mapping[str, Stopped], inbound: bool, here: Here, holders: Holders, mesh: MeshResult | None
) -> bool:
    """Whether every connection that the rules would stop was tried, at least in part, and succeeded."""
    tried = [
        _tried(what, stretches, inbound, here, holders, mesh) for what, (_, stretches) in stopped.items()
    ]
    if any(what.startswith("MindSpore") and not links for what, links in zip(stopped, tried, strict=True)):
        return False  # of a host's ranks, only the port of the first one is tried
    return any(tried) and not any(link.failed for links in tried for link in links)


def _tried(
    what: str,
    stretches: Sequence[Stretch],
    inbound: bool,
    here: Here,
    holders: Holders,
    mesh: MeshResult | None,
) -> list[Link]:
    """The connections that were tried to these ports, with hosts of these stretches."""
    kinds = {
        "the master port": "master",
        "HCCL's ports": "hccl",
        "MindSpore's port": "mccl",
        "ephemeral ports": "ephemeral",
    }
    kind = next(kind for words, kind in kinds.items() if what.startswith(words))
    return [
        link
        for link in ((mesh.into if inbound else mesh.out_of).get(here.name, ()) if mesh else ())
        if link.kind == kind
        and (kind != "mccl" or what.endswith(f" {link.port}"))
        and holders.within(link.source if inbound else link.target, stretches)
    ]


def _proved_blames(
    routes: Mapping[str, Routes],
    fixed: Mapping[str, Mapping[str, str]],
    links: Mapping[str, Mapping[str, Counters]],
    plan: JobPlan,
    mesh: MeshResult,
    by_rules: Mapping[frozenset[str], str],
) -> list[MeshBlame]:
    """The failed connections that the facts of one of the two hosts explain, with that host to blame."""
    pairs = mesh.between
    guilty = {**_refused_by_own_kernel(pairs), **by_rules}
    for host, own in routes.items():
        for peers in lost_routes(host, own, plan, mesh).values():
            guilty |= {frozenset((host, peer)): host for peer in peers.named}
    for wrong in wrong_neighbours(fixed, links, plan, pairs):
        guilty[frozenset((wrong.host, wrong.peer))] = wrong.host
    failed = ((host, link) for pair, host in guilty.items() for link in pairs.get(pair, ()) if link.failed)
    return [_blame(host, found) for host, found in grouped(failed).items()]


def _refused_by_own_kernel(pairs: Pairs) -> dict[frozenset[str], str]:
    """The pairs between which one host's kernel sends nothing at all, because of its routes or its rules."""
    found = {}
    for pair, links in pairs.items():
        ways = {host: [link for link in links if link.source == host] for host in pair}
        refused = [host for host, own in ways.items() if own and all(each.outcome == "error" for each in own)]
        if len(refused) == 1:
            found[pair] = refused[0]
    return found


def _blame(host: str, failed: Collection[Link]) -> MeshBlame:
    out = sum(link.source == host for link in failed)
    return MeshBlame(
        (host,),
        "both" if 0 < out < len(failed) else "outbound" if out else "inbound",
        tuple(dict.fromkeys(link.kind for link in failed)),
        tuple(failed),
        decided=True,
    )


def _by_firewalls(
    blames: Sequence[MeshBlame],
    rules: Mapping[str, Ruleset],
    ports: Mapping[str, Ports],
    addresses: Mapping[str, Mapping[str, Sequence[str]]],
    plan: JobPlan,
) -> list[MeshBlame]:
    """Without a host whose connections another's firewall stops: the fewest hosts need not be the cause."""

    known = plan.holders.address

    def closed(host: str, link: Link) -> bool:
        source, target = known.get(link.source), known.get(link.target)
        ephemeral = ports[host].ephemeral if host in ports else None
        if source is None or target is None or source.version != target.version:
            return False
        if not ephemeral or host not in rules or not rules[host].tables or not 0 < link.port < 65536:
            return False
        spans = rules[host].decide_ports(
            *(source, target, link.port, link.port),
            interface_with(str(known[host]), addresses.get(host, {})) or None,
            (ephemeral[0], ephemeral[-1]),
            incoming=host == link.target,
        )
        return all(span.decision.blocked or span.decision.diverts for span in spans)

    def closing(blame: MeshBlame) -> set[str]:
        """The hosts whose rules stop all of these connections."""
        ends = {host for link in blame.links for host in (link.source, link.target)}
        touched = (host for host in ends if all(host in (link.source, link.target) for link in blame.links))
        return {host for host in touched if all(closed(host, link) for link in blame.links)}

    guilty = {
        blame: next(iter(hosts))
        for blame in blames
        if not blame.common and blame.direction != "split" and len(hosts := closing(blame)) == 1
    }
    wronged = {host for blame, host in guilty.items() if blame.decided and host not in blame.hosts}
    cleared = [blame for blame, host in guilty.items() if host in wronged]
    found = {host: [link for b in cleared if guilty[b] == host for link in b.links] for host in wronged}
    rest = [blame for blame in blames if blame not in cleared]
    return [*(_blame(host, links) for host, links in sorted(found.items())), *rest]


def _lost_by_rules(
    policies: Mapping[str, Policy],
    addresses: Mapping[str, Mapping[str, Sequence[str]]],
    plan: JobPlan,
    mesh: MeshResult,
) -> dict[frozenset[str], str]:
    """Pair of hosts -> the one of them whose rules make their connections fail."""
    return {
        frozenset((host, peer)): host
        for host, policy in policies.items()
        for detour in detours(
            host, policy, job_interface(addresses.get(host, {}), plan.data_address(host)), plan, mesh
        )
        if detour.failed and detour.sure
        for peer in detour.peers
    }

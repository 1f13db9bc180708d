"""The launch: whether the master address of all ranks belongs to the host of rank 0."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address
from shlex import quote

from doctor.api import (
    PLAN,
    Confidence,
    Damage,
    Evidence,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    Undecided,
    View,
    check,
    fold,
    grouped,
    is_host,
    maybe,
)
from doctor.facts.job import LAUNCHES, directory
from doctor.facts.network import ADDRESSES, NAMES, ROUTES, ResolvedNames, Routes
from doctor.facts.run import OFFERED
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.facts.system import IDENTITY, VIEW
from doctor.job.launch.common import is_larger, spans_hosts
from doctor.job.launch.directory import as_address
from doctor.job.launch.launcher import LaunchNumber, Master
from doctor.job.launch.launchers import MASTERS, PORTS
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.rank_env import (
    goes_by_node_rank,
    is_loopback_name,
    launcher,
    master_of,
    node_rank_of,
    nodes_of,
    port_of,
    rank_of,
    role_of,
)
from doctor.job.launch.rank_starts import file_of
from doctor.mesh import MeshResult
from doctor.rules.launch_names import LaunchNames, remark
from doctor.rules.login import START_FILES


@check(
    "master-not-here",
    LAUNCHES,
    PLAN,
    maybe(ADDRESSES),
    maybe(NAMES),
    maybe(IDENTITY),
    maybe(VIEW),
    maybe(ROUTES),
    maybe(OFFERED),
    maybe(ENVIRONMENT),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    causes=("names-disagree", "launch-inconsistent"),
)
def master_not_here(
    launches: tuple[Launch, ...],
    plan: JobPlan,
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    resolved: Mapping[str, ResolvedNames],
    identities: Mapping[str, str],
    views: Mapping[str, View],
    routes: Mapping[str, Routes],
    tried: MeshResult | None,
    logins: Mapping[str, Environment] | None = None,
) -> Iterator[Problem]:
    """The master address is loopback, unknown, or not that of the host of rank 0.

    Why it matters: all ranks connect to one address, and rank 0 (with MindSpore the scheduler) waits there.
    With 127.0.0.1 each host waits for itself. msrun and torchrun use 127.0.0.1 by default,
    and torchrun does not read MASTER_ADDR. msrun then even starts a scheduler on every host. So it is with a
    port, an id of the rendezvous or a file of `init_method` that each host draws for itself, such as $RANDOM.

    How it is known: from MASTER_ADDR, MS_SCHED_HOST, --master_addr or --rdzv_endpoint, and from the addresses
    that the hosts have. If that is another address of its host than the one that was tried, the other hosts
    connect to it, too. A c10d rendezvous and the scheduler of msrun may be on any host of the job. On one
    host 127.0.0.1 is right. An address that no host has is a fault if ranks wait for it, or if all hosts look
    for it in their own network. Otherwise it may be one that is forwarded to rank 0, and is a warning: behind
    a router, in containers, and if it is public. In containers, a name that none of them resolves is a
    warning: it may be that of a service that is created later. A host on which the name is that of another
    machine is named: if others know the right address, or if it looks for the name at another host of the
    job, or in its own network. A link-local address without its interface, that of a group and a netmask lead
    to nobody. What the script takes from the login of each host, such as `${MASTER_ADDR:-node1}`, must be the
    same on all, and the number of a node another one on each. The script is read for two numbers of a node:
    the master, its port and its address must be the same for both, the ranks others. If no login sets it and
    the default is a loopback address, this is a warning, because who starts the script may set it; it is a
    fault if the logins number the hosts. ssh tells which host is the first. Names of pods in a manifest are
    looked up in pods.

    What to do: give every rank an address of the host of rank 0 that the other hosts can reach.
    """
    book = directory(plan, addresses, resolved, identities)
    doubts: dict[str, None] = {}
    in_pods = View.CONTAINER in (views or {}).values()
    for launch in launches:
        names = LaunchNames(launch, book)
        hosts = [names.host(process) or process.host for process in launch.told]
        spans = spans_hosts(launch, hosts, plan.several_hosts, plan.most_on_a_host)
        yield from _no_ports(names, spans)
        for master, processes in _masters(launch):
            if not is_host(master.address):
                yield _no_name(names, master, processes, plan.data_address(plan.head.value))
            elif not is_loopback_name(master.address):
                if not in_pods and _is_of_pods(names, master, processes):
                    doubts[f"{master.address} in {names.launch.name} is a name that only pods know"] = None
                    continue
                yield from _unresolved(names, master, processes, spans, in_pods)
                if spans and not in_pods and not (launch.live and _has_met(launch, processes)):
                    yield from _seen_elsewhere(names, master, processes, routes or {}, plan, addresses)
                if spans and (why := _unusable(master.address)):
                    yield _of_no_host(names, master, processes, plan, why)
                    continue
                yield from _elsewhere(names, master, processes, doubts, in_pods, routes or {})
                if tried is not None:
                    yield from _not_reached(names, master, processes, tried, plan)
            elif spans and (lost := [each for each in processes if not _is_first(each, launch)]):
                alone = launch.complete and None not in hosts and len(set(hosts)) == 1
                yield _loopback(names, master, lost, plan, Confidence.STRONG if alone else Confidence.CERTAIN)
        if plan.several_hosts and not in_pods and not any(each.loop or each.chosen for each in launch.told):
            yield from _coordinators(names, plan, logins or {}, doubts, routes or {}, addresses, tried)
        if spans and plan.several_hosts:
            yield from _each_its_own(names)
            yield from _by_logins(names, logins or {}, plan)
            yield from _first_by_logins(names, logins or {}, plan)
            yield from _nobody_of_logins(names, logins or {}, plan, doubts, routes or {}, addresses)
    if doubts:
        more = f"; and {len(doubts) - 4} more" if len(doubts) > 4 else ""
        raise Undecided("; ".join(list(doubts)[:4]) + more)


def _is_first(process: ProcessEnv, launch: Launch) -> bool:
    """Whether it is rank 0 itself and the others have its address, as with operators of pods."""
    others = (master_of(each) for each in launch.told if each is not process)
    return _waits(process) and any(other and not is_loopback_name(other.address) for other in others)


def _waits(process: ProcessEnv) -> bool:
    """Whether all others connect to this process."""
    rank = rank_of(process)
    first = role_of(process) == "scheduler" or (rank is not None and rank.value == 0)
    return first and launcher(process) is None


def _is_served(names: LaunchNames, master: Master) -> bool:
    """Whether only the others were given this address, and the waiting process its own, as with services."""
    for process in filter(_waits, names.launch.told):
        own, host = master_of(process), names.host(process)
        if own is not None and own.address != master.address and host is not None:
            return is_loopback_name(own.address) or host in names.directory.owners(own.address)
    return False


def _masters(launch: Launch) -> list[tuple[Master, list[ProcessEnv]]]:
    """Each address once, from launchers if there are any: ranks only repeat it."""
    found: dict[str, tuple[Master, list[ProcessEnv]]] = {}
    for process in sorted(launch.told, key=lambda process: launcher(process) is None):
        master = master_of(process)
        if master is not None:
            found.setdefault(master.address, (master, []))[1].append(process)
    return list(found.values())


def _loopback(
    names: LaunchNames, master: Master, processes: list[ProcessEnv], plan: JobPlan, confidence: Confidence
) -> Problem:
    head = _first_host(names, master)[0] or plan.head.value
    address = plan.data_address(head) if head in plan.names else None
    return Problem(
        "a loopback address as master of a job of several hosts: each host waits for itself",
        expected=f"an address of the host of rank 0{f', {address} ({head})' if address else ''}",
        actual=f"{master.address}, by {master.said}, for {names.labels(processes)}",
        subject=names.subject(f"master {master.address}"),
        where=names.places(processes),
        confidence=confidence,
        evidence=names.said(processes[:3], master.said),
        commands=_typed(names, master, address or "ADDRESS-OF-RANK-0"),
    )


def _no_ports(names: LaunchNames, spans: bool) -> Iterator[Problem]:
    """The problems of ports that no host has. 0 stands for any free port, which only its own host knows."""
    found = ((port, each) for each in names.launch.told if (port := port_of(each)) and "$" not in port.text)
    for port, processes in grouped(found).items():
        if port.value is not None and spans <= port.value < 65536:
            continue
        yield _no_port(names, port, processes, port.said)


def _no_port(names: LaunchNames, port: LaunchNumber, processes: list[ProcessEnv], said: str) -> Problem:
    return Problem(
        "the master's port is not the number of a port",
        expected="a number from 1 to 65535",
        actual=f"{port.text}, by {said}",
        subject=names.subject(f"port {port.text}"),
        where=names.places(processes),
        evidence=names.said(processes[:3], port.said),
        commands=(remark(f"give a number by {said}, such as 29500"),),
    )


def _no_name(names: LaunchNames, master: Master, processes: list[ProcessEnv], head: str | None) -> Problem:
    return Problem(
        "the master's address is neither an address nor the name of a host",
        expected="an address or a name, without a port or a protocol",
        actual=f"{master.address}, by {master.said}",
        subject=names.subject(f"master {master.address}"),
        where=names.places(processes),
        evidence=names.said(processes[:3], master.said),
        commands=_typed(names, master, head or "ADDRESS-OF-RANK-0"),
    )


OF_A_SERVICE = r"lo|dummy\d*|kube-ipvs\d*|nodelocaldns"
"""Interfaces on which every host may have the address of a service that is forwarded to one of them."""
OWN = {
    "own address": (
        "every host takes itself for the master: each waits for itself",
        "the address of the host of rank 0",
        "",
    ),
    "own port": (
        "every host draws another port for the master: they wait for each other at different ones",
        "one port",
        "",
    ),
    "own id": ("every host draws another id of the rendezvous: each waits in its own", "one id", ""),
    "own rank": (
        "the script gives every host one rank: the others are nowhere",
        "a rank of its own",
        "give each host its own: 0 on the first, 1 on the second",
    ),
    "apart": (
        "each host is given another master by its number: they wait for each other at different ones",
        "one master",
        "",
    ),
    "same ranks": (
        "the script gives several hosts the same ranks: they are there twice, and others are nowhere",
        "ranks of its own",
        "multiply the number of the host by the number of its ranks",
    ),
    "late number": (
        "the numbers of the hosts do not begin at 0: none of them is the first",
        "a number from 0 on",
        "take the number as it is: 0 on the first, 1 on the second",
    ),
    "own file": (
        "every host has its own file for its ranks to meet: they do not meet",
        "one shared file",
        "",
    ),
}
"""What every host has for itself: what is wrong with it, what all should have, and how, if not alike."""


def _each_its_own(names: LaunchNames) -> Iterator[Problem]:
    """The problems of a script for every host that takes from the host it runs on what all must share."""
    told = names.launch.told
    if len({file_of(each) for each in told}) > 1 or any(each.chosen or each.loop for each in told):
        return
    for written in names.launch.mentioned:
        if written.kind in OWN and any(_is_typed_on_each_host(each, written.kind) for each in told):
            wrong, shared, typed = OWN[written.kind]
            yield Problem(
                wrong,
                expected=f"{shared}, on every host",
                actual=f"{written.words}, in line {written.line} of {written.file}",
                subject=names.subject("master"),
                confidence=Confidence.STRONG,
                evidence=(Evidence(f"{written.file}:{written.line}", written.words),),
                commands=(remark(typed or f"set {shared} in the script, alike on all hosts"),),
            )


def _by_logins(names: LaunchNames, logins: Mapping[str, Environment], plan: JobPlan) -> Iterator[Problem]:
    """The problems of what a script takes from the environment of each host: all must have it in common."""
    told, book = names.launch.told, names.directory
    if len({file_of(each) for each in told}) > 1 or any(
        each.chosen or each.loop or each.apart for each in told
    ):
        return
    taken = dict.fromkeys((each.words, each.text) for each in names.launch.mentioned if each.kind == "login")
    first = ""
    for name, default in sorted(taken, key=lambda each: each[0] != "NODE_RANK"):
        if sum(name == other for other, _ in taken) > 1 or not logins.keys() >= {*plan.names}:
            continue  # two commands have two defaults
        own = {host: logins[host].variables.get(name, "") for host in plan.names}
        used = {host: value or default for host, value in own.items()}
        if any(own.values()) and not all(used.values()):
            found = _set_by_others(names, name, own)
            numbered = "NODE_RANK" in {each for each, _ in taken}  # else who starts it there types a number
            yield found if numbered else replace(found, severity=Severity.WARN)
        if name == "NODE_RANK":
            yield from _same_number(names, own, used, plan.head.value)
            yield from _no_first_number(names, used)
            zero = [host for host, number in used.items() if number == "0"]
            first = zero[0] if len(zero) == 1 else ""
            for master, processes in _masters(names.launch) if first else ():
                owners = book.owners(master.address)
                if owners and first not in owners and master.on != "any host":
                    yield _not_first(names, master, processes, fold(sorted(owners)), first)
            continue
        if name in MASTERS and is_loopback_name(default) and not any(own.values()):
            yield from _nobody_sets(
                names, name, default, plan, logins, "NODE_RANK" in {name for name, _ in taken}
            )
        if not any(own.values()) or not all(used.values()):
            continue
        groups: dict[object, list[str]] = {}
        for host, value in used.items():
            meant = {host} if is_loopback_name(value) else book.owners(value) if name in MASTERS else ()
            groups.setdefault(tuple(sorted(meant)) or as_address(value) or value, []).append(host)
        if len(groups) == 1:
            owners, numbered = book.owners(next(iter(used.values()))), all(map(goes_by_node_rank, told))
            if name in MASTERS and first and numbered and owners and first not in owners:
                master = Master(next(iter(used.values())), "", name, "rank 0")
                yield _not_first(names, master, list(told), fold(sorted(owners)), first)
            continue
        by_default = [host for host, value in own.items() if not value]
        usual = max(groups.values(), key=lambda hosts: (not {*hosts}.isdisjoint(by_default), len(hosts)))
        each = all(map(is_loopback_name, used.values()))
        odd = [] if each else [host for host in plan.names if host not in usual]
        shown = ", ".join(f"{used[hosts[0]]} on {fold(hosts)}" for hosts in groups.values())
        yield Problem(
            f"the launch takes {name} from the login, and hosts have another: ranks do not meet"
            if odd
            else f"the launch takes {name} from the login: each host waits for itself",
            expected=f"{used[usual[0]]}, on every host" if odd else "an address of the host of rank 0",
            actual=f"{name} is {shown}",
            subject=names.subject(name),
            hosts=tuple(odd),
            where=tuple(Place(host=host) for host in odd),
            confidence=Confidence.STRONG,
            evidence=tuple(Evidence(f"login of {host}", f"{name}={own[host]}") for host in odd[:4]),
            commands=(
                f"ssh {quote((odd or usual)[0])} 'grep -rsn {name} {START_FILES}'",
                remark(f"set {name} in the script, for all hosts"),
            ),
        )


def _set_by_others(names: LaunchNames, name: str, own: Mapping[str, str]) -> Problem:
    """The problem of hosts whose logins do not set what the launch takes from them, while others do."""
    lacking = [host for host, value in own.items() if not value]
    return Problem(
        f"the launch takes {name} from the login, which does not set it on this host",
        expected=f"{name}, set on every host",
        actual=f"no {name} on {fold(lacking)}; set on {fold([host for host in own if own[host]])}",
        subject=names.subject(name),
        hosts=tuple(lacking),
        where=tuple(Place(host=host) for host in lacking),
        confidence=Confidence.STRONG,
        evidence=tuple(Evidence(f"login of {host}", f"no {name}") for host in lacking[:4]),
        commands=(
            f"ssh {quote(lacking[0])} 'grep -rsn {name} {START_FILES}'",
            remark(f"set {name} in the start files of {fold(lacking)}, as on the other hosts"),
        ),
    )


def _first_by_logins(
    names: LaunchNames, logins: Mapping[str, Environment], plan: JobPlan
) -> Iterator[Problem]:
    """The problem of a master on another host than the one whose login has the first number of a node."""
    for master, processes in _masters(names.launch):
        agent = launcher(processes[0])
        if agent is None or agent.node_rank or agent.unknown("node_rank") or processes[0].apart:
            continue
        if master.on == "any host" or not goes_by_node_rank(processes[0]) or names.launch.unread:
            continue
        variable = f"{agent.launcher.options.variables}NODE_RANK"
        own = {host: logins[host].variables.get(variable) for host in plan.names if host in logins}
        zero = [host for host, number in own.items() if (number or agent.launcher.first_node) == "0"]
        owners = names.directory.owners(master.address)
        if any(own.values()) and len(zero) == 1 and owners and zero[0] not in owners:
            yield _not_first(names, master, processes, fold(sorted(owners)), zero[0])


def _coordinators(
    names: LaunchNames,
    plan: JobPlan,
    logins: Mapping[str, Environment],
    doubts: dict[str, None],
    routes: Mapping[str, Routes],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    tried: MeshResult | None,
) -> Iterator[Problem]:
    """The problem of processes of JAX, or of a program with an address for its ranks, that meet at an address
    of no host of the job, or each at its own.
    """
    told = [each for each in names.launch.told if not each.apart and not each.source.endswith(")")]
    agents = [agent for each in told if (agent := launcher(each))]
    found = {
        each.text: f"the coordinator's address in {each.source.removeprefix('--launch ')}"
        for each in names.launch.mentioned
        if each.kind == "coordinator" and not any(agent.launcher.master for agent in agents)
    }
    found |= _coordinator_of_logins(plan, logins) if not agents else {}
    for address, said in found.items() if told else ():
        master = Master(address, "", said, "any host")
        if is_loopback_name(master.address):
            yield _loopback(names, master, told, plan, Confidence.STRONG)
        else:
            yield from _unresolved(names, master, told, True, False)
            yield from _seen_elsewhere(names, master, told, routes, plan, addresses)
            yield from _elsewhere(names, master, told, doubts, False, routes)
            yield from _not_reached(names, master, told, tried, plan) if tried else ()


def _coordinator_of_logins(plan: JobPlan, logins: Mapping[str, Environment]) -> dict[str, str]:
    """The address at which all logins let several processes of JAX meet, and who says so."""
    name, given = "JAX_COORDINATOR_ADDRESS", {**plan.env, **dict.fromkeys(plan.unset, "")}
    own = [{**logins[host].variables, **given} for host in plan.names if host in logins]
    said = {each.get(name, "") for each in own}
    several = all(each.get("JAX_NUM_PROCESSES", "1") not in ("", "1") for each in own)
    if len(own) < len(plan.names) or len(said) > 1 or not several or name in given:
        return {}
    address = said.pop().rpartition(":")[0]
    return {address: f"{name} of the logins"} if address else {}


def _nobody_of_logins(
    names: LaunchNames,
    logins: Mapping[str, Environment],
    plan: JobPlan,
    doubts: dict[str, None],
    routes: Mapping[str, Routes],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
) -> Iterator[Problem]:
    """The problem of a master or a port that all logins name alike, and that is none."""
    told = [each for each in names.launch.told if not each.apart]
    for name in {*plan.inherited} & {*MASTERS} if logins.keys() >= {*plan.names} else ():
        said = {logins[host].variables.get(name, "") for host in plan.names}
        if len(said) == 1 and (address := said.pop()) and not is_loopback_name(address):
            master = Master(address, "", f"{name} of the logins", "any host")
            yield from _unresolved(names, master, told, True, False)
            yield from _seen_elsewhere(names, master, told, routes, plan, addresses)
            yield from _elsewhere(names, master, told, doubts, False, routes)
    for name in {*plan.inherited} & {*PORTS} if logins.keys() >= {*plan.names} else ():
        said = {logins[host].variables.get(name, "") for host in plan.names}
        port = LaunchNumber(name, said.pop()) if len(said) == 1 else None
        if port and port.text and not (port.value and 0 < port.value < 65536):
            yield _no_port(names, port, told, f"{name} of the logins")


def _nobody_sets(
    names: LaunchNames,
    name: str,
    default: str,
    plan: JobPlan,
    logins: Mapping[str, Environment],
    numbered: bool,
) -> Iterator[Problem]:
    """The problem of a master that is loopback unless it is set, if no login does so: certain if the logins
    number the hosts, and none if who starts it has to set a number there anyway.
    """
    several = [nodes[0] > 1 for each in names.launch.told if (nodes := nodes_of(each))]
    given = [bool(logins[host].variables.get("NODE_RANK")) for host in plan.names]
    if not all(several) or not several or (numbered and not any(given)):
        return
    sure = numbered and all(given)
    yield Problem(
        f"no login sets {name}: each host waits for itself"
        + ("" if sure else ", unless who starts it there sets it"),
        expected="an address of the host of rank 0, on every host",
        actual=f"{name}={default} on {fold(plan.names)}",
        subject=names.subject(name),
        severity=None if sure else Severity.WARN,
        confidence=Confidence.STRONG,
        evidence=(Evidence("environment of the login", f"no {name} on {fold(plan.names)}"),),
        commands=(
            remark(f"set {name}={plan.data_address(plan.head.value) or 'ADDRESS-OF-RANK-0'} in the script"),
        ),
    )


def _same_number(
    names: LaunchNames, own: Mapping[str, str], used: Mapping[str, str], head: str
) -> Iterator[Problem]:
    """The problem of hosts that take one number of a node from their logins, or all of them the default. The
    default may be right on the first host.
    """
    told = [each for each in names.launch.told if goes_by_node_rank(each)]
    fewest = min((nodes[0] for each in told if (nodes := nodes_of(each))), default=0)
    same = [
        hosts for number, hosts in grouped((number, host) for host, number in used.items()).items() if number
    ]
    hosts = max(same, key=len, default=[])
    if len(hosts) < 2 or fewest < len(used):
        return
    number, given = used[hosts[0]], any(own[host] for host in hosts)
    unset = [host for host in hosts if not own[host]] if given else []
    unset = [] if head in unset else unset
    yield Problem(
        "its login sets no NODE_RANK, and the default is the number of another host"
        if unset
        else "hosts take one number of a node from their logins: each of them is that node"
        if given
        else "no login sets NODE_RANK: every host is the same node, unless who starts it there sets it",
        expected="a NODE_RANK of its own on every host, from 0",
        actual=f"NODE_RANK={number} on {fold(hosts)}",
        subject=names.subject("NODE_RANK"),
        hosts=tuple(unset),
        where=tuple(Place(host=host) for host in unset or hosts),
        severity=None if given else Severity.WARN,
        confidence=Confidence.STRONG,
        evidence=(Evidence("environment of the login", f"NODE_RANK={number} on {fold(hosts)}"),),
        commands=(
            remark(
                "start it on each host with its own number, such as NODE_RANK=1 bash SCRIPT on the second"
            ),
            *((f"ssh {quote(hosts[-1])} 'grep -rsn NODE_RANK {START_FILES}'",) if given else ()),
        ),
    )


def _no_first_number(names: LaunchNames, used: Mapping[str, str]) -> Iterator[Problem]:
    """The problem of hosts that their logins number from another number than 0: rank 0 is on none of them."""
    numbers = [int(number) for number in used.values() if re.fullmatch(r"\d{1,6}", number)]
    told = [each for each in names.launch.told if goes_by_node_rank(each)]
    whole = told and all(nodes_of(each) == (len(used),) * 2 for each in told)
    if whole and len({*numbers}) == len(used) and {*numbers} != {*range(len(used))}:
        shown = ", ".join(f"{number} on {host}" for host, number in [*used.items()][:4])
        yield Problem(
            "the logins do not number the hosts from 0: the launcher does not know one of the numbers",
            expected="a NODE_RANK of its own on every host, from 0",
            actual=f"NODE_RANK is {shown}",
            subject=names.subject("NODE_RANK"),
            confidence=Confidence.STRONG,
            evidence=(Evidence("environment of the login", f"NODE_RANK is {shown}"),),
            commands=(remark("NODE_RANK=0 on the first host, 1 on the second"),),
        )


def _is_typed_on_each_host(process: ProcessEnv, kind: str) -> bool:
    """Whether every host starts this, and is given no value beside the one that it has for itself."""
    agent, port = launcher(process), port_of(process)
    if kind not in ("own address", "own port", "own id"):
        return bool(process.command)
    if agent is None:
        return bool(process.command) and kind == "own port" and port is None
    if agent.standalone or agent.command.inside:
        return False
    known = {"own address": master_of(process), "own port": port}.get(kind)
    return "node_rank" in agent.launcher.options.values.values() and known is None


def _unresolved(
    names: LaunchNames, master: Master, processes: list[ProcessEnv], spans: bool, in_pods: bool
) -> Iterator[Problem]:
    """The problem of a name that some host cannot resolve, or resolves to loopback.

    If the job does not span hosts, only one of them has to know the name. If no pod knows the name yet, that
    is a warning: the service of a job is created with the job.
    """
    if as_address(master.address):
        return
    views = names.directory.views(master.address)
    if not spans and any(views.values()):
        return
    owners = names.directory.owners(master.address)
    lost = [host for host, found in views.items() if not found]
    itself = [
        host
        for host, found in views.items()
        if found and all(map(is_loopback_name, found)) and {host} != owners and len(views) > 1
    ]
    known = (each for found in views.values() for each in sorted(found) if not is_loopback_name(each))
    for hosts, how in (
        (lost, "cannot be resolved"),
        (itself, "is taken for the host's own loopback address"),
    ):
        if hosts:
            to_come = in_pods and not names.launch.live and hosts is lost and len(lost) == len(views)
            yield Problem(
                f"the name of the master {how}",
                expected="the address of the host of rank 0, on every host",
                actual=f"{'not found' if hosts is lost else 'loopback'} on {fold(hosts)}",
                subject=names.subject(f"master {master.address}"),
                hosts=tuple(hosts) if len(hosts) < len(views) or len(views) == 1 else (),
                where=tuple(Place(host=host) for host in hosts),
                severity=Severity.WARN if to_come or _may_lack(names, processes, hosts) else None,
                evidence=(
                    Evidence(f"getent ahosts {master.address}", f"{fold(hosts)}: {how}"),
                    *names.said(processes[:1], master.said),
                ),
                commands=_typed(names, master, next(known, "ADDRESS-OF-RANK-0")),
            )


def _is_of_pods(names: LaunchNames, master: Master, processes: list[ProcessEnv]) -> bool:
    """Whether a manifest has a name that no host resolves: these are not its pods."""
    agents = filter(None, map(launcher, processes))
    manifest = names.launch.name.endswith((".yaml", ".yml")) and all(each.command.program for each in agents)
    views = names.directory.views(master.address)
    return manifest and bool(views) and not any(views.values()) and as_address(master.address) is None


def _may_lack(names: LaunchNames, processes: list[ProcessEnv], hosts: list[str]) -> bool:
    """Whether the launch is for so few of the hosts that these need not know its master."""
    others = len(names.directory.hosts) - len(hosts)
    return any((nodes := nodes_of(each)) and nodes[1] <= others for each in processes)


def _seen_elsewhere(
    names: LaunchNames,
    master: Master,
    processes: list[ProcessEnv],
    routes: Mapping[str, Routes],
    plan: JobPlan,
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
) -> Iterator[Problem]:
    """The problem of a name that a host takes for another machine than that of the master, or of an address
    that is none's alone.

    An address that its host does not have may be forwarded to it, unless it is that of another host of the
    job, or of a network that the host is in itself, or others know the right one.
    """
    book = names.directory
    seen = {
        host: frozenset(each for each in found if not is_loopback_name(each))
        for host, found in book.views(master.address).items()
    }
    own = {host for host, found in seen.items() if found and found <= book.held.get(host, frozenset())}
    one = next((each for each in (own, book.owners(master.address)) if len(each) == 1), frozenset())
    owner = book.host(master.address) or next(iter(one), None)
    if as_address(master.address):
        at = ((host, name) for host, own in addresses.items() for name in own if master.address in own[name])
        holders = sorted({host for host, name in at if not re.fullmatch(OF_A_SERVICE, name)})
        yield from [_of_several(names, master, processes, holders, plan)] if len(holders) > 1 else ()
        return
    if owner is None and len(own) > 1:
        yield _of_several(names, master, processes, sorted(own), plan)
    held = book.held.get(owner or "", frozenset())
    if owner is None or not held:
        return
    views = {host: found for host, found in seen.items() if host != owner}
    right = [host for host, found in views.items() if found & held]
    others = frozenset(each for host, own in book.held.items() if host != owner for each in own)
    meant = next((each for seen in right for each in sorted(views[seen] & held)), plan.data_address(owner))
    wrong = []
    for host, found in views.items():
        plain = frozenset(each for each in found if ":" not in each)
        near = plain and host in routes and _is_near(plain, {host: routes[host]})
        wrong += [host] if found and not found & held and (right or near or found & others) else []
    for host in wrong:
        told = ", ".join(sorted(views[host]))
        yield Problem(
            "the name of the master is another machine there",
            expected=f"{meant}, the address of {owner}",
            actual=f"{master.address} is {told} on {host}, by {master.said}",
            subject=names.subject(f"master {master.address}"),
            hosts=(host,),
            where=(Place(host=host, peer=owner),),
            severity=Severity.WARN if _may_lack(names, processes, wrong) else None,
            confidence=Confidence.CERTAIN if views[host] & others else Confidence.STRONG,
            evidence=(
                Evidence(f"getent ahosts {master.address}", f"{told} on {host}"),
                *names.said(processes[:1], master.said),
            ),
            commands=(
                f"ssh {quote(host)} grep -nw {quote(master.address)} /etc/hosts",
                remark(f"give it {meant} there, in /etc/hosts or DNS"),
            ),
        )


def _of_several(
    names: LaunchNames, master: Master, processes: list[ProcessEnv], own: list[str], plan: JobPlan
) -> Problem:
    name = as_address(master.address) is None
    what = "name" if name else "address"
    return Problem(
        f"the {what} of the master means several hosts: each takes itself for the master",
        expected="the address of the host of rank 0, on every host",
        actual=f"{master.address} is {fold(own)}, by {master.said}",
        subject=names.subject(f"master {master.address}"),
        where=tuple(Place(host=host) for host in own),
        confidence=Confidence.CERTAIN,
        evidence=(
            Evidence(
                f"getent ahosts {master.address}" if name else "ip -o addr show",
                f"an own address on each of {fold(own)}",
            ),
            *names.said(processes[:1], master.said),
        ),
        commands=_typed(names, master, plan.data_address(own[0]) or "ADDRESS-OF-RANK-0"),
    )


def _unusable(address: str) -> str:
    """Why no other host can connect to an address, whoever has it; "" if it may."""
    known = as_address(address)
    if known is None or "%" in address:
        return ""
    found = ip_address(known)
    if found.version == 6 and found.is_link_local:
        return "a link-local address without its interface"
    if found.is_multicast:
        return "an address of a group"
    return "a netmask or the address of all hosts" if address.startswith("255.") else ""


def _of_no_host(
    names: LaunchNames, master: Master, processes: list[ProcessEnv], plan: JobPlan, why: str
) -> Problem:
    address = plan.data_address(_first_host(names, master)[0] or plan.head.value)
    return Problem(
        "the master's address is one to which no other host can connect",
        expected=f"an address of the host of rank 0{f', {address}' if address else ''}",
        actual=f"{master.address}, {why}, by {master.said}",
        subject=names.subject(f"master {master.address}"),
        where=names.places(processes),
        confidence=Confidence.CERTAIN,
        evidence=names.said(processes[:3], master.said),
        commands=_typed(names, master, address or "ADDRESS-OF-RANK-0"),
    )


def _elsewhere(
    names: LaunchNames,
    master: Master,
    processes: list[ProcessEnv],
    doubts: dict[str, None],
    in_pods: bool,
    routes: Mapping[str, Routes],
) -> Iterator[Problem]:
    """The problem of an address that belongs to no host, or to the wrong one."""
    book, launch = names.directory, names.launch
    owners = book.owners(master.address)
    first, outside = _first_host(names, master)
    first = None if master.on == "any host" else first
    if owners:
        if first is not None and first not in owners:
            yield _not_first(names, master, processes, fold(sorted(owners)), first)
        return
    views = book.views(master.address)
    if not book.meant(master.address):
        if not views:
            doubts[f"{launch.name}: no host was asked what {master.address} is"] = None
        return
    silent = [host for host in ([first] if first else book.hosts) if host not in book.held]
    unseen = (
        (len(book.hosts) == 1 and not _is_of_one_host(launch))
        or outside
        or is_larger(launch, len(book.hosts))
    )
    unseen = unseen or (launch.live and not _is_all_seen(names))
    if silent:
        doubts[f"{launch.name}: the addresses of {fold(silent)} are not known"] = None
    elif first is None and unseen:
        doubts[f"{launch.name}: {master.address} may be that of a host that was not asked"] = None
    elif _is_served(names, master):
        doubts[f"{launch.name}: {master.address} may be a service that forwards to {first}"] = None
    else:
        forwarded = in_pods or any(ip_address(each).is_global for each in book.meant(master.address))
        waits = launch.live and not _has_met(launch, processes)
        local = all(ip_address(each).is_link_local for each in book.meant(master.address))  # no router
        near = not launch.live and (local or _is_near(book.meant(master.address), routes))
        sure = not forwarded and (waits or near)
        yield _not_first(names, master, processes, "", first, None if sure else Severity.WARN)


def _not_reached(
    names: LaunchNames, master: Master, processes: list[ProcessEnv], tried: MeshResult, plan: JobPlan
) -> Iterator[Problem]:
    """The problem of an address of the right host that other hosts do not reach."""
    meant = names.directory.meant(master.address)
    calls = [link for link in tried.links if link.address in meant and link.target in plan.names]
    failed = [link for link in calls if link.failed]
    lost = sorted({link.source for link in failed})
    if not lost:
        return
    owner, some = failed[0].target, {link.source for link in calls} > {*lost}
    yield Problem(
        "other hosts do not reach the master's address",
        expected=f"connections from every host to {failed[0].address}",
        actual=f"none from {fold(lost)} to {failed[0].address} of {owner}, by {master.said}",
        subject=names.subject(f"master {master.address}"),
        hosts=tuple(lost) if some else (),
        where=tuple(Place(host=host, peer=owner) for host in lost) if some else names.places(processes),
        confidence=Confidence.CERTAIN,
        evidence=tuple(
            Evidence(f"connect from {link.source}", f"{owner} {link.address}:{link.port}: {link.outcome}")
            for link in failed[:4]
        ),
        commands=_typed(names, master, plan.data_address(owner) or "ADDRESS-OF-RANK-0"),
    )


def _is_of_one_host(launch: Launch) -> bool:
    return {nodes_of(each) for each in launch.told if launcher(each)} == {(1, 1)}


def _is_near(addresses: frozenset[str], routes: Mapping[str, Routes]) -> bool:
    """Whether all hosts look for these addresses in a network of their own, or have no way to them."""
    if not routes or any(":" in each for each in addresses):
        return False
    ways = (known.route_to(each) for known in routes.values() for each in addresses)
    return not any(way and way.gateway for way in ways)


def _is_all_seen(names: LaunchNames) -> bool:
    """Whether launchers of as many hosts run as the job is for."""
    agents = [each for each in names.launch.told if launcher(each)]
    nodes = {nodes_of(each) for each in agents}
    (span,) = nodes if len(nodes) == 1 else (None,)
    return span is not None and len(names.hosts(agents)) >= span[0]


def _has_met(launch: Launch, processes: Sequence[ProcessEnv]) -> bool:
    """Whether launchers have met at this address: they start their ranks afterwards."""
    return launch.met or (
        any(map(launcher, processes)) and any(launcher(each) is None for each in launch.told)
    )


def _not_first(
    names: LaunchNames,
    master: Master,
    processes: list[ProcessEnv],
    owner: str,
    first: str | None,
    severity: Severity | None = None,
) -> Problem:
    """Without an owner, the address may be that of a service that forwards to rank 0."""
    who = "the scheduler" if master.on == "scheduler" else "rank 0"
    place = f"the host of {who}" if first else "one of these hosts"
    own = sorted(names.directory.held.get(first or "", frozenset()))
    usable = [each for each in own if not is_loopback_name(each) and not each.startswith("fe80:")]
    whose = f"that of {owner}" if owner else "not that of any of these hosts"
    return Problem(
        f"the master's address is not that of {place}",
        expected=f"an address of {first}: {', '.join(usable[:6])}" if first else "an address of one of them",
        actual=f"{master.address} is {whose}, by {master.said}",
        subject=names.subject(f"master {master.address}"),
        where=(Place(host=first, rank=0 if who == "rank 0" else None),) if first else names.places(processes),
        severity=severity,
        confidence=Confidence.CERTAIN if owner else Confidence.STRONG,
        evidence=names.said(processes[:3], master.said),
        commands=_typed(names, master, usable[0] if usable else "ADDRESS-OF-RANK-0"),
    )


def _first_host(names: LaunchNames, master: Master) -> tuple[str | None, bool]:
    """The host of rank 0 or of the scheduler, if known, and whether it is outside of these hosts."""
    for process in names.launch.told:
        number = node_rank_of(process) if launcher(process) else rank_of(process) or node_rank_of(process)
        is_first = number is not None and number.value == 0
        if role_of(process) == "scheduler" if master.on == "scheduler" else is_first:
            host = names.host(process) or names.directory.host(process.on)
            return host, host is None and bool(process.host or process.on)
    told = names.launch.told
    if len(told) == 1 and (listed := _listed_first(told[0])):
        return names.directory.host(listed), names.directory.host(listed) is None
    return None, False


def _listed_first(process: ProcessEnv) -> str:
    """The first host of a launcher that starts the ranks of all hosts in their order, and gives them their
    master; "" if there is none, or another order may count.
    """
    agent = launcher(process)
    if agent is None or process.hosts_change or "include" in agent.command.options:
        return ""
    gives = agent.launcher.master is not None or bool(agent.launcher.ranks)
    return next(iter(process.hosts), "") if gives and agent.launcher.hosts_besides else ""


def _typed(names: LaunchNames, master: Master, address: str) -> tuple[str, ...]:
    agent = next((found for process in names.launch.told if (found := launcher(process))), None)
    if master.said in MASTERS:
        return (f"export {master.said}={quote(address)}",)
    if "coordinator" in master.said:
        return (remark(f"name {address} there"),)
    if "rdzv_endpoint" in master.said:
        return (remark(f"start with --rdzv_endpoint={quote(address)}:{master.port or '29400'}"),)
    option = agent.spelled("master_addr") if agent else "--master_addr"
    return (remark(f"start with {option}={quote(address)}"),)

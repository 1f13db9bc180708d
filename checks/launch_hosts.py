"""The launch: whether it is for as many hosts as were given, and whether each of them gets its own ranks."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address

from doctor.api import (
    NEEDED,
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
    maybe,
)
from doctor.facts.job import LAUNCHES, directory
from doctor.facts.network import ADDRESSES, NAMES, ResolvedNames
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.facts.system import IDENTITY, VIEW
from doctor.facts.tables import TABLE_FILES, HostFile
from doctor.job.launch.allocation import nodes
from doctor.job.launch.directory import Directory, as_address
from doctor.job.launch.launcher import LaunchNumber, nodes_in
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.rank_env import (
    goes_by_node_rank,
    is_loopback_name,
    launcher,
    master_of,
    node_rank_of,
    nodes_of,
    rank_of,
    role_of,
)
from doctor.job.launch.rank_starts import file_of, world_said
from doctor.job.launch.ranks import counted
from doctor.rules.launch_names import LaunchNames, remark, some

OF_ONE_HOST = ("HCCL_IF_IP", "MS_WORKER_IP", "CM_WORKER_IP")
"""Variables with an address of the host on which a rank runs."""
BY_LAUNCHER = {"nnodes": "num_machines", "rdzv_backend": "rdzv_backend"}
"""Options of a command line, and the keys of a configuration that they override."""
OTHERWISE = {"cpu", "use_cpu", "use_deepspeed"}
"""Options with which a launcher takes another way than that of its configuration."""
KINDS = re.compile("MULTI_(?!CPU)|FSDP|MEGATRON")
"""The kinds of jobs in a configuration that are started on each host."""
SHOWN = 4
"""The most hosts whose own number is shown."""


@check(
    "launch-hosts",
    LAUNCHES,
    PLAN,
    NEEDED,
    maybe(VIEW),
    maybe(ADDRESSES),
    maybe(NAMES),
    maybe(IDENTITY),
    maybe(TABLE_FILES),
    maybe(ENVIRONMENT),
    scope=Scope.CLUSTER,
    damage=Damage.BLOCKED,
)
def launch_hosts(
    launches: tuple[Launch, ...],
    plan: JobPlan,
    needed: int,
    views: Mapping[str, View],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    resolved: Mapping[str, ResolvedNames],
    identities: Mapping[str, str],
    files: Mapping[str, Mapping[str, HostFile]] | None = None,
    logins: Mapping[str, Environment] | None = None,
) -> Iterator[Problem]:
    """The launch is for other hosts or another number of them, or starts the same ranks on each.

    Why it matters: a launch for one host that is started on several trains a separate model on each, and
    nothing says so. A launch for more hosts than it is started on waits until it times out, and so does one
    whose node rank or ranks are fixed: every host then has the same ranks, and the others are nowhere. With
    one HCCL_IF_IP or MS_WORKER_IP for all hosts, only the ranks of one of them can listen there, and with
    that of another machine none. A launch of mpirun, deepspeed or horovodrun that names no hosts starts all
    ranks on its own host. Open MPI and horovodrun start nothing if there are more ranks than slots.
    torchrun takes a host without a node rank for the first, srun or not, and accelerate stops; a rendezvous
    numbers them. Processes of JAX wait until there are as many as num_processes says, each with its
    process_id.

    How it is known: from the scripts and env files of --launch, and from the hosts that were named. The
    hosts of a launcher are in its options, or in a hostfile that is here and that the script does not
    write. What is wrong is a warning if another program may write it before, or if a name may be that of a
    service. A range (--nnodes=1:4) fits any number in it. With --need-hosts, hosts that the launch does not
    need are spare ones. A script with a word of a scheduler, or one that is examined in a job of Slurm, PBS
    or LSF, gets its hosts from the allocation; a script may also name a default hostfile. What `accelerate
    config` stored is read on each host, and must have another machine_rank on each and a main_process_ip,
    unless the command line gives them; without it, a missing --num_machines is a warning. A node rank that
    is not given may be that of the logins (PET_NODE_RANK), and in pods it may be given later. Choices that
    a script makes, launches that it starts in a loop, and jobs that run are not judged.

    What to do: name the hosts of the job, and no others; or give --nnodes and the node rank of each host,
    or --hostfile. If hosts have scripts of their own, give --launch all of them.
    """
    book = directory(plan, addresses, resolved, identities)
    in_pods = View.CONTAINER in (views or {}).values()
    doubts = []
    for launch in launches:
        if launch.live:
            continue
        names = LaunchNames(launch, book)
        every = _configured_on_hosts(launch, plan, files or {})
        configured = every if len(launch.told) == 1 else {}
        numbers = _number_of_hosts(names, plan, needed, in_pods)
        uneven, same = _uneven(names, plan), _same_on_every_host(names, plan, needed)
        given = _typed(launch) if configured else {}
        if configured and "node_rank" not in given:
            same = _same_by_configuration(names, configured, given)
        if configured and "nnodes" not in given:
            machines = {own.get("num_machines", "1") for own in configured.values()}
            fits = all(
                each.isdecimal() and len(each) < 7 and int(each) == len(plan.hosts) for each in machines
            )
            numbers = iter(()) if fits else numbers
        by_name = _numbered_by_name(names, plan, identities or {})
        for found in (
            *numbers,
            *uneven,
            *same,
            *by_name,
            *_nobody_to_meet(names, every),
            *_of_jax(names, plan, needed),
            *_unnumbered(names, plan, needed, files or {}, logins or {}, in_pods=in_pods),
            *_all_nodes_here(names, plan),
            *_nodes_left_out(names, plan),
            *_one_address(names, plan),
            *_others(names, plan, in_pods),
            *_too_few_slots(names),
            *{found.actual: found for found in _not_divided(names)}.values(),
        ):
            if isinstance(found, Problem):
                unsure = any(each.hosts and each.hosts_change for each in launch.told)
                yield replace(found, severity=Severity.WARN) if unsure else found
            else:
                doubts.append(found)
    if doubts:
        raise Undecided("; ".join(doubts))


def _number_of_hosts(
    names: LaunchNames, plan: JobPlan, needed: int, in_pods: bool
) -> Iterator[Problem | str]:
    """What is wrong with the number of hosts; a text if these may be only some of the job's hosts.

    Operators of pods set the variables that stand for options.
    """
    told = names.launch.told
    spans = {span[:2]: (process, span[2]) for process in told if (span := _span(process))}
    if len(spans) != 1:
        return  # options that differ are reported as such
    ((fewest, most), (process, said)) = spans.popitem()
    hosts = len(plan.hosts)
    if fewest <= hosts and (most >= needed or fewest < most):
        return  # hosts beyond the range are spare
    if hosts == 1:
        yield f"{process.source} is for {fewest} hosts, and one was examined ({said})"
    elif fewest > hosts:
        yield _problem(
            names,
            [process],
            f"the launch is for {fewest} hosts and {hosts} were named: it waits for the others in vain",
            f"{fewest} hosts, or a launch for {hosts}",
            f"{hosts}: {fold(plan.names)}; {said}",
            remark(f"name all {fewest} hosts, or start with {_hosts_option(process)}={hosts}"),
        )
    elif most > 1:
        yield _problem(
            names,
            [process],
            f"the launch is for {most} hosts and {hosts} were named: it has no use for the others",
            f"{most} hosts, or a launch for {hosts}",
            f"{hosts}: {fold(plan.names)}; {said}",
            remark(f"--need-hosts {most}, if the others are spare hosts"),
            severity=Severity.WARN,
        )
    elif in_pods and (process.hostless or _may_be_inherited(process)):
        yield f"{process.source} does not say for how many hosts it is, and its pods may ({said})"
    elif names.launch.unread:
        yield f"{process.source} is for one host, and another job or file of it was left out ({said})"
    elif not _is_meant_for_each(told) and "list" not in {slip.kind for slip in names.launch.slips}:
        problem = _one_host(names, [process], plan, said, _hosts_option(process))
        if process.hostless:
            problem = _no_hosts(problem, hosts)
        elif _may_be_configured(process):
            problem = _no_number(problem, hosts)
        yield problem


def _span(process: ProcessEnv) -> tuple[int, int, str] | None:
    """The fewest and the most hosts that it is for, and what says so."""
    agent = launcher(process)
    if agent is None:
        nodes = nodes_in(process.env.get("NNODES", "")) if rank_of(process) is None else None
        return (*nodes, f"NNODES={process.env['NNODES']}") if nodes else None
    if agent.standalone:
        return 1, 1, "--standalone"
    if process.hostless:
        return 1, 1, f"no option of {agent.launcher.name} names them"
    if nodes := nodes_of(process):
        number = agent.setting("nnodes")
        return (*nodes, _shown(number) if number else "")
    if _may_be_configured(process):
        return (
            1,
            1,
            f"{_hosts_option(process)} is not given, and a configuration file on the hosts was not read",
        )
    if hosts := sorted(process.hosts):
        return len(hosts), len(hosts), f"it names {', '.join(hosts[:8])}"
    world, each = agent.world, agent.local_world or agent.setting("each")
    if world and each and world.value and each.value and world.value % each.value == 0:
        number_of_hosts = world.value // each.value
        return number_of_hosts, number_of_hosts, f"{_shown(world)}, {_shown(each)}"
    return None


def _uneven(names: LaunchNames, plan: JobPlan) -> Iterator[Problem]:
    """The problem of one script for all hosts whose ranks cannot add up to the world, however many hosts."""
    told = names.launch.told
    agents = [agent for process in told if (agent := launcher(process))]
    ranks = [process for process in told if role_of(process) == "rank"]
    world = agents[0].world if agents else world_said(names.launch)
    one = agents[0].local_world or agents[0].setting("each") if agents else None
    each = one.value if one else None if agents else len(ranks)
    if len(agents) > 1 or any(agent.launcher.outer for agent in agents) or len(set(map(file_of, told))) > 1:
        return
    if any(process.chosen or process.host for process in told) or len(plan.hosts) < 2:
        return
    if any((rank := rank_of(process)) and rank.value is not None for process in ranks):
        return  # launch-ranks says which numbers are missing
    if not (world and world.value and each):
        return
    if world.value % each == 0:
        if agents or each == 1 or world.value <= each * len(plan.hosts):
            return  # launchers have options, who starts one rank may start more, and hosts may be spare
        yield _problem(
            names,
            told[:1],
            f"the launch is for {world.value // each} hosts and {len(plan.hosts)} were named: "
            "it waits for the others in vain",
            f"{world.value // each} hosts, or a launch for {len(plan.hosts)}",
            f"{len(plan.hosts)}: {fold(plan.names)}; {_shown(world)}, {each} on each host",
            remark(f"name all {world.value // each} hosts, or set {world.said}={each * len(plan.hosts)}"),
        )
        return
    yield _problem(
        names,
        told[:1],
        f"{_shown(world)} is not a multiple of the {each} ranks that each host starts",
        f"{each} ranks for each host: {len(plan.hosts) * each} for {len(plan.hosts)} hosts",
        f"{_shown(world)}" + (f", {_shown(one)}" if one else ""),
        remark("correct one of the two numbers"),
    )


def _may_be_configured(process: ProcessEnv) -> bool:
    """Whether a configuration file on the hosts may say how many there are, because its options do not."""
    agent = launcher(process)
    if agent is None or agent.launcher.configured is None:
        return False
    return agent.nodes is None and not agent.unknown("nnodes")


def _others(names: LaunchNames, plan: JobPlan, in_pods: bool) -> Iterator[Problem | str]:
    """The problem of a launch that lists other hosts than were named; a text if they may have other names."""
    told = names.launch.told
    reached = sorted({each.on for each in told if _starts_there(each)})
    lists = [(each, sorted(each.hosts)) for each in told]
    spread = [each.text for each in names.launch.mentioned if each.kind == "hosts"]
    started = sorted(nodes(spread[0].replace(" ", ","))) if len(spread) == 1 else []
    for process, listed in (
        *lists,
        (told[0], reached if len(reached) > 1 else []),
        (told[0], [] if any(each.hosts for each in told) else started),
    ):
        if len(listed) > len(plan.hosts):
            continue  # a larger number of hosts is reported as such
        strange = [name for name in listed if not names.directory.owners(name) and not is_loopback_name(name)]
        seen = not in_pods and set(plan.names) <= names.directory.held.keys()
        elsewhere = all(_leads_elsewhere(name, names.directory) for name in strange)
        alone = len(strange) == len(listed) and all(map(as_address, strange))
        sure = alone or (elsewhere and len(strange) < len(listed))
        meant = [names.directory.owners(name) for name in listed]
        same = [host for hosts, n in Counter(meant).items() if n > 1 and len(hosts) == 1 for host in hosts]
        if same and not strange and len(listed) == len(plan.hosts):
            twice = [name for name, hosts in zip(listed, meant, strict=True) if {*same[:1]} == hosts]
            yield _problem(
                names,
                [process],
                f"the launch names {same[0]} twice, and not every host",
                f"each of {fold(plan.names)} once",
                f"{' and '.join(twice)} are both {same[0]}",
                remark("name each host once in the hostfile or the option"),
            )
        if strange and seen and (len(strange) < len(listed) or alone or elsewhere):
            yield _problem(
                names,
                [process],
                f"the launch is for hosts that were not named: {', '.join(strange[:8])}",
                "the hosts that the launch names",
                f"{fold(plan.names)} were named; the launch is for {', '.join(listed[:8])}",
                remark("name the hosts of the launch, or start it on these"),
                severity=None if sure else Severity.WARN,
            )
        elif strange:
            yield f"whether {', '.join(strange[:4])} in {process.source} are among these hosts is not known"


def _starts_there(process: ProcessEnv) -> bool:
    """Whether ssh goes to a host to start its ranks: a launcher around them may start them elsewhere."""
    agent = launcher(process)
    outer = agent is not None and (
        agent.command.inside or agent.launcher.hosts_besides or agent.launcher.outer
    )
    return process.on != "" and not outer and re.search(r"[$`]", process.on) is None


def _leads_elsewhere(name: str, book: Directory) -> bool:
    """Whether a name has only addresses of a network near these hosts, and they have none of them."""
    meant = [ip_address(known) for each in book.meant(name) if (known := as_address(each))]
    return bool(meant) and not any(each.is_global or each.is_link_local for each in meant)


def _too_few_slots(names: LaunchNames) -> Iterator[Problem]:
    """The problem of more ranks than the hosts of a launcher have slots."""
    unnamed = any(slip.kind == "slotless" for slip in names.launch.slips)  # launch-command tells of it
    for process in names.launch.told if not unnamed else ():
        agent, slots = launcher(process), [*process.hosts.values()]
        ranks = agent.setting("ranks") if agent and agent.launcher.outer else None
        each = (
            agent.setting("each") if agent and any("npernode" in word for word in process.command) else None
        )
        slots = [each.value] * len(slots) if each and each.value else slots
        shown = [f"{host}:{number}" for host, number in zip(process.hosts, slots, strict=True)]
        if ranks and ranks.value and slots and all(slots) and ranks.value > sum(slots):
            yield _problem(
                names,
                [process],
                f"the launch is for {ranks.value} ranks, and its hosts have {sum(slots)} slots",
                "as many slots as ranks, or --oversubscribe",
                f"{_shown(ranks)}; {', '.join(shown[:8])}",
                remark(f"start {sum(slots)} ranks, or correct the slots"),
            )


def _not_divided(names: LaunchNames) -> Iterator[Problem]:
    """The problem of ranks that a launcher divides among the hosts and that leave a remainder."""
    for process in names.launch.told:
        agent = launcher(process)
        if agent is None or agent.launcher.outer:
            continue
        if "nproc_per_node" in agent.launcher.options.values.values():
            continue
        ranks, hosts = agent.setting("ranks"), agent.setting("nnodes")
        if not (ranks and hosts and ranks.value and hosts.value) or ranks.value % hosts.value == 0:
            continue
        each = ranks.value // hosts.value
        yield _problem(
            names,
            [process],
            f"{_shown(ranks)} cannot be divided among {hosts.value} hosts: {each} start on each",
            "the same number of ranks on each host: the launcher leaves out what it cannot divide",
            f"{_shown(ranks)}, {_shown(hosts)}: {each * hosts.value} ranks start",
            remark(f"give {(each + 1) * hosts.value} ranks, as many for each host"),
            severity=Severity.WARN if each else None,
        )


def _may_be_inherited(process: ProcessEnv) -> bool:
    """Whether a variable of the environment may say the number of hosts, because no option does."""
    agent = launcher(process)
    return agent is not None and bool(agent.launcher.options.variables) and agent.given("nnodes") is None


def _shown(number: LaunchNumber) -> str:
    given = number.said.startswith("-")
    return f"{number.said}={number.text}" if given else f"{number.text} by {number.said}"


def _hosts_option(process: ProcessEnv) -> str:
    agent = launcher(process)
    return agent.spelled("nnodes") if agent else "NNODES"


def _is_meant_for_each(told: Sequence[ProcessEnv]) -> bool:
    """Whether hosts may start different things: with a script for each, by a choice, or in a loop over hosts.

    A rank that a loop counts says nothing: it is a loop over the ranks of a host.
    """
    turns = (each.loop or (launcher(each) is not None and each.source.endswith(")")) for each in told)
    chosen = (each.chosen or each.host is not None for each in told)
    return len({file_of(each) for each in told}) > 1 or any(turns) or any(chosen)


def _one_host(
    names: LaunchNames, processes: Sequence[ProcessEnv], plan: JobPlan, said: str, option: str
) -> Problem:
    hosts = number = len(plan.hosts)
    agent = launcher(processes[0])
    each = agent.local_world.value if agent and agent.local_world else None
    if agent and each and "nnodes" not in agent.launcher.options.values.values():
        option, number = agent.spelled("ranks"), hosts * each  # msrun counts ranks alone
    return _problem(
        names,
        processes,
        f"the launch is for one host and {hosts} were named: each of them would train alone",
        f"one host, or a launch for {hosts}",
        f"{hosts}: {fold(plan.names)}; {said}",
        remark(f"start with {option}={number}, a master and node ranks; or name one host, or --need-hosts 1"),
    )


def _no_number(problem: Problem, hosts: int) -> Problem:
    """A warning in place of the problem of one host."""
    return replace(
        problem,
        summary=f"the launch may be for one host and {hosts} were named: each of them may train alone",
        severity=Severity.WARN,
        confidence=Confidence.SUSPECT,
    )


def _no_hosts(problem: Problem, hosts: int) -> Problem:
    """The problem of ranks that all start on one host, in place of that of a launch on each host."""
    return replace(
        problem,
        summary=f"the launch names no hosts and {hosts} were named: all its ranks start where it is started",
        confidence=Confidence.STRONG,
        commands=(
            remark(
                f"start with --hostfile and a file of the {hosts} hosts, also if an allocation or a default"
                " hostfile that the script does not name has them; or --need-hosts 1"
            ),
        ),
    )


def _same_on_every_host(names: LaunchNames, plan: JobPlan, needed: int) -> Iterator[Problem | str]:
    """The problem of one script for all hosts with numbers that belong to a single host."""
    told = names.launch.told
    if needed < 2 or not told or _is_meant_for_each(told):
        return
    numbered = {
        number.value: (process, number)
        for process in told
        if goes_by_node_rank(process) and (number := node_rank_of(process)) and number.value is not None
    }
    if len(numbered) == 1:
        ((value, (process, number)),) = numbered.items()
        if not process.command or names.launch.unread:
            yield f"{process.source} has {number.said}={value}, which is right on one host only"
            return
        yield _problem(
            names,
            [process],
            f"the script gives every host {number.said}={value}",
            f"a different {number.said} on each of {len(plan.hosts)} hosts",
            f"{number.said}={value}, for {fold(plan.names)}",
            _one_for_each(number.said, plan),
        )
    else:
        yield from _same_ranks(names, plan)


def _of_jax(names: LaunchNames, plan: JobPlan, needed: int) -> Iterator[Problem | str]:
    """The problems of processes of JAX that are not as many as they wait for, or share a number."""
    told, mentioned = names.launch.told, names.launch.mentioned
    counts = [each for each in mentioned if each.kind == "num_processes"]
    ids = [each for each in mentioned if each.kind == "process_id"]
    scripts = {file_of(each) for each in told}
    odd = any(launcher(each) or each.loop or each.chosen or each.apart or not each.command for each in told)
    if odd or len({each.text for each in counts}) != 1 or not counts[0].text.isdecimal():
        return
    size, hosts, each_starts = int(counts[0].text), len(plan.hosts), len(told)
    most, least = hosts * each_starts, max(1, needed) * each_starts
    if len(scripts) > 1:
        most = least = each_starts
    said = f"num_processes={size}, in line {counts[0].line} of {counts[0].file}"
    started = f"{most} {'process' if most == 1 else 'processes'}"
    if not least <= size <= most and hosts == 1:
        yield f"{told[0].source} is for {size} processes, and one host was examined"
    elif not least <= size <= most:
        lacking = size > most
        yield _problem(
            names,
            told[:1],
            f"the launch is for {size} processes, and {hosts} hosts start {most}: "
            + ("they wait for the others in vain" if lacking else "the surplus cannot join"),
            f"num_processes={most}, or as many hosts",
            f"{said}; {started} on {fold(plan.names)}",
            remark(f"num_processes={most}, or name the other hosts"),
        )
    numbers = [int(each.text) for each in ids if each.text.isdecimal()]
    if len(numbers) != len(ids) or len(numbers) != len(told) or size < 2:
        return
    twice = [number for number, times in Counter(numbers).items() if times > 1]
    beyond = [number for number in numbers if number >= size]
    alike = hosts > 1 and len(scripts) == 1
    if alike or twice or beyond:
        number = (beyond or twice or numbers)[0]
        yield _problem(
            names,
            told[:1],
            f"process_id={number} is beyond the processes of the launch"
            if beyond
            else f"the launch gives several processes process_id={number}",
            f"0 to {size - 1}, each once",
            f"process_id={number}, in line {ids[0].line} of {ids[0].file}"
            + (f", for {fold(plan.names)}" if alike else ""),
            _one_for_each("process_id", plan),
        )


def _one_for_each(option: str, plan: JobPlan) -> str:
    each = [f"{host}: {option}={at}" for at, host in enumerate(plan.names[:SHOWN])]
    each += ["…"] if plan.names[SHOWN:] else []
    return remark(f"{', '.join(each)}; or --launch with a script for each host")


def _unnumbered(
    names: LaunchNames,
    plan: JobPlan,
    needed: int,
    files: Mapping[str, Mapping[str, HostFile]],
    logins: Mapping[str, Environment],
    *,
    in_pods: bool,
) -> Iterator[Problem | str]:
    """The problem of a script for all hosts whose launcher counts them and is given no number of a node: it
    takes each for the first, or stops, unless the login of each has another number.
    """
    told = names.launch.told
    for process in told[:1] if needed > 1 and not _is_meant_for_each(told) else ():
        agent = launcher(process)
        if agent is None or not goes_by_node_rank(process) or agent.unknown("node_rank") or agent.node_rank:
            continue
        first = agent.launcher.first_node
        lacking = [] if first else _without_configuration(names.launch, plan, files)
        if not first and not lacking:
            continue
        option, variable = agent.spelled("node_rank"), f"{agent.launcher.options.variables}NODE_RANK"
        own = {host: logins[host].variables.get(variable, "") for host in plan.names if host in logins}
        given = any(own.values()) and variable != "NODE_RANK"
        same = grouped((own.get(host) or first, host) for host in plan.names)
        hosts = max(same.values(), key=len)
        unseen = names.launch.unread or process.apart or len(own) < len(plan.names)
        if unseen or (in_pods and not given):
            yield f"{process.source}: {option} is not given, which is right on one host only"
        elif not first and len(lacking) < len(plan.names):
            yield replace(
                _problem(
                    names,
                    [process],
                    f"the host has no {names.launch.configs[0]}, and the script gives no {option}",
                    f"{names.launch.configs[0]} with its own machine_rank, as on the other hosts",
                    f"there is no such file on {fold(lacking)}",
                    _one_for_each(option, plan),
                ),
                hosts=tuple(lacking),
                where=tuple(Place(host=host) for host in lacking),
            )
        elif len(hosts) > 1:
            number = own[hosts[0]] or first
            what = f"{variable}={number}" if own[hosts[0]] and given else f"no {option}"
            yield _problem(
                names,
                [process],
                "hosts take one number of a node from their logins: each of them is that node"
                if given
                else f"the script gives no {option}: every host is the first one"
                if first
                else f"the script gives no {option}: {agent.launcher.name} stops without it",
                f"a different {option} on each of {len(plan.hosts)} hosts",
                f"{what}, on {fold(hosts)}",
                _one_for_each(option, plan),
            )


def _without_configuration(
    launch: Launch, plan: JobPlan, files: Mapping[str, Mapping[str, HostFile]]
) -> Sequence[str]:
    """The hosts that lack the file that their launcher would read; none unless all are known."""
    if len(launch.configs) != 1 or launch.unread:
        return []
    place = launch.configs[0].removeprefix("~")
    found = {
        host: file.trouble
        for host in plan.names
        for path, file in files.get(host, {}).items()
        if path.endswith(place)
    }
    lacking = [host for host, trouble in found.items() if "no such file" in trouble]
    return lacking if len(found) == len(plan.names) else []


def _configured_on_hosts(
    launch: Launch, plan: JobPlan, files: Mapping[str, Mapping[str, HostFile]]
) -> Mapping[str, Mapping[str, str]]:
    """Host -> what its own copy of the launcher's configuration says; nothing unless all hosts are known."""
    if len({*launch.configs}) != 1:
        return {}
    place = launch.configs[0].removeprefix("~")
    if launch.unread and place.startswith("/.cache/"):
        return {}  # what was not read may name another place
    found = {
        host: dict(re.findall(r"(?m)^ *(\w+): *['\"]?(?!null\b)(\w+)", file.text))
        for host in plan.names
        for path, file in files.get(host, {}).items()
        if path.endswith(place) and file.text
    }
    return found if len(found) == len(plan.names) > 1 else {}


def _typed(launch: Launch) -> Mapping[str, str]:
    """The options of its command line. Those of a configuration that is here were put before them."""
    (told,), (path,) = launch.told, launch.configs
    agent = launcher(told)
    if agent is None:
        return {}
    here = path != agent.launcher.configuration and f"--{agent.launcher.options.file}" not in told.command
    names = [word.partition("=")[0].replace("-", "_") for word in told.command]
    least = {name: names.count(agent.spelled(name).replace("-", "_")) for name in ("nnodes", "node_rank")}
    return {name: said for name, said in agent.command.options.items() if not here or least.get(name, 2) > 1}


def _counts_machines(own: Mapping[str, str]) -> bool:
    """Whether each host is started with a number of its own: not if the first one starts the ranks of all,
    as DeepSpeed's launcher does unless told otherwise, and mpirun on CPUs, nor if they meet by c10d.
    """
    kind, hosts = own.get("distributed_type", ""), own.get("num_machines", "1")
    own_launcher = kind == "DEEPSPEED" and own.get("deepspeed_multinode_launcher") == "standard"
    alone = own_launcher or KINDS.match(kind)
    static = own.get("rdzv_backend", "static") == "static"
    return bool(alone) and static and "mpirun_config" not in own and hosts[:6].isdecimal() and hosts != "1"


def _same_by_configuration(
    names: LaunchNames, configured: Mapping[str, Mapping[str, str]], given: Mapping[str, str]
) -> Iterator[Problem]:
    """The problem of hosts whose configurations of the launcher have one number of a node; what is `given` on
    the command line comes before them.
    """
    (path,), told = names.launch.configs, names.launch.told
    if OTHERWISE & given.keys():
        return
    first = {BY_LAUNCHER[name]: said for name, said in given.items() if name in BY_LAUNCHER}
    used = {host: {**own, **first} for host, own in configured.items()}
    numbers = {host: own.get("machine_rank", "0") for host, own in used.items()}
    same = [hosts for hosts in grouped((n, host) for host, n in numbers.items()).values() if len(hosts) > 1]
    if same and all(map(_counts_machines, used.values())):
        yield _problem(
            names,
            told,
            f"{path} has one machine_rank on several hosts",
            "a machine_rank of its own on every host",
            f"machine_rank: {numbers[same[0][0]][:6]}, on {fold(same[0])}",
            remark(f"machine_rank 0 on the first host, 1 on the second, in {path}"),
        )


def _nobody_to_meet(names: LaunchNames, configured: Mapping[str, Mapping[str, str]]) -> Iterator[Problem]:
    """The problem of a launcher for several machines that is told nowhere where they meet."""
    path, *_ = (*names.launch.configs, "")
    given = [agent.command.options for each in names.launch.told if (agent := launcher(each))]
    if not given or any({"master_addr", *OTHERWISE} & own.keys() for own in given):
        return
    first = {BY_LAUNCHER[name]: said for name, said in given[0].items() if name in BY_LAUNCHER}
    used = [{**own, **first} for own in configured.values()]
    if used and all(_counts_machines(own) and "main_process_ip" not in own for own in used):
        yield _problem(
            names,
            names.launch.told,
            f"neither {path} nor the script gives a main_process_ip: no host finds another",
            "the address of the first host",
            f"num_machines: {used[0]['num_machines'][:6]}, and no main_process_ip",
            remark(f"main_process_ip: the address of the first host, in {path}"),
        )


def _numbered_by_name(names: LaunchNames, plan: JobPlan, identities: Mapping[str, str]) -> Iterator[Problem]:
    """The problem of node ranks that are what the names of the hosts end with, if these do not begin at 0."""
    for process in names.launch.told:
        agent = launcher(process)
        said = agent.command.options.get("node_rank", "") if agent else ""
        if not (agent and goes_by_node_rank(process)) or agent.nodes != (len(plan.hosts),) * 2:
            continue
        by_host = names.launch.by_host
        numbers = by_host.numbers(plan.names, identities) if by_host else {}
        if numbers and all(each.isdecimal() for each in numbers.values()):
            found = sorted(map(int, numbers.values()))
            if len({*found}) == len(found) and found != [*range(len(found))]:
                option = agent.spelled("node_rank")
                yield _problem(
                    names,
                    [process],
                    "the names of the hosts give node ranks that are not 0, 1 and so on",
                    f"{option} 0, 1 and so on",
                    some([f"{option}={number} on {host}" for host, number in numbers.items()]),
                    remark(f"{option}=$((10#{said}-{found[0]}))"),
                )


def _all_nodes_here(names: LaunchNames, plan: JobPlan) -> Iterator[Problem]:
    """The problem of a loop that starts the launchers of all hosts on its own."""
    told = names.launch.told
    agents = [agent for each in told if (agent := launcher(each))]
    turns = all(each.source.endswith(")") and not (each.apart or each.chosen or each.host) for each in told)
    given = {number.value for agent in agents if (number := agent.node_rank)}
    sizes = {agent.nodes for agent in agents if goes_by_node_rank(told[0]) and not agent.command.inside}
    size = len(agents)
    if (
        plan.several_hosts
        and turns
        and size == len(told) > 1
        and sizes == {(size, size)} == {(len(given),) * 2}
    ):
        yield _problem(
            names,
            told,
            f"the loop starts the launchers of all {size} hosts on the host that runs it",
            "one launcher on each host",
            f"{agents[0].spelled('node_rank')} 0 to {size - 1} on one of {fold(plan.names)}",
            remark("start each by ssh or srun on its own host"),
        )


def _nodes_left_out(names: LaunchNames, plan: JobPlan) -> Iterator[Problem]:
    """The problem of a loop over hosts that starts no launcher of some node ranks."""
    told = names.launch.told
    agents = [agent for each in told if (agent := launcher(each)) and goes_by_node_rank(each)]
    given = {number.value for agent in agents if (number := agent.node_rank)}
    sizes = {agent.nodes for agent in agents}
    sure = len(agents) == len(told) == len(given) and not names.launch.unread
    sure = sure and all(each.on and not each.chosen for each in told)
    if not sure or sizes != {(len(plan.hosts),) * 2} or len(given) >= len(plan.hosts):
        return
    lost = ", ".join(map(str, sorted({*range(len(plan.hosts))} - given)))
    option = agents[0].spelled("node_rank")
    pairs = zip(agents, told, strict=True)
    starts = [f"{option}={agent.command.options['node_rank']} on {one.on}" for agent, one in pairs]
    yield _problem(
        names,
        told,
        f"the script starts no launcher of node {lost}: the others wait for it",
        f"{option} 0, 1 and so on",
        some(starts),
        remark(f"let the loop begin at the first host and reach the last, or start node {lost} by itself"),
        severity=Severity.WARN,
    )


def _one_address(names: LaunchNames, plan: JobPlan) -> Iterator[Problem]:
    """The problem of one script for all hosts that gives each the address of one of them or of nobody."""
    told = names.launch.told
    if set(plan.names) <= names.directory.held.keys():
        for name in OF_ONE_HOST:
            address = as_address(plan.env.get(name, ""))
            if address and not names.directory.owners(address) and not is_loopback_name(address):
                yield _problem(
                    names,
                    [each for each in told if name in each.env],
                    f"{name} is an address that no host has: no rank can listen there",
                    "an address of its own on every host",
                    f"{name}={address}{f', in {line}' if (line := plan.lines.get(name)) else ''}",
                    remark(f"find {name} in the script by the interface of each host"),
                )
    if _is_meant_for_each(told):
        return
    for process in told:
        agent = launcher(process)
        if agent is None or not (goes_by_node_rank(process) and agent.unknown("node_rank")):
            continue  # a number that is fixed as well is reported as such, or hosts have scripts of their own
        for name in OF_ONE_HOST:
            address = as_address(process.env.get(name, ""))
            owners = names.directory.owners(address) if address else frozenset()
            others = [host for host in plan.names if host not in owners]
            if len(owners) == 1 and others:
                yield _problem(
                    names,
                    [process],
                    f"the script gives every host one {name}: only one of them has that address",
                    "an address of its own on every host",
                    f"{name}={address}, of {fold(owners)} and not of {fold(others)}",
                    remark(f"find {name} in the script by the interface of each host"),
                )


def _same_ranks(names: LaunchNames, plan: JobPlan) -> Iterator[Problem]:
    """The problem of a script that starts ranks with fixed numbers, only some of the job's or all of them."""
    told, world = names.launch.told, world_said(names.launch)
    if world is None or world.value is None or any(launcher(each) or not each.command for each in told):
        return
    ranks = [each for each in told if role_of(each) == "rank"]
    found = (rank.value for each in ranks if each.seat is None and (rank := rank_of(each)))
    numbers = {number for number in found if number is not None}
    rest = sorted({*range(world.value)} - numbers)
    if len(numbers) != len(ranks) or len(numbers) + len(rest) != world.value:
        return  # some are unknown, or wrong in another way
    started = counted(numbers)
    if rest:
        yield _problem(
            names,
            ranks,
            f"the script starts {started} of {world.value} on every host",
            f"other ranks on each of {len(plan.hosts)} hosts",
            f"{started} on {fold(plan.names)}; {counted(rest)} nowhere",
            remark(
                "count the ranks of a host from a number that is set on each; or --launch with all scripts"
            ),
        )
    elif not any(each.apart or each.chosen for each in ranks):
        all_here = _one_host(names, ranks, plan, f"{started} of {world.said}={world.text}", world.said)
        summary = "the script starts all ranks of the job on the host that runs it"
        alone = _meet_on_their_host(ranks)
        yield all_here if alone else replace(all_here, summary=summary, severity=Severity.WARN)


def _meet_on_their_host(ranks: Sequence[ProcessEnv]) -> bool:
    masters = [master_of(each) for each in ranks]
    return all(master is not None and is_loopback_name(master.address) for master in masters)


def _problem(
    names: LaunchNames,
    processes: Sequence[ProcessEnv],
    summary: str,
    expected: str,
    actual: str,
    command: str,
    severity: Severity | None = None,
) -> Problem:
    shown = processes[:3]
    return Problem(
        summary,
        expected=expected,
        actual=actual,
        subject=names.subject("hosts"),
        severity=severity,
        evidence=tuple(Evidence(names.label(each), _words(each)) for each in shown),
        commands=(command,),
    )


def _words(process: ProcessEnv) -> str:
    return " ".join(process.command)[:300] or ", ".join(f"{n}={v}" for n, v in process.env.items())[:300]

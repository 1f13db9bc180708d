"""Kernel settings and limits that decide whether many ranks can connect at once."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from doctor.api import (
    EXPECT,
    HERE,
    PLAN,
    RANKS,
    Backend,
    Confidence,
    Damage,
    Evidence,
    Expect,
    Here,
    JobPlan,
    Place,
    Problem,
    Severity,
    Skip,
    Sphere,
    check,
    maybe,
)
from doctor.facts.job import LAUNCHES
from doctor.facts.limits import (
    INFINITE,
    LIMITS,
    NEIGHBOURS,
    PORTS,
    RDMA,
    Limits,
    Ports,
    port_list,
    ranges,
)
from doctor.facts.memory import MB, SWAP, Swap
from doctor.facts.network import LISTENERS, BoundPort
from doctor.facts.run import MESH
from doctor.facts.software import VERSIONS, Versions, cann_version
from doctor.facts.system import KERNEL, TUNING, Kernel
from doctor.job.launch.process_env import Launch
from doctor.job.plan import HCCL_PORTS_UP_TO_8_0
from doctor.mesh import MeshResult


def _sysctl(name: str, text: str) -> Evidence:
    return Evidence(f"/proc/sys/{name.replace('.', '/')}", text)


def _short(
    summary: str, setting: str, length: int, wished: int, plan: JobPlan, here: Here
) -> Iterator[Problem]:
    """The problem of a queue that is too short for the ranks, or for a number that was wished.

    It is a fault on the head, which takes the connections of all ranks, if it is too short for those that are
    known to start; a warning elsewhere, and if ranks were only counted by the devices found.
    """
    need, known = wished or plan.world.value, wished or plan.known_world
    for_ranks = "" if wished else f", for {plan.world.value} ranks ({plan.world.source})"
    if length < need:
        yield Problem(
            summary,
            expected=f"{setting} of {need} or more{for_ranks}",
            actual=str(length),
            severity=Severity.FAIL if here.is_head and length < known else Severity.WARN,
            evidence=(_sysctl(setting, str(length)),),
            values={"value": max(need, 65535)},
        )


@dataclass(frozen=True, slots=True)
class CpuPace:
    """Settings that make a host slow: governor -> number of CPUs, and NUMA balancing."""

    governors: Mapping[str, int]
    numa_balancing: bool
    numa_nodes: int


def pace_of(found: Mapping[str, str]) -> CpuPace:
    governors = Counter(text.strip() for path, text in found.items() if path.endswith("/scaling_governor"))
    del governors[""]
    nodes = sum(len(part) for part in ranges(found.get("/sys/devices/system/node/online", "0")))
    return CpuPace(
        governors, found.get("/proc/sys/kernel/numa_balancing", "0").strip() not in ("", "0"), nodes
    )


@check(
    "somaxconn-low",
    PORTS,
    PLAN,
    HERE,
    EXPECT,
    damage=Damage.LOAD,
    remedy="raise-somaxconn",
    sphere=Sphere.NETWORK,
)
def somaxconn_low(ports: Ports, plan: JobPlan, here: Here, expect: Expect) -> Iterator[Problem]:
    """Fewer connections can wait to be accepted than ranks will connect at start.

    Why it matters: at start every rank connects to the head at once. Connections beyond net.core.somaxconn
    are dropped and retried after seconds, or the start fails. The stock value is enough for a small job.
    It is a fault on the head if the ranks of the job are known (from flags, the launch, the scheduler or a
    rank table), and a warning elsewhere or if devices were only counted: a sweep of all hosts is not a job.

    What to do: raise net.core.somaxconn, on the head above all. Huawei's advice for large clusters is 65535.
    """
    summary = "the queue for new connections is shorter than the number of ranks"
    yield from _short(summary, "net.core.somaxconn", ports.somaxconn, expect.somaxconn, plan, here)


@check(
    "syn-backlog-low",
    PORTS,
    PLAN,
    HERE,
    EXPECT,
    damage=Damage.LOAD,
    remedy="raise-syn-backlog",
    sphere=Sphere.NETWORK,
)
def syn_backlog_low(ports: Ports, plan: JobPlan, here: Here, expect: Expect) -> Iterator[Problem]:
    """Fewer half-open connections can be kept than ranks will connect at start.

    Why it matters: as for somaxconn-low, one step earlier: first packets beyond
    net.ipv4.tcp_max_syn_backlog are dropped while all ranks connect to the head. It is a fault or a warning
    as there.

    What to do: raise net.ipv4.tcp_max_syn_backlog, on the head above all. Huawei's advice for large clusters
    is 65535.
    """
    summary, setting = (
        "the queue for half-open connections is shorter than the number of ranks",
        "net.ipv4.tcp_max_syn_backlog",
    )
    yield from _short(summary, setting, ports.syn_backlog, expect.syn_backlog, plan, here)


Unreserved = tuple[Sequence[range], str]
"""Ports, and whose they are."""


@check(
    "ports-not-reserved",
    PORTS,
    PLAN,
    HERE,
    maybe(VERSIONS),
    damage=Damage.RISK,
    severity=Severity.WARN,
    remedy="reserve-ports",
    sphere=Sphere.NETWORK,
)
def ports_not_reserved(
    ports: Ports, plan: JobPlan, here: Here, versions: Versions | None
) -> Iterator[Problem]:
    """A port that the job needs may be given away by the kernel before the job binds it.

    Why it matters: the ephemeral range of most systems, 32768-60999, overlaps HCCL's ports, 60000-60031 or,
    up to CANN 8.0, 60000-60015. Any program that connects somewhere can get one of them as its source port,
    and HCCL then sometimes fails with "bind fail, error 98". The same holds for a master port inside the
    ephemeral range. Without devices, rank r of MindSpore listens on 8118 + 256 r, or on the next free port,
    which a firewall may close. That a port may be given away is a warning; one that was given away is the
    fault port-in-use.

    What to do: put the ports into net.ipv4.ip_local_reserved_ports: programs that name a port still get it,
    the kernel no longer gives it away. The command in the remedy keeps what is reserved already.
    """
    wanted: list[Unreserved] = []
    if plan.backend.value is Backend.HCCL:
        wanted += _hccl_unreserved(ports, plan.hccl_ports, cann_version(versions))
    if lost := [*filter(ports.may_give_away, plan.mccl_ports.get(here.name, ()))]:
        wanted.append(([range(port, port + 1) for port in lost], "MindSpore's ports"))
    master = plan.master_port.value
    if here.is_head and not plan.master_port_drawn and ports.may_give_away(master):
        wanted.append(([range(master, master + 1)], "the master port"))
    together = port_list([*ports.reserved, *(one for each, _ in wanted for one in each)])
    for each, what in wanted:
        yield _unreserved(ports, each, what, together)


def _hccl_unreserved(ports: Ports, latest: range, cann: tuple[int, int] | None) -> Iterator[Unreserved]:
    """`latest` are the ports of the latest CANN."""
    first = latest[:HCCL_PORTS_UP_TO_8_0]
    taken = first if cann and cann <= (8, 0) else latest
    sure = taken if cann else first
    if any(map(ports.may_give_away, sure)):
        yield [taken], "HCCL's ports"
    elif any(map(ports.may_give_away, taken)):
        what = "the ports that HCCL takes as well if CANN is later than 8.0 (its version is not known)"
        yield [taken[len(sure) :]], what


def _unreserved(ports: Ports, wanted: Sequence[range], what: str, together: str) -> Problem:
    reserved, span = port_list(ports.reserved), port_list([ports.ephemeral]) or "empty"
    return Problem(
        f"the kernel may give {what} to any other program",
        expected=f"{port_list(wanted)} in net.ipv4.ip_local_reserved_ports",
        actual=f"reserved: {reserved or 'nothing'}; the ephemeral range is {span}",
        subject=f"port {port_list(wanted)}",
        where=(Place(port=next(filter(ports.may_give_away, chain(*wanted)))),),
        evidence=(
            _sysctl("net.ipv4.ip_local_reserved_ports", reserved or "(empty)"),
            _sysctl("net.ipv4.ip_local_port_range", span),
        ),
        values={"ports": together},
    )


PORTS_OF_A_RANK = 8
"""With fewer ports, ranks that join two groups fail to start: 2 connections to the master, and in each of the
two groups a listener and connections to 2 neighbours. Connections to several peers may share one port.
"""


@check(
    "ephemeral-ports-few",
    PORTS,
    RANKS,
    damage=Damage.LOAD,
    remedy="widen-port-range",
    sphere=Sphere.NETWORK,
)
def ephemeral_ports_few(ports: Ports, ranks: int) -> Iterator[Problem]:
    """The kernel has too few ports to give the job's connections.

    Why it matters: each listener of a rank that names no port, and each of its connections to the master,
    takes a port of net.ipv4.ip_local_port_range. When none is left, a rank stops with "cannot assign
    requested address", or gloo cannot resolve an address of the host's own.

    How it is known: a rank takes at least 8 ports: 2 connections to the master, and in each of two process
    groups a listener and connections to 2 neighbours. Reserved ports inside the range are not given away.

    What to do: widen net.ipv4.ip_local_port_range. The usual range is 32768-60999.
    """
    given = ports.ephemeral
    inside = (range(max(given.start, each.start), min(given.stop, each.stop)) for each in ports.reserved)
    need, reserved = ranks * PORTS_OF_A_RANK, len(set().union(*inside))
    free = len(given) - reserved
    if free < need:
        span = port_list([given]) or "empty"
        less = f", less {reserved} reserved" if reserved else ""
        yield Problem(
            "the kernel has too few ports to give the job's connections",
            expected=f"at least {need} ports: {ranks} ranks here, {PORTS_OF_A_RANK} for each",
            actual=f"{free} ports: {span} is {len(given)}{less}",
            confidence=Confidence.STRONG,
            evidence=(
                _sysctl("net.ipv4.ip_local_port_range", span),
                _sysctl("net.ipv4.ip_local_reserved_ports", port_list(ports.reserved) or "(empty)"),
            ),
        )


_ONLY_DEFAULT = " (it is only the default: with --master-port this would be a fault)"


@check(
    "port-in-use",
    LISTENERS,
    PLAN,
    HERE,
    maybe(LAUNCHES),
    maybe(PORTS),
    maybe(MESH),
    damage=Damage.BLOCKED,
    remedy="free-port",
    sphere=Sphere.NETWORK,
)
def port_in_use(
    listeners: tuple[BoundPort, ...],
    plan: JobPlan,
    here: Here,
    launches: tuple[Launch, ...] | None,
    ports: Ports | None,
    mesh: MeshResult | None,
) -> Iterator[Problem]:
    """A port that the job will bind is already bound by another process, or is for root only.

    Why it matters: the job fails at start with "address already in use" or "permission denied", or its ranks
    join the rendezvous of another job. A port that the kernel gave to a connection of another process is
    taken too, until that connection ends.

    What to do: end the process if it is a leftover, or give the job another port (--master-port here,
    MASTER_PORT or HCCL_IF_BASE_PORT in the launch). When nobody chose the port, this is a warning only.

    A job that is examined while it runs (--launch live, --in-job) holds its own ports, and is not accused of
    it.
    """
    own_pids = {
        each.pid
        for launch in launches or ()
        for each in launch.told
        if launch.live and each.host == here.name and each.pid is not None
    }
    own, wanted = plan.data_address(here.name), _to_bind(plan, here, ports)
    doors = [door for door in mesh.listeners if door.host == here.name] if mesh else []
    refused = {door.asked: door for door in doors if door.error == "in-use" and door.asked in wanted}
    told: set[int] = set()
    for listener in sorted(listeners, key=lambda each: each.peer != ""):
        given = ports is not None and ports.may_give_away(listener.port)
        if listener.peer and not given and listener.port not in refused:
            continue  # a server's end, which holds no port against its next listener
        everywhere = here.is_head and listener.port == plan.master_port.value  # torch binds every address
        if listener.port not in wanted or listener.port in told or not (everywhere or listener.covers(own)):
            continue
        told.add(listener.port)
        if own_pids & {*listener.pids}:
            continue
        by = f" by {listener.process}" if listener.process else ""
        bound = f"{listener.address}:{listener.port}"
        actual = f"{bound} is bound{by}"
        if listener.peer:
            how = "the kernel gave it to" if given else "it is held by"
            actual = f"{how} {listener.process or 'a program'}, connected to {listener.peer}"
        evidence = Evidence("/proc/net/tcp", f"{bound} {listener.process}".strip())
        yield _taken(listener.port, by, actual, evidence, wanted)
    for port in refused.keys() - told:
        actual = "bind fails: a program or a connection that was just closed holds it"
        evidence = Evidence(f"bind port {port}", refused[port].detail or "address already in use")
        yield _taken(port, "", actual, evidence, wanted)
    for door in doors:
        if door.kind != "ephemeral" and door.error == "denied":
            yield Problem(
                f"port {door.asked}, which the job will bind, is for root only",
                expected="a port that is not kept for root",
                actual=f"permission denied {door.detail}".strip(),
                subject=f"port {door.asked}",
                where=(Place(port=door.asked),),
                severity=wanted.get(door.asked),
                evidence=(Evidence(f"bind port {door.asked}", "permission denied"),),
                commands=("# name a port above 1023: MASTER_PORT in the launch, --master-port here",),
            )


def _to_bind(plan: JobPlan, here: Here, ports: Ports | None) -> dict[int, Severity]:
    """The ports that the job will bind on this host, and how grave it is if one of them is taken."""
    wanted: dict[int, Severity] = {}
    if plan.backend.value is Backend.HCCL:
        wanted |= dict.fromkeys(plan.hccl_ports, Severity.FAIL)
    guessed = plan.master_port_guessed
    drawn = guessed or (ports is not None and plan.master_port.value in ports.ephemeral)
    if here.is_head and not plan.master_port_held and not (drawn and plan.master_port_drawn):
        wanted[plan.master_port.value] = Severity.WARN if guessed else Severity.FAIL
    return wanted


def _taken(port: int, by: str, actual: str, evidence: Evidence, wanted: Mapping[int, Severity]) -> Problem:
    return Problem(
        f"port {port}, which the job will bind, is taken{by}",
        expected="a free port" + ("" if wanted[port] is Severity.FAIL else _ONLY_DEFAULT),
        actual=actual,
        subject=f"port {port}",
        where=(Place(port=port),),
        severity=wanted[port],
        evidence=(evidence,),
        values={"port": port},
    )


@check("nofile-low", LIMITS, PLAN, EXPECT, damage=Damage.LOAD, severity=Severity.WARN, remedy="raise-nofile")
def nofile_low(limits: Limits, plan: JobPlan, expect: Expect) -> Iterator[Problem]:
    """A login may open too few files for the job's connections.

    Why it matters: every connection to another rank is an open file. Beyond the limit connections fail with
    errno 24, "too many open files", often hours into a run when data loaders open theirs.

    What to do: raise the limit (ulimit -n) for non-interactive logins (/etc/security/limits.d, LimitNOFILE of
    sshd or slurmd), then log in again. Ascend requires at least 2048, and 100000 in large clusters.
    """
    least = 2048 if plan.backend.value is Backend.HCCL else 1024
    need = expect.nofile or max(least, 4 * plan.ranks)
    if limits.nofile < need:
        yield _limit("open files", "Max open files", limits.nofile, need)


@check("nproc-low", LIMITS, RANKS, EXPECT, damage=Damage.LOAD, severity=Severity.WARN, remedy="raise-nproc")
def nproc_low(limits: Limits, ranks: int, expect: Expect) -> Iterator[Problem]:
    """A login may start too few processes and threads for the ranks on the host.

    Why it matters: each rank runs tens to hundreds of threads, and data loaders add processes. Beyond the
    limit, fork fails with "Resource temporarily unavailable".

    What to do: raise the limit (ulimit -u) for non-interactive logins (/etc/security/limits.d, TasksMax), log
    in again.
    """
    need = expect.nproc or 1024 + 256 * ranks
    if limits.nproc < need:
        yield _limit("processes", "Max processes", limits.nproc, need)


@check(
    "memlock-low", LIMITS, RDMA, EXPECT, damage=Damage.LOAD, severity=Severity.WARN, remedy="raise-memlock"
)
def memlock_low(limits: Limits, rdma: tuple[str, ...], expect: Expect) -> Iterator[Problem]:
    """A login may lock too little memory for RDMA.

    Why it matters: InfiniBand and RoCE register memory by locking it. Under a small limit, ibv_reg_mr or
    ibv_create_cq fails and NCCL falls back or stops.

    What to do: set memlock (ulimit -l) to unlimited for non-interactive logins, or --ulimit memlock=-1 for a
    container.
    """
    if not rdma:
        raise Skip("the host has no RDMA device")
    if limits.memlock < expect.memlock_mb * MB:
        yield Problem(
            "too little memory may be locked for RDMA",
            expected=f"unlimited, or {expect.memlock_mb} MB at least",
            actual=f"{limits.memlock // 1024} kB",
            evidence=(
                Evidence("/proc/self/limits", f"Max locked memory {limits.memlock}"),
                Evidence("/sys/class/infiniband", " ".join(rdma)),
            ),
        )


def _limit(what: str, line: str, actual: int, need: int) -> Problem:
    return Problem(
        f"a login may have too few {what} for the job",
        expected=f"{need} or more",
        actual="unlimited" if actual >= INFINITE else str(actual),
        evidence=(Evidence("/proc/self/limits", f"{line}: {actual}"),),
        values={"value": max(need, 65535)},
    )


@check(
    "arp-table-small",
    NEIGHBOURS,
    PLAN,
    EXPECT,
    damage=Damage.LOAD,
    severity=Severity.WARN,
    remedy="grow-arp-table",
    sphere=Sphere.NETWORK,
)
def arp_table_small(neighbours: int | None, plan: JobPlan, expect: Expect) -> Iterator[Problem]:
    """The kernel's neighbour table is smaller than the cluster.

    Why it matters: a host that communicates with more neighbours than gc_thresh3 forgets some of them all the
    time: single packets and new connections fail here and there ("neighbour table overflow").

    What to do: raise net.ipv4.neigh.default.gc_thresh1, gc_thresh2 and gc_thresh3 together.
    """
    need, why = expect.arp_hosts, ""
    if not need:
        need, why = _hosts_of_job(plan)
    if neighbours is None:
        raise Skip("the table's size is not shown in a container or network namespace")
    if neighbours < need:
        yield Problem(
            "the neighbour (ARP) table is smaller than the cluster",
            expected=f"net.ipv4.neigh.default.gc_thresh3 of {need} or more{why}",
            actual=str(neighbours),
            evidence=(_sysctl("net.ipv4.neigh.default.gc_thresh3", str(neighbours)),),
            values={"low": need, "middle": 2 * need, "high": 4 * need},
        )


def _hosts_of_job(plan: JobPlan) -> tuple[int, str]:
    """The number of hosts of the whole job if each has as many ranks as the fullest one, and why."""
    examined, world, on_each = len(plan.hosts), plan.world, plan.fullest
    needed = -(-world.value // on_each) if on_each else 0
    if needed <= examined:
        return examined, f", for {examined} examined hosts"
    return needed, f", for {needed} hosts ({world.value} ranks, {world.source}, at {on_each} on each host)"


@check("kernel-not-smp", KERNEL, damage=Damage.LOAD, backends=(Backend.HCCL,), sphere=Sphere.HOST)
def kernel_not_smp(kernel: Kernel) -> Iterator[Problem]:
    """The kernel was built without SMP.

    Why it matters: HCCL needs a kernel with symmetric multiprocessing.

    What to do: boot the distribution's ordinary kernel.
    """
    if not kernel.version:
        raise Skip("the kernel does not show how it was built")
    if not kernel.smp:
        yield Problem(
            "the kernel was built without SMP, which HCCL needs",
            expected="SMP in the kernel's version",
            actual=kernel.version,
            evidence=(_sysctl("kernel.version", kernel.version),),
            commands=("# Boot the ordinary kernel of the distribution.",),
        )


@check(
    "cpu-governor",
    TUNING,
    EXPECT,
    damage=Damage.LOAD,
    severity=Severity.WARN,
    remedy="set-governor",
    sphere=Sphere.HOST,
)
def cpu_governor(found: Mapping[str, str], expect: Expect) -> Iterator[Problem]:
    """CPUs save power instead of running at full speed.

    Why it matters: one host that clocks its CPUs down makes every collective of the job wait for it.

    What to do: set the governor to performance, and keep it there (cpupower service, tuned profile).
    """
    pace = pace_of(found)
    other = {name: count for name, count in pace.governors.items() if name != expect.cpu_governor}
    if other:
        yield Problem(
            "CPUs are not kept at full speed",
            expected=f"governor {expect.cpu_governor}",
            actual=", ".join(f"{name} on {count} CPUs" for name, count in sorted(other.items())),
            evidence=(
                Evidence(
                    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
                    ", ".join(f"{name}: {count}" for name, count in sorted(pace.governors.items())),
                ),
            ),
            values={"governor": expect.cpu_governor},
        )


@check(
    "numa-balancing",
    TUNING,
    damage=Damage.LOAD,
    severity=Severity.WARN,
    remedy="stop-numa-balancing",
    sphere=Sphere.HOST,
)
def numa_balancing(found: Mapping[str, str]) -> Iterator[Problem]:
    """The kernel moves memory between NUMA nodes on its own.

    Why it matters: automatic NUMA balancing unmaps pages to see which CPUs use them. The page faults show as
    jitter in every step, and pinned ranks gain nothing from it.

    What to do: switch it off on hosts that train.
    """
    pace = pace_of(found)
    if pace.numa_balancing and pace.numa_nodes > 1:
        yield Problem(
            "automatic NUMA balancing is on",
            expected="kernel.numa_balancing = 0 on a host with several NUMA nodes",
            actual=f"on, {pace.numa_nodes} NUMA nodes",
            evidence=(_sysctl("kernel.numa_balancing", "not 0"),),
        )


@check(
    "swap-active",
    SWAP,
    EXPECT,
    damage=Damage.LOAD,
    severity=Severity.WARN,
    remedy="stop-swap",
    sphere=Sphere.HOST,
)
def swap_active(swap: Swap, expect: Expect) -> Iterator[Problem]:
    """Memory is being swapped out.

    Why it matters: a rank whose pages are on disk stalls, and the whole job waits for it. Swap space that
    is not used is not a fault.

    What to do: find the process that used up the memory, then switch swap off for the job.
    """
    if swap.used > expect.swap_used_mb * MB:
        yield Problem(
            "swap is in use",
            expected=f"at most {expect.swap_used_mb} MB of swap used",
            actual=f"{swap.used // MB} MB of {swap.total // MB} MB used",
            evidence=(Evidence("/proc/swaps", f"{', '.join(swap.devices)}: {swap.used // MB} MB used"),),
        )

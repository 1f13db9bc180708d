"""Interfaces and routes: whether the job's traffic takes the intended interface."""

from collections.abc import Iterator, Mapping
from shlex import quote

from doctor.api import (
    EXPECT,
    HERE,
    INTERFACE_VARIABLES,
    NO_ACCELERATOR,
    PLAN,
    Backend,
    Damage,
    Evidence,
    Expect,
    Here,
    JobPlan,
    Problem,
    Scope,
    Severity,
    Sphere,
    Undecided,
    check,
    is_loopback,
    maybe,
    missing_interfaces,
)
from doctor.facts.ascend.network import HCCN_CONF
from doctor.facts.network import ADDRESSES, LINKS, ROUTES, UNNAMED, Counters, Routes
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.facts.system import DEVICES, Devices
from doctor.rules.devices import odd_ones
from doctor.rules.launch_names import remark
from doctor.rules.login import START_FILES, environment_of
from doctor.rules.machines import votes_of
from doctor.rules.npu_segments import by_product


@check(
    "interface-missing",
    ADDRESSES,
    maybe(ENVIRONMENT),
    PLAN,
    HERE,
    damage=Damage.BLOCKED,
    sphere=Sphere.NETWORK,
)
def interface_missing(
    addresses: Mapping[str, tuple[str, ...]], login: Environment | None, plan: JobPlan, here: Here
) -> Iterator[Problem]:
    """The launch or the login names an interface or address that this host does not have.

    Why it matters: GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME, HCCL_SOCKET_IFNAME and HCCL_IF_IP are taken
    literally. A host whose interface has a different name finds no address to bind, and its ranks stop. Ranks
    inherit the variables of the login unless the launch sets others. The variable of NCCL or HCCL is a
    warning if the job is known to use the other library or only gloo.

    What to do: use a name that fits every host, or set the variable per host. HCCL and NCCL also take a
    prefix (`eth`) or what to exclude (`^docker,lo`); gloo takes exact names only. What no host has is a fault
    of the launch or of the logins, in the line that sets it, and no host is blamed.
    """
    if UNNAMED in addresses:
        raise Undecided(
            "the names of the interfaces are not known: neither ip nor Perl nor Python is installed there"
        )
    shown = ", ".join(sorted(addresses))
    env = environment_of(plan, login)
    for variable in INTERFACE_VARIABLES:
        wish = env.get(variable, "")
        if absent := missing_interfaces(variable, wish, addresses):
            unread = _is_unread(variable, plan)
            yield _missing(variable, wish, absent, shown, here, plan, unread=unread)
    ip, of_login = env.get("HCCL_IF_IP"), "HCCL_IF_IP" not in plan.env
    if ip and (of_login or not plan.several_hosts) and not any(ip in held for held in addresses.values()):
        held = ", ".join(sorted(a for held in addresses.values() for a in held))
        unread = _is_unread("HCCL_IF_IP", plan)
        yield _missing("HCCL_IF_IP", ip, ip, held, here, plan, unread=unread)
    data = plan.host(here.name).data
    if data and data.source == "inventory" and not any(data.value in held for held in addresses.values()):
        yield _missing("the inventory's data address", data.value, data.value, shown, here, plan)


def _is_unread(variable: str, plan: JobPlan) -> bool:
    """Whether the job's library does not read it. Jobs over NCCL and HCCL use gloo as well; a host that shows
    no accelerator does not say that its jobs use none.
    """
    if variable.startswith(("GLOO", plan.backend.value.value.upper())):
        return False
    return plan.backend.source != NO_ACCELERATOR


def _missing(
    what: str,
    wish: str,
    absent: str,
    shown: str,
    here: Here,
    plan: JobPlan,
    *,
    unread: bool = False,
) -> Problem:
    login_sets, line = what.isupper() and what not in plan.env, plan.lines.get(what)
    named = f"{what} of the login's environment" if login_sets else what
    set_in = (Evidence(line, f"{what}={wish}"),) if line and not login_sets else ()
    return Problem(
        f"{named} names {absent}, which this host does not have",
        expected=f"an interface or address that fits {wish}",
        actual=f"there are {shown}",
        subject=f"{what}={wish}" if what.isupper() else what,
        severity=Severity.WARN if unread else None,
        evidence=(*set_in, Evidence("ip -o addr show", shown)),
        commands=(
            remark(f"name one of these{f' in {line}' if set_in else ''}: {shown}"),
            *((f"ssh {quote(here.name)} 'grep -rsn {what} {START_FILES}'",) if login_sets else ()),
        ),
        of_all=f"{named} names {absent}, which no host has" if what.isupper() else "",
    )


@check(
    "route-wrong-interface",
    ROUTES,
    ADDRESSES,
    PLAN,
    HERE,
    damage=Damage.LOAD,
    causes=("interface-missing", "route-leads-nowhere"),
    severity=Severity.WARN,
    several_hosts=True,
    sphere=Sphere.NETWORK,
)
def route_wrong_interface(
    routes: Routes, addresses: Mapping[str, tuple[str, ...]], plan: JobPlan, here: Here
) -> Iterator[Problem]:
    """Traffic to the head leaves by a different interface from the job's.

    Why it matters: ranks bind to the job's interface but packets take another way: a slow management network,
    or one that a firewall closes.

    What to do: look at the routes on this host, or name the right interface in the launch.
    """
    own, head = plan.data_address(here.name), plan.data_address(plan.head.value)
    if here.is_head or is_loopback(head or ""):
        return
    if own is None or head is None or UNNAMED in addresses:
        raise Undecided("the data addresses of this host and the head, or their interfaces, are not known")
    if ":" in head:
        raise Undecided("IPv6 routes are not examined")
    job = next((name for name, held in addresses.items() if own in held), None)
    leaving = routes.towards(head)
    if job and leaving and job != leaving:
        yield Problem(
            f"traffic to the head leaves by {leaving}, not by the job's interface {job}",
            expected=f"{head} routed by {job}",
            actual=f"routed by {leaving}",
            subject=f"{here.name} -> {plan.head.value}",
            evidence=(Evidence("/proc/net/route", f"{head} dev {leaving}; {own} is on {job}"),),
            commands=(f"ip route get {quote(head)}",),
        )


@check(
    "mtu-mismatch",
    LINKS,
    ADDRESSES,
    PLAN,
    maybe(HCCN_CONF),
    maybe(DEVICES),
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    sphere=Sphere.NETWORK,
    severity=Severity.WARN,
    several_hosts=True,
)
def mtu_mismatch(
    links: Mapping[str, Mapping[str, Counters]],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    plan: JobPlan,
    configured: Mapping[str, Mapping[int, Mapping[str, str]]],
    devices: Mapping[str, Devices],
) -> Iterator[Problem]:
    """Hosts use different packet sizes on the job's network.

    Why it matters: large packets of one host are dropped on their way to another while small ones pass:
    connections open and then stall.

    What to do: set the same MTU on the job's interface of every host, and on the switches between them. For
    NPUs it is the mtu_N of /etc/hccn.conf that is compared.
    """
    if plan.backend.value is Backend.HCCL:
        yield from _npu_mtus(configured, devices)
    values = {host: link.mtu for host, link in _job_links(links, addresses, plan).items() if link.mtu}
    yield from _odd_ones(values, "MTU", "set-mtu", "/sys/class/net/*/mtu", plan, addresses)
    blind = tuple(host for host in links if host not in values)
    if blind:
        raise Undecided("the job's interface is not known", blind)


@check(
    "link-speed-mismatch",
    LINKS,
    ADDRESSES,
    PLAN,
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    sphere=Sphere.NETWORK,
    severity=Severity.WARN,
    several_hosts=True,
)
def link_speed_mismatch(
    links: Mapping[str, Mapping[str, Counters]],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    plan: JobPlan,
) -> Iterator[Problem]:
    """One host's link runs at a different speed from its peers'.

    Why it matters: a link that fell back to a lower speed (a bad cable, a wrong port) slows every collective.

    What to do: check cable, transceiver and switch port of the host that differs.
    """
    values = {host: link.speed for host, link in _job_links(links, addresses, plan).items() if link.speed}
    yield from _odd_ones(values, "link speed", None, "/sys/class/net/*/speed", plan, addresses)


def _npu_mtus(
    configured: Mapping[str, Mapping[int, Mapping[str, str]]], devices: Mapping[str, Devices]
) -> Iterator[Problem]:
    """NPUs whose file says nothing have the driver's default, which is not compared."""
    said = {(h, n): own["mtu"] for h, npus in configured.items() for n, own in npus.items() if own.get("mtu")}
    for alike in by_product(said, devices).values():
        for odd in odd_ones(alike):
            yield odd.problem(
                "its MTU differs from the others'" if odd.decided else "NPUs differ in their MTU",
                odd.as_said_by("/etc/hccn.conf"),
                remedy="look-at-npu-mtu",
            )


def _job_links(
    links: Mapping[str, Mapping[str, Counters]],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    plan: JobPlan,
) -> dict[str, Counters]:
    """Host -> the link that carries its data address."""
    found = {}
    for host, held in addresses.items():
        interface = _job_interface(held, plan.data_address(host))
        if interface and interface in links.get(host, {}):
            found[host] = links[host][interface]
    return found


def _job_interface(held: Mapping[str, tuple[str, ...]], data: str | None) -> str | None:
    return next((name for name, addresses in held.items() if data in addresses), None)


def _odd_ones(
    values: Mapping[str, int],
    what: str,
    remedy: str | None,
    source: str,
    plan: JobPlan,
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
) -> Iterator[Problem]:
    """The hosts that differ from the majority; without a majority all of them, undecided."""
    votes, tie = votes_of(values)
    for value, hosts in votes if tie else votes[1:]:
        interface = _job_interface(addresses[hosts[0]], plan.data_address(hosts[0])) or ""
        yield Problem(
            f"its {what} differs from its peers'" + ("; undecided who is right" if tie else ""),
            expected=" or ".join(str(v) for v, _ in votes)
            if tie
            else f"{votes[0][0]}, as on {len(votes[0][1])} hosts",
            actual=f"{value} on {interface}",
            hosts=hosts,
            subject=f"interface {interface}",
            evidence=(Evidence(source, f"{interface}: {value}"),),
            remedy=remedy,
            values={"interface": interface, "value": votes[0][0]},
        )


@check(
    "nic-errors",
    LINKS,
    ADDRESSES,
    PLAN,
    HERE,
    EXPECT,
    damage=Damage.LOAD,
    severity=Severity.WARN,
    sphere=Sphere.NETWORK,
)
def nic_errors(
    links: Mapping[str, Counters],
    addresses: Mapping[str, tuple[str, ...]],
    plan: JobPlan,
    here: Here,
    expect: Expect,
) -> Iterator[Problem]:
    """The job's network interface has counted errors.

    Why it matters: damaged packets are sent again, which shows as single slow steps and timeouts.

    What to do: check cable, transceiver and switch port. The counters count since the driver was loaded: run
    again and see whether they grow.
    """
    interface = _job_interface(addresses, plan.data_address(here.name))
    if interface is None or interface not in links:
        raise Undecided("the job's interface is not known")
    errors = links[interface].errors
    if errors > expect.nic_errors:
        yield Problem(
            f"{interface} has counted transmission errors",
            expected=f"at most {expect.nic_errors}",
            actual=str(errors),
            subject=f"interface {interface}",
            evidence=(Evidence(f"/sys/class/net/{interface}/statistics", f"rx and tx errors: {errors}"),),
            commands=(
                f"ip -s -s link show {quote(interface)}",
                f"ethtool -S {quote(interface)} | grep -iE 'err|crc|drop'",
            ),
        )

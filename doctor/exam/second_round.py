"""What is asked after the first answers: rank tables on hosts, names of masters, pings of NPUs. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from doctor.expect import Expect
from doctor.facts.ascend.hccn_tool import PerDevice, SilentDevice
from doctor.facts.ascend.job_npus import used
from doctor.facts.ascend.network import NPU_ADDRESSES, NPU_LINKS, Address
from doctor.facts.ascend.npus import NPUS
from doctor.facts.ascend.pings import NPU_PINGS, plan_pings
from doctor.facts.job import directory
from doctor.facts.network import ADDRESSES, NAMES
from doctor.facts.system import DEVICES, IDENTITY
from doctor.job.launch.process_env import Launch
from doctor.job.launch.rank_env import is_loopback_name, master_of
from doctor.job.launch.table_reference import is_by_device, told_tables
from doctor.job.plan import JobPlan
from doctor.judge.engine import Facts
from doctor.model import MissingFact
from doctor.text.nodeset import is_host, is_ip

MOST_NAMES = 4


def plan_table_round(running: Sequence[Launch], plan: JobPlan) -> Mapping[str, tuple[str, ...]]:
    """Host -> the rank tables of its processes and of the plan, if a process is known by its device alone."""
    wanted: dict[str, list[str]] = {}
    for launch in running:
        for process in filter(is_by_device, launch.told):
            paths = [table.path for table in told_tables([process]) if table.path]
            wanted.setdefault(process.host or "", []).extend(paths)
    return {
        host: tuple(dict.fromkeys([*plan.table_paths, *paths]))
        for host, paths in wanted.items()
        if not {*paths} <= {*plan.table_paths}
    }


def plan_name_round(running: Sequence[Launch], facts: Facts) -> Mapping[str, tuple[str, ...]]:
    """Host -> the names of masters of its running processes that it was not asked to resolve."""
    wanted: dict[str, dict[str, None]] = {}
    for launch in running:
        for process in launch.told:
            master, host = master_of(process), process.host or ""
            known = facts.get(host, NAMES)
            name = master.address if master else ""
            asked = isinstance(known, MissingFact) or name in known.addresses
            if is_host(name) and not (asked or is_ip(name) or is_loopback_name(name)):
                wanted.setdefault(host, {})[name] = None
    return {host: tuple(names)[:MOST_NAMES] for host, names in wanted.items()}


def called_addresses(launch: Launch | None, facts: Facts, plan: JobPlan) -> dict[str, str]:
    """A master's host -> where ranks call it, if not at its data address, which is tried anyway."""
    book = directory(plan, facts.all(ADDRESSES), facts.all(NAMES), facts.all(IDENTITY))
    found = {}
    masters = [master.address for master in map(master_of, launch.told if launch else ()) if master]
    masters += [each.text for each in launch.mentioned if each.kind == "coordinator"] if launch else []
    for address in masters:
        owners = book.owners(address) if not is_loopback_name(address) else ()
        for host in owners if len(owners) == 1 else ():
            own = book.meant(address) & book.held.get(host, frozenset())
            if own and plan.data_address(host) not in own:
                found[host] = min(own)
    return found


@dataclass(frozen=True, slots=True)
class PingRound:
    """Pings by host, and why the other hosts have none."""

    pings: Mapping[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    without: Mapping[str, MissingFact] = field(default_factory=dict)


def plan_ping_round(facts: Facts, plan: JobPlan, *, everybody: bool, also_busy: bool) -> PingRound:
    """The pings between the job's NPUs. Hosts with busy NPUs are left alone unless `also_busy`."""
    without: dict[str, MissingFact] = {}
    addresses: dict[str, PerDevice[Address | None]] = {}
    for host in facts.hosts:
        told, npus = facts.get(host, NPU_ADDRESSES), facts.get(host, NPUS)
        if isinstance(told, MissingFact):
            without[host] = _missing(told.reason, absent=told.absent)
            continue
        mine = used(told, plan, host)
        unsaid = [said for device in mine if isinstance(said := told[device], SilentDevice)]
        if len(unsaid) == len(mine):
            reason = unsaid[0].reason if unsaid else "the job uses no NPU here"
            without[host] = _missing(reason, absent=not unsaid or unsaid[0].unsupported)
        elif not also_busy and isinstance(npus, MissingFact):
            without[host] = _missing(f"whether its NPUs are busy is not known: {npus.reason}")
        elif not also_busy and any(
            npu.processes or npu.full(Expect().npu_idle_percent) for npu in npus if npu.device in mine
        ):
            without[host] = _missing("its NPUs are busy (--on-busy run pings them anyway)")
        else:
            addresses[host] = {device: told[device] for device in mine}
    products = {host: found.product for host, found in facts.all(DEVICES).items()}
    pings = plan_pings(addresses, facts.all(NPU_LINKS), products, everybody=everybody)
    for host in addresses.keys() - pings.keys():
        without[host] = _missing("none of its NPUs had another host's to ping")
    return PingRound(pings, without)


def _missing(reason: str, *, absent: bool = False) -> MissingFact:
    return MissingFact(NPU_PINGS.name, reason, absent)

"""The launches of a run, completed with what only the hosts and the rank table know about their processes."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from doctor.facts.job import LAUNCHES, PROCESSES_OF_JOBS, directory
from doctor.facts.network import ADDRESSES
from doctor.facts.software import ENVIRONMENT
from doctor.facts.system import IDENTITY
from doctor.facts.tables import TABLE_FILES, JobTable
from doctor.job.launch.launcher import LaunchNumber
from doctor.job.launch.process_env import Launch, ProcessEnv, TableSeat
from doctor.job.launch.rank_env import DEVICE, launcher
from doctor.job.launch.ranks import ranks_of, world_of_launch
from doctor.job.launch.table_reference import is_by_device, told_tables
from doctor.job.plan import DEFAULT, JobPlan, ServersByName
from doctor.job.ranktable import RankTable, Server, read_table
from doctor.judge.engine import Facts
from doctor.judge.reading import Reading
from doctor.model import MissingFact


def launches_of(reading: Reading, table: JobTable | MissingFact) -> tuple[Launch, ...] | MissingFact:
    plan, facts, wishes = reading.plan, reading.facts, reading.recording.wishes
    found = [_with_logins(_at_home(wishes.launch, plan), plan, facts)] if wishes.launch else []
    if wishes.env:
        found.append(Launch("inventory", (ProcessEnv("inventory", None, wishes.env),), complete=False))
    found += reading.running
    if found:
        return tuple(_Seats(plan, facts).given(each, table) for each in found)
    if not wishes.live:
        return MissingFact(LAUNCHES.name, "nothing says how the job is started", absent=True)
    for host in facts.hosts:
        unseen = facts.get(host, PROCESSES_OF_JOBS)
        if isinstance(unseen, MissingFact):
            return MissingFact(LAUNCHES.name, f"the processes on {host} could not be read: {unseen.reason}")
    return MissingFact(LAUNCHES.name, "no job of this user runs on these hosts")


def defaults_of(launch: Launch, plan: JobPlan) -> Iterator[str]:
    """The figures of the plan that are defaults because the launch lacks them, and how to give them."""
    if launch.live:
        return
    tell = "or --launch live while the job runs, or --in-job from inside"
    for ranks in {host.ranks.value for host in plan.hosts if host.ranks and host.ranks.source == DEFAULT}:
        many = f"{ranks} {'rank' if ranks == 1 else 'ranks'} a host"
        yield f"{many} is a default, because the launch does not say how many: give --ranks-per-host, {tell}"
    port = plan.master_port
    if port.source == DEFAULT and not plan.master_port_drawn and not plan.told_tables:
        why = "because the launch does not say where its ranks meet"
        yield f"port {port.value} is a default, {why}: give --master-port, {tell}"


def _at_home(launch: Launch, plan: JobPlan) -> Launch:
    """On a plan of one host, the output of `env` without a host name belongs to that host."""
    if len(plan.hosts) != 1:
        return launch
    told = (  # such output is whole, and has no command
        replace(each, host=plan.names[0]) if each.host is None and each.whole and not each.command else each
        for each in launch.told
    )
    return replace(launch, told=tuple(told))


def _with_logins(launch: Launch, plan: JobPlan, facts: Facts) -> Launch:
    """With the options that torchrun takes from the logins, if all set them alike."""
    logins = [each.variables.items() for each in facts.all(ENVIRONMENT).values()]
    alike = set(logins[0]).intersection(*logins) if len(logins) == len(plan.hosts) else ()
    given = {n: v for n, v in alike if n[:4] == "PET_" and n not in (*plan.unset, "PET_NODE_RANK")}
    told = (
        replace(each, env={n: v for n, v in given.items() if n not in each.unknown} | dict(each.env))
        if (agent := launcher(each)) and agent.launcher.options.variables and not each.apart
        else each
        for each in launch.told
    )
    return replace(launch, told=tuple(told)) if given else launch


class _Seats:
    """Finds the ranks of processes that only know their device: their host is a server of the rank table."""

    def __init__(self, plan: JobPlan, facts: Facts) -> None:
        self._plan = plan
        self._addresses = facts.all(ADDRESSES)
        self._files = facts.all(TABLE_FILES)
        self._book = directory(plan, self._addresses, {}, facts.all(IDENTITY))

    def given(self, launch: Launch, table: JobTable | MissingFact) -> Launch:
        """`table` is that of the given launch; a running one has its own."""
        if not all(map(is_by_device, ranks_of(launch))):
            return launch  # if other processes have a rank, it is a fault that these have none
        if launch.live:
            path, known = self._of_most(launch)
        else:
            path, known = (table.path, table.table) if isinstance(table, JobTable) else ("", None)
        if known is None:
            return launch
        if any(each.command and each.host is None for each in launch.told):
            world = world_of_launch(launch)
            if len(known.servers) > 1 or (world is not None and world.value != known.ranks):
                return launch  # the server of its ranks is unknown, or the table belongs to another job
        servers = ServersByName(known.servers)
        told = tuple(self._with_seat(each, path, known, servers) for each in launch.told)
        return replace(launch, told=told)

    def _of_most(self, launch: Launch) -> tuple[str, RankTable | None]:
        """The table that most of its processes have, and its path."""
        votes: Counter[tuple[str, str]] = Counter()
        for each in launch.told:
            for told in told_tables([each])[:1]:
                file = self._files.get(self._book.host(each.host) or "", {}).get(told.path)
                if file and file.text:
                    votes[told.path, file.text] += 1
        for (path, text), _ in votes.most_common(1):
            return path, read_table(text)[0]
        return "", None

    def _with_seat(self, each: ProcessEnv, path: str, table: RankTable, servers: ServersByName) -> ProcessEnv:
        server = self._server(servers, self._book.host(each.host)) if is_by_device(each) else None
        if server is None:
            return each
        device = LaunchNumber(DEVICE, each.env[DEVICE]).value
        ranks = {
            entry.device: entry.rank
            for entry in server.entries
            if entry.device is not None and entry.rank is not None
        }
        rank = None if device is None else ranks.get(device)
        return replace(each, seat=TableSeat(rank, table.ranks, ranks, path))

    def _server(self, named: ServersByName, host: str | None) -> Server | None:
        """A table of one server describes the host of whoever reads it."""
        if len(named.servers) == 1:
            return named.servers[0]
        if host is None or host not in self._plan.by_name:
            return None
        return named.of(self._plan.host(host), self._addresses.get(host, {}))

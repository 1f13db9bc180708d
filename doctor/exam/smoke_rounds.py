"""The smoke runs of one examination: on the hosts that passed, and again without those that a run names.

Before another one, NPUs must have released the ranks: until then HCCL refuses to start (EJ0001).

Like `collect`, this drives the transport; what a run saw is added to the same recording.
"""

import gc
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from doctor.api import Ask
from doctor.devices import VENDORS
from doctor.errors import UsageError
from doctor.exam.collect import Collection
from doctor.facts.ascend.hccn_tool import SilentDevice
from doctor.facts.ascend.job_npus import as_torch_counts, in_rank_order
from doctor.facts.ascend.network import HCCP
from doctor.facts.counters import COUNTERS, numbers_in
from doctor.facts.network import ADDRESSES, UNNAMED
from doctor.facts.processes import KERNEL_LOG
from doctor.facts.software import ENVIRONMENT, PYTHON, Python
from doctor.facts.system import DEVICES, Devices
from doctor.job.launch.variables import is_setting
from doctor.job.plan import LIBRARIES, JobPlan, interface_with, is_untold
from doctor.judge.engine import Facts
from doctor.judge.reading import Reading
from doctor.judge.verdict import Report
from doctor.mesh import MeshResult, plan_mesh
from doctor.mesh.result import OmittedHost
from doctor.model import Backend, Host, HostStatus, UnreachedHost
from doctor.probe import through
from doctor.rules.interpreter import no_common_framework, other_framework
from doctor.rules.login import environment_of
from doctor.rules.offers import names_data_address
from doctor.smoke.agents import smoke_script
from doctor.smoke.judge import judge
from doctor.smoke.judge.charge import WARNINGS
from doctor.smoke.plan import HostDevices, NoGroup, SmokeWishes, plan_smoke, refuse_plan
from doctor.smoke.result import SmokeResult
from doctor.smoke.run import SmokeRun
from doctor.smoke.soak import Soak, figures_of
from doctor.stage import Stage
from doctor.text.durations import duration
from doctor.text.interpreter import to_type
from doctor.text.nodeset import fold

LONGEST = 15.0
UNSEEN = 10.0
"""Seconds that Huawei's manual gives for EJ0001; used if NPUs do not show their state (it needs root)."""
APART = 1.0


def await_release(collection: Collection, hosts: Sequence[str]) -> None:
    began = time.monotonic()
    while (passed := time.monotonic() - began) < LONGEST and collection.left() > APART:
        held, unseen = _ask(collection, hosts)
        if not held and (not unseen or passed >= UNSEEN):
            return
        limit = LONGEST if held else UNSEEN
        doing = "waiting until the NPUs have released the first run's ranks"
        collection.progress(Stage("smoke", doing, waiting=held or unseen, limit=limit))
        time.sleep(APART)


def _ask(collection: Collection, hosts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Hosts with an NPU that is still in use, and hosts that do not show whether one is."""
    held, unseen = [], []
    for answer, heard in collection.ask([HCCP], hosts, Ask):
        known = Facts({} if isinstance(heard, UnreachedHost) else {answer.host: heard})
        told = known.all(HCCP).get(answer.host)
        if told is None or any(isinstance(each, SilentDevice) for each in told.values()):
            unseen.append(answer.host)
        elif any(told.values()):
            held.append(answer.host)
    return held, unseen


REPEATS = 2
WATCHED = ("kernel-log", "-pace", "-health", "-ecc")
"""The ends of the names of facts that are read after each round of a soak, if they were asked for before."""
LOGGED, MOST_LINES, LONGEST_LINE = "kernel ", 5, 120
_SEEN = re.compile(r"runs |.* reasons ")
_NUMBER = re.compile(r"0x[0-9a-f]+|\d{3,}")
JOB_RUNS = "a job runs on it, which the test of its links would slow; --on-busy run tests it all the same"
_GIVEN = "the ranks cannot use what they are given, see {}"
HOPELESS = {
    **dict.fromkeys(("port-unreachable", "large-packets-lost"), "the hosts do not reach each other, see {}"),
    **dict.fromkeys(("interface-missing", "env-invalid", "launch-values", "data-address-duplicate"), _GIVEN),
}
"""Faults of no host in particular with which no rehearsal passes -> the reason that there is none."""


def run_smoke(collection: Collection, wishes: SmokeWishes, before: Report) -> None:
    """Train on the healthy hosts. `before` is the report of everything found without a smoke run."""
    job = collection.read().plan
    busy = before.seen.running if wishes.accept and not collection.order.also_busy else ()
    fit, left_out = _fit_hosts(before, collection, busy)
    late = "the deadline came before it" if collection.left() <= 0 else ""
    collection.no_smoke = no_common_framework(job) or _obstacle(before, fit, busy) or late
    if collection.no_smoke:
        return
    if collection.order.command == "smoke" and not left_out:
        refuse_plan(job)
    for repeat in range(REPEATS + 1):
        try:
            result = _run(collection, job, fit, wishes, left_out)
        except UsageError as error:  # the request may fit all hosts, but not those that are left
            if not left_out and not isinstance(error, NoGroup):
                raise
            collection.no_smoke = error.message
            return
        runs = collection.read().runs
        blamed = runs[-1].named if runs else ()
        fit = [host for host in fit if host not in blamed]
        if result.end.kind == "interrupted" or not blamed or not fit or collection.left() <= 0:
            return
        left_out = [*left_out, *(OmittedHost(host, "an earlier smoke run named it") for host in blamed)]
        wishes = replace(wishes, inject=())  # without those hosts, the number belongs to another rank
        if repeat < REPEATS:
            collection.progress(Stage("smoke", f"once more, without {fold(blamed)}"))
            if job.backend.value is Backend.HCCL:
                await_release(collection, fit)


def run_soak(collection: Collection, wishes: SmokeWishes, seconds: float) -> None:
    """A round that breaks is kept whole, as is the one after it; the hosts that it names end there."""
    until, reading, show = time.monotonic() + seconds, collection.read(), collection.progress
    first = next((run for run in reading.runs[-1:] if run.passed), None)
    fit, left_out = ([*first.plan.hosts], [*first.result.left_out]) if first else ([], [])
    soak, whole = Soak(), True

    def tell(stage: Stage) -> None:
        left = duration(max(0.0, until - time.monotonic()))
        show(replace(stage, doing=f"round {soak.done + 1} of the soak, {left} left: {stage.doing}"))

    soak = _read_counters(collection, soak, fit)
    collection.soak, collection.progress, wishes = soak, tell, replace(wishes, inject=(), again=True)
    while fit and collection.left() > 0 and (time.monotonic() < until or not whole):
        if reading.plan.backend.value is Backend.HCCL:
            await_release(collection, fit)
        at, kept, after = time.time(), len(collection.smoke), whole
        try:
            result = _run(collection, reading.plan, fit, wishes, left_out)
        except UsageError:  # the request does not fit the hosts that are left
            break
        finally:
            del collection.smoke[kept:]
        if result.end.kind == "interrupted":
            break
        faults = [each for each in judge(result) if each.is_fault and each.check not in WARNINGS]
        whole = result.end.kind == "done" and not faults
        collection.smoke += [] if whole and after else [result]
        if whole:
            soak = soak.with_round(at, figures_of(result))
        else:
            known = [
                (hosts, at + result.end.seconds, each.summary, each.undecided)
                for each in faults
                if (hosts := each.culprit_hosts(result.plan))
            ]
            gone = [each for each in known if not each[-1]] or known
            soak = replace(soak, left=(*soak.left, *gone))
            who = dict.fromkeys(host for hosts, *_ in gone for host in hosts)
            fit = [host for host in fit if host not in who] if who else []
            left_out += [OmittedHost(host, "an earlier smoke run named it") for host in who]
        collection.soak = soak
        collection.soak = soak = _read_counters(collection, soak, result.plan.hosts)
        gc.collect()  # a round leaves cycles, and Python would let those of many rounds come together
    collection.soak = replace(soak, lacking=max(0.0, until - time.monotonic()))


def _read_counters(collection: Collection, soak: Soak, hosts: Sequence[str]) -> Soak:
    """With what these hosts count now; of their kernels' logs, with how often each line came by now."""
    at, last = time.time(), soak.latest
    found: dict[str, dict[str, float]] = defaultdict(dict)
    since = at - (soak.readings[-1][0] if soak.readings else at)
    facts = [COUNTERS, *(fact for fact in collection.order.facts if fact.name.endswith(WATCHED))]
    for answer, heard in collection.ask(facts, hosts, Ask) if collection.left() > 0 else ():
        if isinstance(heard, UnreachedHost):
            continue
        known = Facts({answer.host: heard})
        for what, own in last.items():  # what is not there any more
            if answer.host in own:
                found[what][answer.host] = 0.0 if _SEEN.match(what) else own[answer.host]
        for fact in [each for each in facts if each is not KERNEL_LOG]:
            for what, value in numbers_in(known.known(answer.host, fact), fact.name):
                found[what.removeprefix(f"{COUNTERS.name} ")][answer.host] = value
        log = known.known(answer.host, KERNEL_LOG) or ()
        for line in [each for each in log if each.age is not None and each.age <= since][-MOST_LINES:]:
            own = found[f"{LOGGED}{_NUMBER.sub('#', line.message)[:LONGEST_LINE]}"]
            own[answer.host] = own.get(answer.host, 0.0) + 1
    return soak.with_reading(at, found)


def _fit_hosts(
    report: Report, collection: Collection, busy: Sequence[str]
) -> tuple[list[str], list[OmittedHost]]:
    """The hosts that take part, and the others: another interpreter than the job's proves nothing."""
    reading, fit, others = collection.read(), [], []
    pythons = reading.facts.all(PYTHON)
    for host in report.hosts:
        python = pythons.get(host.name)
        if host.status is not HostStatus.HEALTHY:
            why = ": ".join(filter(None, (host.status.value, host.reason)))
        elif python and other_framework(python, reading.plan):
            why = "its interpreter is not the job's, see torch-missing"
        elif host.name in busy:
            why = JOB_RUNS
        else:
            fit.append(host.name)
            continue
        others.append(OmittedHost(host.name, why))
    return fit, others


def _obstacle(report: Report, fit: Sequence[str], busy: Sequence[str]) -> str:
    """Why no smoke run can be made; empty if one can."""
    if report.run.stopped_by is not None:
        return "the run was interrupted before it"
    if not fit:
        return JOB_RUNS if busy else "no host passed the checks"
    for finding in report.findings:
        if finding.check in HOPELESS and report.rules.faults(finding) and not finding.hosts:
            return HOPELESS[finding.check].format(finding.check)
    return ""


def _run(
    collection: Collection,
    job: JobPlan,
    hosts: Sequence[str],
    wishes: SmokeWishes,
    left_out: Sequence[OmittedHost],
) -> SmokeResult:
    plan = plan_smoke(
        job,
        hosts,
        wishes,
        _devices(collection.read(), hosts),
        job.framework.value if job.framework else "torch",
    )
    known = {host.name: host for host in collection.order.hosts}
    taking_part = [_with_python(known[name], collection) for name in plan.hosts]
    until = collection.order.until
    run = SmokeRun(
        collection.transport.open({h.name: through(smoke_script(h.python), h) for h in taking_part}, until),
        plan,
        pythons={host.name: host.python for host in taking_part},
        env={n: "" for n in job.unset if n.endswith("_SOCKET_IFNAME")}
        | {n: value for n, value in job.env.items() if is_setting(n) and not _is_untold(n, value)},
        own_env={host: _interfaces(job, host, collection.read()) for host in plan.hosts},
        timeout=wishes.timeout,
        until=until,
        meet=lambda: meet(collection, job, taking_part),
        progress=collection.progress,
    )
    try:
        run.conduct()
    finally:
        result = run.result(left_out)
        collection.smoke.append(result)
    return result


def _with_python(host: Host, collection: Collection) -> Host:
    """The host with the interpreter that was found to have torch, if none was named."""
    found = collection.read().facts.get(host.name, PYTHON)
    if not host.python and (launch := collection.order.wishes.launch):
        host = replace(host, python=launch.python)
    if host.python or collection.order.pythons is None or not isinstance(found, Python):
        return host
    return replace(host, python=found.path) if found.chosen and to_type(found.path) == found.path else host


def _is_untold(name: str, value: str) -> bool:
    """Whether the launch names an interface by something that only the hosts know."""
    return name.endswith("_SOCKET_IFNAME") and is_untold(value)


def _interfaces(job: JobPlan, host: str, reading: Reading) -> dict[str, str]:
    """Variable of the ranks -> the interface with the data address.

    It is set if the launch gives it a value that only the hosts know. If the inventory names the address that
    ranks use, it is also set if neither the launch nor the login gives it a value.
    """
    held, login = (reading.facts.known(host, fact) for fact in (ADDRESSES, ENVIRONMENT))
    names = [name for name, value in job.env.items() if _is_untold(name, value)]
    if names_data_address(job, host):
        env = environment_of(job, login)
        names += [each.variable for each in LIBRARIES.values() if not env.get(each.variable)]
    interface = interface_with(job.data_address(host) or "", held or {})
    return dict.fromkeys(names, interface) if interface not in ("", UNNAMED) else {}


def _devices(reading: Reading, hosts: Sequence[str]) -> dict[str, HostDevices]:
    """The job's NPUs on hosts that show them, and the GPUs of hosts on which ranks share them."""
    plan, known = reading.plan, {}
    for host, found in reading.facts.all(DEVICES).items():
        if host not in hosts:
            continue
        if plan.backend.value is Backend.HCCL:
            mine = in_rank_order(found.npus, plan, host)
            known[host] = HostDevices(found.product, mine, as_torch_counts(found.npus, mine, plan))
        elif plan.backend.value is Backend.NCCL and (shared := _shared_gpus(found, plan.ranks_on(host))):
            known[host] = HostDevices(found.product, shared, shared)
    return known


def _shared_gpus(found: Devices, ranks: int) -> tuple[int, ...]:
    """The GPU of each rank if ranks share GPUs evenly. If not, the rank without a GPU is named later."""
    gpus = next((n for v in VENDORS if v.backend is Backend.NCCL and (n := len(found.of(v).numbers))), 0)
    return tuple(rank % gpus for rank in range(ranks)) if gpus and ranks > gpus and not ranks % gpus else ()


def meet(collection: Collection, job: JobPlan, hosts: Sequence[Host]) -> MeshResult | None:
    """Connect these hosts to each other, to see who reaches whom right now."""
    mesh = plan_mesh(
        {host.name: job.data_address(host.name) for host in hosts},
        shape="auto",
        head=job.head.value,
        master_port=job.master_port.value,
        hccl_port=None,
    )
    return None if len(mesh.nodes) < 2 else collection.connect(mesh, quick=True)

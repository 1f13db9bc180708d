"""The launch: whether HCCL's timeouts are in range and in the right order."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from doctor.api import PLAN, Backend, Damage, JobPlan, Problem, Scope, Severity, check, grouped, maybe
from doctor.facts.job import LAUNCHES, directory
from doctor.facts.system import DEVICES, IDENTITY, Devices
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.rank_env import launcher
from doctor.job.launch.table_reference import VARIABLES as TABLE_VARIABLES
from doctor.rules.hccl_values import RANGES
from doctor.rules.launch_names import LaunchNames

CONNECT, EXEC, EVENT = "HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT", "HCCL_EVENT_TIMEOUT"
DEFAULTS = {CONNECT: 120, EXEC: 1836}
MINDSPORE = 600
"""The seconds to connect that MindSpore sets unless they are set already."""
OF_MINDSPORE = {"MS_ROLE", "MS_WORKER_NUM", "RANK_ID"}
NEVER = 0
LONGEST_CONNECT = 7200
LONGEST_EXEC = 2_147_483_647
LONGEST_EXEC_910A = 17_340
STEP_910A = 68
"""The first generation rounds the seconds down to a multiple of this."""
WITH_TABLE = 300


@dataclass(frozen=True, slots=True)
class TimeoutFlaw:
    """A fault of one variable. `value` is its right value."""

    name: str
    summary: str
    expected: str
    actual: str
    value: int


@check(
    "launch-timeouts",
    LAUNCHES,
    PLAN,
    maybe(DEVICES),
    maybe(IDENTITY),
    damage=Damage.RISK,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    backends=(Backend.HCCL,),
)
def launch_timeouts(
    launches: tuple[Launch, ...],
    plan: JobPlan,
    devices: Mapping[str, Devices],
    identities: Mapping[str, str],
) -> Iterator[Problem]:
    """HCCL's timeouts are out of range, or end in the wrong order.

    Why it matters: HCCL refuses a value out of range (EI0001). In the wrong order the symptom is reported
    before its cause: when waiting for a collective ends before connecting does, the log reports a collective
    (EI0002) although a host could not be reached (EI0006).

    How it is known: HCCL_CONNECT_TIMEOUT (120 s unless set, and HCCL waits 20 s longer) should be the
    shortest; then HCCL_EXEC_TIMEOUT (1836 s unless set); then HCCL_EVENT_TIMEOUT, which torch_npu itself
    makes longer than HCCL_EXEC_TIMEOUT unless it is set. 0 means "never" for the last two. Only variables
    that are set are judged.

    What to do: set the variable to the value that the finding names, for every rank.
    """
    book = directory(plan, {}, {}, identities)
    first = any(found.product == "atlas-training" for found in devices.values())
    for launch in launches:
        names = LaunchNames(launch, book)
        ranks = [each for each in launch.told if not launcher(each)] or launch.told
        found = grouped((flaw, each) for each in ranks for flaw in _flaws(each, first, plan.env))
        for flaw, processes in found.items():
            yield _problem(names, flaw, processes)


def _problem(names: LaunchNames, flaw: TimeoutFlaw, processes: Sequence[ProcessEnv]) -> Problem:
    return Problem(
        flaw.summary,
        expected=flaw.expected,
        actual=flaw.actual,
        subject=names.subject(flaw.name),
        where=names.places(processes),
        evidence=names.evidence(processes[:2], flaw.name),
        commands=(f"export {flaw.name}={flaw.value}",),
    )


def _flaws(process: ProcessEnv, first: bool, alike: Mapping[str, str]) -> Iterator[TimeoutFlaw]:
    """The flaws of one process; `first`: some NPUs are of the first generation (910A). A value that all ranks
    are given `alike` and HCCL refuses is told by env-invalid.
    """
    set_to: dict[str, int] = {}
    for name in (CONNECT, EXEC, EVENT):
        text = process.env.get(name)
        if text is None:
            continue
        least, most = {CONNECT: (120, LONGEST_CONNECT), EVENT: (0, LONGEST_EXEC)}.get(
            name, (1, LONGEST_EXEC_910A) if first else (0, LONGEST_EXEC)
        )
        if not re.fullmatch(r"\d{1,12}", text) or not least <= int(text) <= most:
            if name in RANGES and alike.get(name) == text:
                return
            yield TimeoutFlaw(
                name,
                f"{name} is not a time that HCCL takes",
                f"{least} to {most} seconds",
                text[:100] or "nothing",
                DEFAULTS.get(name, 1868),
            )
            return
        set_to[name] = int(text)
    if process.whole or {CONNECT, EXEC} <= set_to.keys():
        yield from _order(
            set_to, first, MINDSPORE if process.env.keys() & OF_MINDSPORE else DEFAULTS[CONNECT]
        )
    yield from _with_table(process, set_to)


def _order(set_to: Mapping[str, int], first: bool, unset: int) -> Iterator[TimeoutFlaw]:
    """Timeouts in the wrong order. `unset` is the time to connect if the variable is not set."""
    connect, execute = set_to.get(CONNECT, unset), set_to.get(EXEC, DEFAULTS[EXEC])
    really = max(STEP_910A, execute // STEP_910A * STEP_910A) if first and execute else execute
    rounded = f" (rounded down to {really} by this generation)" if really != execute else ""
    said = f"{EXEC}={execute}" if EXEC in set_to else f"{EXEC} is {execute} unless set"
    if set_to.keys() & {CONNECT, EXEC} and really != NEVER and connect >= really:
        said_connect = f"{CONNECT}={connect}" if CONNECT in set_to else f"{CONNECT} is {connect} unless set"
        yield TimeoutFlaw(
            EXEC,
            "HCCL gives up a collective before it gives up connecting",
            f"{EXEC} above {connect}",
            f"{said_connect}, {said}{rounded}",
            min((connect // STEP_910A + 2) * STEP_910A, LONGEST_EXEC_910A),
        )
    event = set_to.get(EVENT)
    if event is None or event == NEVER:
        return
    if execute == NEVER or event <= really:
        yield TimeoutFlaw(
            EVENT,
            "torch_npu gives up waiting for an event before HCCL gives up the collective",
            f"{EVENT}=0 (never)" if execute == NEVER else f"{EVENT} above {really}",
            f"{EVENT}={event}, {said}{rounded}",
            NEVER if execute == NEVER else execute + 32,
        )


def _with_table(process: ProcessEnv, set_to: Mapping[str, int]) -> Iterator[TimeoutFlaw]:
    """A time to connect that is too short for a rank table: MindSpore sets 600, torch_npu warns below 300."""
    connect = set_to.get(CONNECT, DEFAULTS[CONNECT])
    table = next((name for name in TABLE_VARIABLES if process.env.get(name)), None)
    by_torch = {"RANK", "MASTER_ADDR"} & process.env.keys() and "MS_ROLE" not in process.env
    if table and connect < WITH_TABLE and (CONNECT in set_to or (by_torch and process.whole)):
        yield TimeoutFlaw(
            CONNECT,
            "connecting by a rank table may take longer than HCCL waits",
            f"{WITH_TABLE} seconds or more with {table}",
            f"{CONNECT}={connect}" if CONNECT in set_to else f"{CONNECT} is {connect} unless set",
            WITH_TABLE,
        )

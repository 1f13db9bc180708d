"""The user's own training processes, with the variables that matter to a job: no others leave a host."""

import re
from collections.abc import Mapping

from doctor.api import Capture, Fact, JobPlan, Run, RunValue, UnreadableOutput
from doctor.facts.network import ResolvedNames
from doctor.job.launch.command import bare_program, kept_words, read_command
from doctor.job.launch.directory import Directory, as_address
from doctor.job.launch.launchers import BY_LAUNCHERS, NUMBERS, RANK_NAMES
from doctor.job.launch.onhost import LOOK, MOST
from doctor.job.launch.process_env import Launch
from doctor.job.launch.processes import JobProcess
from doctor.job.launch.table_reference import VARIABLES as TABLE_VARIABLES
from doctor.job.launch.variables import is_kept, kept

CAP = 2_000_000
_TOOLS = re.compile(
    r"ipykernel\w*|jupyter[\w-]*|tensorboard(?:\.\S*)?|pip[\d.]*|http\.server|debugpy|pylsp|wandb\S*"
    r"|supervisord|gpustat|nvitop|ray(?:\W\S*)?"
)


def _jobs(capture: Capture) -> tuple[JobProcess, ...]:
    """Each: `p PID PARENT SPAWNS`, variables, folder, `o` in another network namespace, the command line."""
    if not capture.stdout.startswith("jobs"):
        raise UnreadableOutput("the list of processes has no head")
    if re.search(r"^more$", capture.stdout, re.MULTILINE):
        raise UnreadableOutput(f"there are more than {MOST} processes of jobs")
    found = []
    for part in re.split(r"^p ", capture.stdout, flags=re.MULTILINE)[1:]:
        head, *rows = part.split("\n")
        numbers = re.fullmatch(r"(\d{1,10}) (\d{1,10}) ([01])", head)
        if not numbers:
            raise UnreadableOutput("a process has no number")
        pairs = (row[2:].partition("=") for row in rows if row.startswith("e "))
        env = {name: value.replace("\x01", "\n") for name, equals, value in pairs if equals and is_kept(name)}
        process = JobProcess(
            int(numbers[1]),
            int(numbers[2]),
            kept(env),
            kept_words(next((row[2:].split("\t") for row in rows if row.startswith("a\t")), [])),
            spawns=numbers[3] == "1",
            folder=next((row[2:].replace("\x01", "\n") for row in rows if row.startswith("f /")), None),
            outside="o" in rows,
        )
        if _of_a_job(process):
            found.append(process)
    return tuple(sorted(found, key=lambda process: process.pid))


def _of_a_job(process: JobProcess) -> bool:
    """Whether it is a rank, or starts ranks. Pods pass RANK to everything that is started in them."""
    words, env = process.command, process.env
    own = "doctor" in [word.rpartition("/")[2] for word in words[:2]] or words[1:3] == ("-m", "doctor")
    if not words or not words[0] or own:
        return False
    command = read_command(words)
    if command is not None and command.launcher is not None:
        return bool(command.program)
    sizes = [env.get(n.world[0], "") for n in NUMBERS.values() if n.only_with and n.rank in env]
    started = any(re.fullmatch(r"\d{1,9}", size) and int(size) > 1 for size in sizes)
    if command is None:  # srun sets its variables for every program that a step calls, such as sed
        return bool(bare_program(words)) and (started or bool(env.keys() & BY_LAUNCHERS))
    if _TOOLS.fullmatch(command.program):
        return False
    numbered = bool(env.keys() & RANK_NAMES) or {"LOCAL_RANK", "WORLD_SIZE"} <= env.keys()
    numbered = numbered or ("DEVICE_ID" in env and bool(env.keys() & set(TABLE_VARIABLES)))
    return numbered or started or ("MASTER_ADDR" in env and process.spawns)


PROCESSES_OF_JOBS: Fact[tuple[JobProcess, ...]] = Fact(
    "job-processes", Run(LOOK), _jobs, timeout=6, slow=True, cap=CAP, ends=True
)

LAUNCHES: RunValue[tuple[Launch, ...]] = RunValue("launches")
"""Settings that ranks will get from the launch's files and the inventory, and what running ranks got."""


def directory(
    plan: JobPlan,
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    names: Mapping[str, ResolvedNames],
    identities: Mapping[str, str],
) -> Directory:
    """The names of each host, and the host of each address."""
    called = {
        host.name: frozenset(text.lower() for text in (host.given, identities.get(host.name, "")) if text)
        for host in plan.hosts
    }
    held = {
        host: frozenset(as_address(a) or a for found in interfaces.values() for a in found)
        | frozenset(a for a in (as_address(plan.data_address(host) or ""),) if a)
        for host, interfaces in addresses.items()
        if host in plan.names
    }
    return Directory(
        tuple(host.name for host in plan.hosts),
        called,
        held,
        {host: seen.addresses for host, seen in names.items()},
    )

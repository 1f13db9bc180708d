"""The launch: what its shell, scheduler or launcher takes for something else than what is meant."""

from collections.abc import Iterator

from doctor.api import PLAN, Confidence, Damage, Evidence, JobPlan, Problem, Scope, Severity, check
from doctor.facts.job import LAUNCHES
from doctor.job.launch.launchers import COMMANDS
from doctor.job.launch.launchers.srun import SRUN
from doctor.job.launch.options import OF_AN_EDITOR, read_options
from doctor.job.launch.process_env import Flaw, Launch, ProcessEnv
from doctor.job.launch.rank_env import launcher, nodes_of
from doctor.job.launch.wrappers import program_name
from doctor.rules.launch_names import remark

OF_SEVERAL_HOSTS = frozenset({"behind", "network"})
TOLD = frozenset({"unread"})
"""Flaws that keep no rank from starting."""


@check("launch-command", LAUNCHES, PLAN, scope=Scope.CLUSTER, damage=Damage.BLOCKED)
def launch_command(launches: tuple[Launch, ...], plan: JobPlan) -> Iterator[Problem]:
    """The launch is not read as it is meant: by the shell, the scheduler, the launcher or DeepSpeed.

    Why it matters: the ranks start on fewer hosts, or without an option, or not at all; and what is printed
    then names something else.

    How it is known: from the scripts of --launch, and the files that they name and do not write. A comment
    between the lines of a command ends it. A dash or a quote of an editor is no `-` and no quote. Options
    behind the program go to the program: this is judged if the launcher itself has no number of hosts, and
    several were named. sbatch reads no `#SBATCH` behind the first command, and ends the steps that its script
    does not wait for. srun starts what follows once for each task: if that is a launcher, there must be no
    more tasks than its hosts. A container with a network of its own is not reached from other hosts, unless
    it publishes a port. DeepSpeed takes `NAME slots=N` in a hostfile, no other host in --include, and fp16 or
    bf16, not both.

    What to do: correct the line that the finding shows.
    """
    for launch in launches:
        for flaw in launch.flaws:
            alone = flaw.kind in OF_SEVERAL_HOSTS and len(plan.hosts) < 2
            local = flaw.kind == "network" and not any(_spans(process) for process in launch.told)
            if flaw.words[:1] != "/" and not alone and not local:
                yield _problem(launch, flaw)
        for process in launch.told if not launch.live else ():
            yield from _too_many_tasks(launch, process)


def _spans(process: ProcessEnv) -> bool:
    nodes = nodes_of(process)
    return process.apart and nodes is not None and nodes[1] > 1


def _problem(launch: Launch, flaw: Flaw) -> Problem:
    words, like = flaw.words, flaw.like
    summary, expected, typed = {
        "comment": (
            "a comment between the lines of a command ends the command: what follows it is lost",
            "no comment between lines that end with \\",
            "take the comment out of the command",
        ),
        "editor": (
            "a dash or a quote of an editor is in a command: no program takes it for an option or a quote",
            '- and " from the keyboard',
            f"type {_plain(words)}",
        ),
        "behind": (
            f"options of the launcher stand behind {like}: they go to it, and each host trains alone",
            f"the options before {like}",
            f"move {words} before {like}",
        ),
        "late": (
            "sbatch does not read this line behind a command: the job gets other nodes or tasks",
            "all #SBATCH lines before the first command",
            f"move it above `{like}`",
        ),
        "unread": (
            "sbatch does not read this line behind a command",
            "all #SBATCH lines before the first command",
            f"move it above `{like}`",
        ),
        "wait": (
            "the script ends without waiting for what it started: the scheduler then ends all of it",
            "`wait` as the last command",
            "add `wait` as the last line",
        ),
        "network": (
            "the container has a network of its own: no other host reaches the master in it",
            "--network=host",
            "add --network=host behind `run`",
        ),
        "types": (
            f"{like} enables both {words}, and DeepSpeed refuses it",
            "one of the two",
            f'"enabled": false for one of {words} in {like}',
        ),
        "entry": (
            "DeepSpeed stops at a line of its hostfile that it does not know",
            "NAME slots=N",
            f"{(words.split() or ['NAME'])[0]} slots=N",
        ),
        "include": (
            f"--include names {words}, which the hostfile does not have: DeepSpeed stops",
            f"hosts of the hostfile: {like}",
            f"name {like.partition(',')[0]}, or add {words} to the hostfile",
        ),
    }[flaw.kind]
    return Problem(
        summary,
        expected=expected,
        actual=f"{words}, in line {flaw.line} of {flaw.file}",
        subject=f"{launch.name}: line {flaw.line}",
        severity=Severity.WARN if flaw.kind in TOLD else None,
        confidence=Confidence.STRONG,
        evidence=(Evidence(f"{flaw.file}:{flaw.line}", words),),
        commands=(remark(f"in line {flaw.line} of {flaw.file}: {typed}"),),
    )


def _plain(words: str) -> str:
    """A word with the signs of a keyboard."""
    name = OF_AN_EDITOR.sub("", words)
    dashes = "" if name == words else "-" * min(2, len(name.partition("=")[0]))
    return dashes + name.translate(str.maketrans("“”‘’", "\"\"''"))


def _too_many_tasks(launch: Launch, process: ProcessEnv) -> Iterator[Problem]:
    """The problem of a launcher for all ranks of a host that srun starts more than once there."""
    agent, nodes = launcher(process), nodes_of(process)
    if (
        agent is None
        or not nodes
        or not agent.command.inside
        or COMMANDS.get(program_name(process.command[0])) is not SRUN
    ):
        return
    given = SRUN.derived(read_options(process.command[1:], SRUN.options).values)
    tasks, each = given.get("ranks", ""), given.get("each", "")
    if agent.launcher.master is None or not tasks.isdecimal() or int(tasks) <= nodes[1]:
        return
    said = f"--ntasks-per-node={each}" if each else f"--ntasks={tasks}"
    yield Problem(
        f"srun starts {agent.launcher.name} {tasks} times, and it is for {nodes[1]} hosts",
        expected="one task on each host",
        actual=f"{said}, for {process.source}",
        subject=f"{launch.name}: {said}",
        evidence=(Evidence(process.source, " ".join(process.command)[:300]),),
        commands=(remark("--ntasks-per-node=1"),),
    )

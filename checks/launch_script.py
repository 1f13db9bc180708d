"""The launch script as the shell, the scheduler and the launcher read it, if that is not what is meant."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from doctor.api import (
    PLAN,
    Backend,
    Confidence,
    Damage,
    Evidence,
    JobPlan,
    Problem,
    Scope,
    Severity,
    Undecided,
    View,
    check,
    fold,
    maybe,
)
from doctor.facts.job import LAUNCHES
from doctor.facts.limits import LIMITS, Limits
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.facts.system import IDENTITY, VIEW
from doctor.job.launch.launchers import COMMANDS
from doctor.job.launch.launchers.srun import SRUN
from doctor.job.launch.options import OF_AN_EDITOR, read_options
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.rank_env import goes_by_node_rank, launcher, nodes_of
from doctor.job.launch.slips import Slip
from doctor.job.launch.wrappers import program_name
from doctor.rules.launch_names import remark

FROM_OUTSIDE = frozenset({"kept", "unset"})
"""Slips that are none if what starts the script gives its ranks the variable."""
BY_SHELL = frozenset({"blank", "dollar", "quote", "lines", "list", "literal"})
"""Slips of the shell's own rules, which depend on nothing else."""
CALLED = re.compile(r"(?:^|[\s|(=\"'])([A-Za-z][\w.-]{1,60})(?=[\"']?\s*[|)\]])")
"""The names of hosts among which a script chooses."""
PLAIN_CUT = re.compile(
    r"(?:export\s+)?\w+=[\"']?\$\(echo\s+[\"']?\$\{?\w+\}?[\"']?\s*\|\s*cut\s+-d\s?[\"']?,[\"']?\s+-f\s?1\)[\"']?"
)
"""A list of Slurm that is cut at a comma and not unfolded by anything else."""
LONGEST = 300
"""The most characters of a script that are shown."""
OF_SEVERAL_HOSTS = frozenset(
    {
        "host",
        "batch",
        "own",
        "draws",
        "behind",
        "network",
        "emptied",
        "alone",
        "names",
        "last",
        "few",
        "forward",
        "redraws",
        "hurry",
        "local",
        "cluster",
        "array",
    }
)


@check(
    "launch-variables",
    LAUNCHES,
    PLAN,
    maybe(ENVIRONMENT),
    maybe(VIEW),
    maybe(IDENTITY),
    scope=Scope.CLUSTER,
    damage=Damage.BLOCKED,
)
def launch_variables(
    launches: tuple[Launch, ...],
    plan: JobPlan,
    logins: Mapping[str, Environment],
    views: Mapping[str, View],
    identities: Mapping[str, str],
) -> Iterator[Problem]:
    """The launch script sets a variable in such a way that its ranks do not get it.

    Why it matters: the shell does not stop for it. The ranks start without the variable, or their launcher
    gets an empty option, and they end at once or look for each other in the wrong place.

    How it is known: from the scripts of --launch, as a shell reads them. A blank before or after the `=` sets
    nothing. A variable that is set, used nowhere and not exported stays in the shell: if the ranks need it,
    this is a fault, and for a setting of what is logged a warning. A variable that nothing sets while one of
    a similar name is set and used nowhere is misspelled, and so is an option that a launcher does not have if
    it has a similar one about ranks. A comment between the lines of a command ends it: its launcher may be
    left without a program. It counts where a variable is filled in: single quotes leave it to the other host
    or the container, which have only what they are given; double quotes fill it in once, in the batch script,
    for all nodes. sudo without -E and env -i drop what was exported. So it is with a number that is drawn
    ($RANDOM), by which the hosts shall meet, and with the rank that mpirun gives: in its own command line it
    is empty. Of a list of options, `$ARGS` is the first word alone, and `apptainer --cleanenv` passes nothing
    on. A choice by the name of the host must have every host, with a number of its own, and 0 for that of the
    master. A variable that a
    login sets is not judged. In a container, one that may be given from outside is not judged, and the report
    says so.

    What to do: correct the line that the finding shows.
    """
    in_pods = View.CONTAINER in (views or {}).values()
    inherited = {name for login in (logins or {}).values() for name in login.variables}
    doubts: dict[str, None] = {}
    for launch in launches:
        yield from _by_host(launch, plan, identities or {})
        own = {slip.name for slip in launch.slips if slip.kind == "own"}  # which says more than "draws"
        for slip in (slip for slip in launch.slips if slip.name):
            if slip.kind == "draws" and slip.name in own:
                continue
            if slip.kind not in BY_SHELL and (slip.name in inherited or is_given(slip)):
                continue
            if slip.kind in FROM_OUTSIDE and (in_pods or slip.file.endswith((".yaml", ".yml"))):
                where = f"line {slip.line} of {slip.file}"
                if slip.needed:
                    doubts[f"whether {slip.name} of {where} is given to the containers is not known"] = None
            elif slip.kind not in OF_SEVERAL_HOSTS or len(plan.hosts) > 1:
                yield _problem(launch, slip)
    if doubts:
        raise Undecided("; ".join([*doubts][:4]))


def is_given(slip: Slip) -> bool:
    """Whether a scheduler or a launcher gives every process this variable."""
    return slip.kind == "unset" and re.match(r"(?:SLURM|PBS|LSB|OMPI|PMIX?|FLUX|OAR)_", slip.name) is not None


def _by_host(launch: Launch, plan: JobPlan, identities: Mapping[str, str]) -> Iterator[Problem]:
    """The problem of numbers by the names of hosts: one has none, two have one, or the master's is not 0."""
    nodes = {nodes_of(process) for process in launch.told} - {None}
    of_others = nodes and nodes != {(len(plan.hosts),) * 2}  # some hosts are spare, or of another job
    if launch.by_host is None or launch.live or of_others or any(map(_numbers_itself, launch.told)):
        return
    slip, taken = launch.by_host.slip, launch.by_host.numbers(plan.names, identities)
    known = [number for number in taken.values() if number.isdecimal()]
    twice = [number for number, times in Counter(known).items() if times > 1]
    lost = [host for host, number in taken.items() if number in ("", "-")]
    head = plan.head.value if plan.head.source.startswith("--launch") else ""
    called = CALLED.findall(slip.like)[:8] if identities and not known else ()
    if lost and (known or any(launch.by_host.number(name).isdecimal() for name in called)):
        found = _problem(launch, replace(slip, like=fold(lost)))
        yield found if known else replace(found, severity=Severity.WARN)
    elif twice:
        same = [host for host, number in taken.items() if number == twice[0]]
        yield _problem(launch, replace(slip, kind="same", like=f"{twice[0]} on {fold(same)}"))
    elif {*map(int, known)} == {*range(len(taken))} and int(taken.get(head, "0")) != 0:
        yield _problem(launch, replace(slip, kind="later", like=f"{taken[head]} on {head}"))


def _numbers_itself(process: ProcessEnv) -> bool:
    """Whether the number of a host is not used: the hosts of a c10d rendezvous get theirs there."""
    return launcher(process) is not None and not goes_by_node_rank(process)


@check(
    "launch-command",
    LAUNCHES,
    PLAN,
    maybe(ENVIRONMENT),
    maybe(LIMITS),
    scope=Scope.CLUSTER,
    damage=Damage.BLOCKED,
)
def launch_command(
    launches: tuple[Launch, ...],
    plan: JobPlan,
    logins: Mapping[str, Environment],
    limits: Mapping[str, Limits],
) -> Iterator[Problem]:
    """The launch is not read as it is meant: by the shell, the scheduler, the launcher or DeepSpeed.

    Why it matters: the ranks start on fewer hosts, or without an option, or not at all; and what is printed
    then names something else.

    How it is known: from the scripts of --launch, and the files that they name and do not write. A comment
    between the lines of a command ends it. A dash or a quote of an editor is no `-` and no quote. Options
    behind the program go to the program: this is judged if the launcher itself has no number of hosts, and
    several were named. sbatch reads no `#SBATCH` behind the first command, and ends the steps that its
    script does not wait for. srun and mpirun start what follows once for each task: if that is a launcher,
    there must be as many tasks as its hosts, and the script must ask for as many nodes. Rank 0 is on the
    first host of a list, and so must the master be. A master that is a pod of a StatefulSet has its name
    below the serviceName of this. A container with a network of its own is not reached from other hosts,
    unless it publishes a port, and has what it mounts where it mounts it. It must be given as many devices
    as its launcher starts ranks (--gpus, NVIDIA_VISIBLE_DEVICES). DeepSpeed and Open MPI take `NAME
    slots=N` in a hostfile; DeepSpeed takes not fewer hosts than --num_nodes, no other host and no other
    slot in --include or --exclude, no number of hosts or GPUs beside them, and fp16 or bf16, not both. A
    blank ends a list of hosts. A worker of Ray joins at the port that the head opens. ssh in a loop over
    the lines of a file reads the rest of them, unless it has -n, -f, an input of its own or a & behind it.
    Quotes around several options make one word of them. The sizes of Lightning's Trainer must be those of
    srun; a manifest must give its containers as many devices as ranks, an MPIJob as many slots. All names
    of scontrol are no master. A batch script that asks for as many nodes as its launcher has hosts, and
    starts it with nothing that goes to other nodes, starts it on the first alone; one that asks for fewer
    devices on a node than its launcher has ranks there leaves some without. A launcher knows few values of
    some options, and Python no module that is called like a file. A word like `exprot` before NAME= sets
    nothing. What a loop draws for each host, hosts do not have in common. Slurm sets SLURM_GPUS_PER_NODE
    for --gpus-per-node alone. A container of Docker has 64 MB of shared memory, unless it is given more.
    Open MPI does not start as root without --allow-run-as-root. Under `set -e` a limit of open files above
    the hard limit of the login ends the script. What a `while` behind a pipe exports ends with it. A TMPDIR
    of more than 75 characters leaves no room for the names of the sockets of a data loader. Python gets no
    variable that a command over ssh sets and does not export. Docker keeps the quotes of an --env-file, and
    starts nothing with -t over ssh, which gives a command no terminal. MPICH takes `NAME:N` in a list of
    hosts. The file of PBS has a line for each processor of a host. A trap with `kill 0` ends what the script
    does not wait for.

    What to do: correct the line that the finding shows.
    """
    users = {host: login.user[0] for host, login in (logins or {}).items() if login.user}
    for launch in launches:
        for slip in launch.slips:
            if slip.kind == "raises":
                yield from _raised(launch, slip, limits or {}, users)
                continue
            if (
                slip.kind == "folded"
                and PLAIN_CUT.fullmatch(slip.words)
                and any(map(_has_nodes, launch.told))
            ):
                alike = {name.rstrip("0123456789") for name in plan.names}
                slip = replace(slip, needed=len(alike) == 1 < len(plan.names) and alike.pop()[-1:] != ".")
            if slip.kind == "asroot" and {*users.values()} != {"root"}:
                continue
            if slip.kind == "forward" and any(
                "MASTER_ADDR" in each.variables for each in (logins or {}).values()
            ):
                continue
            alone = slip.kind in OF_SEVERAL_HOSTS and len(plan.hosts) < 2
            local = slip.kind == "network" and not any(_spans(process) for process in launch.told)
            other = slip.kind in ("devices", "given") and plan.backend.value is Backend.GLOO
            if not (slip.name or slip.path or alone or local or other):
                yield _problem(launch, slip)
        fewer = any(slip.kind == "nodes" for slip in launch.slips)  # then srun has no other node
        for process in launch.told if not (launch.live or fewer) else ():
            yield from _other_tasks(launch, process)


def _raised(
    launch: Launch, slip: Slip, limits: Mapping[str, Limits], users: Mapping[str, str]
) -> Iterator[Problem]:
    """The problem of hosts whose login may not open as many files as the script asks for."""
    asked = int(re.findall(r"\d+", slip.words)[0])
    hard = {host: own.most_files for host, own in limits.items() if users.get(host, "root") != "root"}
    short = {host: own for host, own in hard.items() if own is not None and own < asked}
    if short:
        found = _problem(launch, slip)
        most = "-".join(map(str, sorted({*short.values()})))
        said = f"{found.actual}; the hard limit is {most} on {fold(short)}"
        yield replace(found, actual=said, hosts=() if len(short) == len(limits) else tuple(short))


def _spans(process: ProcessEnv) -> bool:
    return process.apart and _has_nodes(process)


def _has_nodes(process: ProcessEnv) -> bool:
    nodes = nodes_of(process)
    return nodes is not None and nodes[1] > 1


def _problem(launch: Launch, slip: Slip) -> Problem:
    slip = replace(slip, words=slip.words[:LONGEST], like=slip.like[:LONGEST])
    named = re.search(
        r"--export=(?![\"']?ALL)(?!.*\b(?:sudo|docker|podman|singularity|apptainer)\b)", slip.words
    )
    kind = "named" if named and slip.kind == "inside" else slip.kind
    summary, expected, typed = (_of_variable if slip.name else _of_command)(slip)[kind]
    return Problem(
        summary,
        expected=expected,
        actual=f"{slip.words}, in line {slip.line} of {slip.file}"
        + (f": {slip.like}" * (slip.kind in ("same", "later"))),
        subject=f"{launch.name if slip.name else slip.file}: {slip.name or f'line {slip.line}'}",
        severity=None if slip.needed else Severity.WARN,
        confidence=Confidence.CERTAIN if slip.kind in BY_SHELL else Confidence.STRONG,
        evidence=(Evidence(f"{slip.file}:{slip.line}", slip.words),),
        commands=(remark(f"in line {slip.line} of {slip.file}: {typed}"),),
    )


def _of_variable(slip: Slip) -> dict[str, tuple[str, str, str]]:
    """The same for the kinds of slips that have a variable, an option or a program."""
    name = slip.name
    return {
        "blank": (
            f"a blank beside the = of {name} keeps the shell from setting it",
            f"{name}=…",
            f"{name}=…",
        ),
        "kept": (
            f"{name} is set and not exported: no rank gets it",
            f"export {name}",
            f"export {name}",
        ),
        "unset": (
            f"{name} is used and nothing sets it, but {slip.like} is set and not used",
            f"one name for both: {name} or {slip.like}",
            f"${name} is empty",
        ),
        "dollar": (
            f"a $ before the name keeps the shell from setting {name}",
            f"{name}=…",
            f"{name}=… without the $",
        ),
        "quote": (
            f"a quote that begins in a word and ends some lines later swallows {name}=",
            f"{name}=… outside of the quotes",
            "put the words with the apostrophe in double quotes",
        ),
        "braces": (
            "the shell does not expand braces around a variable: the loop runs once",
            "a list of numbers",
            f"for {name} in $(seq FIRST LAST)",
        ),
        "lines": (
            f"the lines of {name} end with CR LF: a CR is at the end of every value",
            "lines that end with LF",
            f"sed -i 's/\\r$//' {name}",
        ),
        "inside": (
            f"{name} is empty where the command runs: it is set in the script alone",
            f"the value of {name}, filled in by the script or handed over",
            "double quotes for the command, a here-document without quotes, or -e NAME for a container",
        ),
        "named": (
            f"{name} is empty where the command runs: srun hands over only what its --export names",
            f"{name}, handed over",
            "--export=ALL,…",
        ),
        "batch": (
            f"the batch script fills in {name} once, so that every node gets 0",
            f"{name}, filled in by the task on each node",
            f"srun bash -c '… ${name} …' in single quotes",
        ),
        "early": (
            f"{name} is filled in before the launcher starts: it is empty for every rank",
            f"{name}, filled in by each rank",
            f"bash -c '… ${name} …' in single quotes behind the launcher",
        ),
        "late": (
            f"{name} is filled in before it is set: by the shell that starts the command which sets it",
            f"{name}=… in a line of its own, before the command",
            f"export {name}=… in a line before it, or \\${name} where a shell on another host sets it",
        ),
        "drops": (
            f"{name} is exported and does not reach the ranks: sudo and env -i drop it",
            f"{name}, handed over",
            f"sudo -E, or {name}=… behind sudo or env",
        ),
        "list": (
            f"only the first word of the list {name} is used: the launcher does not get the others",
            f"${{{name}[@]}}",
            f'"${{{name}[@]}}"',
        ),
        "literal": (
            f"single quotes keep the shell from filling in the value of {name}",
            f"{name} in double quotes",
            f"double quotes for the value of {name}",
        ),
        "own": (
            f"every host takes itself for the master by {name}: each waits for itself",
            "the address of the host of rank 0, on every host",
            f"export {name}=… in the batch script, before srun",
        ),
        "draws": (
            f"every node draws another value for {name}, as single quotes or a \\ leave that to its"
            " own shell",
            "one value, drawn by the script",
            f"double quotes and no \\ before the $, or a variable that the script sets and exports, for"
            f" {name}",
        ),
        "host": (
            f"the choice by the name of the host does not set {name} on {slip.like}",
            "a branch for every host",
            f"a branch for {slip.like}",
        ),
        "same": (
            f"the choice by the name of the host gives two hosts one {name}",
            "a number of its own for every host",
            f"{name}={slip.like}",
        ),
        "later": (
            f"the choice by the name of the host gives the host of the master another {name} than 0",
            f"{name}=0 on the host of the master",
            f"{slip.like}, where the master is: make it 0, or name the host of {name}=0 as the master",
        ),
        "option": (
            f"the launcher has no option {name}: it stops with its usage",
            slip.like,
            f"{slip.like} in place of {name}",
        ),
        "program": (
            f"{name} is given no program: it stops with its usage",
            "the program of the ranks behind the options",
            "a comment or blank behind a \\ at the end of a line, or between such lines, ends the command",
        ),
    }


def _of_command(slip: Slip) -> dict[str, tuple[str, str, str]]:
    """What is told of each kind: what happens, what is expected, what to type."""
    words, like = slip.words, slip.like
    by, *own = like.split(" ")
    numbers = (
        f"{name}=${given}" for name, given in zip(("RANK", "WORLD_SIZE", "LOCAL_RANK"), own, strict=False)
    )
    return {
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
            f"options of the launcher stand behind {like}: they go to it, and the hosts do not meet",
            f"the options before {like}",
            f"move {words} before {like}",
        ),
        "late": (
            "sbatch does not read this line behind a command: the job gets other nodes or tasks",
            "all #SBATCH lines before the first command",
            f"move it above `{like}`",
        ),
        "service": (
            f"the pods of the StatefulSet have no name like {words}: no rank finds the master by it",
            f"{like}, below the StatefulSet's serviceName",
            like,
        ),
        "nodes": (
            f"the batch script asks for fewer nodes than the {like} of its launcher, which waits for the"
            " others",
            f"nodes for {like}",
            f"as many nodes as {like} says",
        ),
        "unread": (
            "sbatch does not read this line behind a command",
            "all #SBATCH lines before the first command",
            f"move it above `{like}`",
        ),
        "wait": (
            "the script ends without waiting for what it started, and all of it ends with the script",
            "`wait` as the last command",
            "add `wait` as the last line",
        ),
        "emptied": (
            "ssh reads the list of the loop to its end: nothing starts on the hosts behind the first",
            "ssh -n, or another input for ssh",
            "ssh -n …",
        ),
        "alone": (
            f"the batch script starts the launcher on its first node alone: with {like} it waits for the"
            " others",
            "srun before the launcher",
            "srun --ntasks-per-node=1 …",
        ),
        "limit": (
            "the script limits the CPU seconds, addresses, open files or processes of each rank, and a rank"
            " that needs more ends",
            "no such limit",
            "leave the line out",
        ),
        "names": (
            "the master is the names of all nodes: no rank finds a host by them",
            "the name of the first node",
            "scontrol show hostnames … | head -n 1",
        ),
        "quoted": (
            "quotes make one word of several options: the launcher does not know it",
            "no quotes around options",
            'a list such as ARGS=(…) and "${ARGS[@]}", or no quotes',
        ),
        "taken": (
            f"the rendezvous of the launcher and the program both open {words}",
            "two ports, or init_method=env://",
            "another port for the program",
        ),
        "numberless": (
            f"{by} does not set RANK: {words} reads it from the environment, and stops",
            "RANK, WORLD_SIZE and LOCAL_RANK for each rank",
            f"start bash -c '{' '.join(numbers)} python {words} …'",
        ),
        "trainer": (
            f"the Trainer has {words} and srun {like}: Lightning stops at its start",
            "the same number for both",
            f"{words} and {like} must be one number",
        ),
        "limits": (
            f"the manifest starts more ranks in a container than it gives it devices: {words}",
            f"at most {like}",
            f"{like} ranks, or more devices",
        ),
        "workers": (
            f"the manifest starts more ranks than its workers have slots: {words}",
            f"at most {like}, replicas × slotsPerWorker",
            f"-np {like}, or more workers",
        ),
        "pods": (
            f"the manifest starts another number of pods than its launcher waits for: {words}",
            f"{like}, the number of pods",
            f"--nnodes={like}, or as many pods as it says",
        ),
        "indexed": (
            "the pods of the Job have no number: JOB_COMPLETION_INDEX is empty in each",
            "completionMode: Indexed",
            "completionMode: Indexed in the spec of the Job",
        ),
        "parallel": (
            "the Job runs fewer pods at a time than meet: those that run wait for those that come after them",
            f"parallelism: {like}",
            f"parallelism: {like} in the spec of the Job",
        ),
        "variables": (
            "DeepSpeed's launcher stops at a line of .deepspeed_env that sets nothing, such as a comment",
            "NAME=VALUE in every line, and no empty one",
            "delete this line",
        ),
        "short": (
            "the launcher is ended after minutes, in the middle of the job",
            "no limit, or one that a job needs",
            "leave `timeout` out",
        ),
        "pinned": (
            "all ranks of a host share one core: they wait for each other",
            "cores for each rank",
            "leave it out, or name all cores",
        ),
        "value": (
            "the launcher does not know this value: it stops at its start",
            "a number, auto, gpu or cpu for --nproc_per_node; c10d, static or etcd-v2 for --rdzv_backend",
            f"another value for {re.split('[= ]', words)[0]}",
        ),
        "module": (
            f"-m takes the name of a module, and {words} is a file: Python stops when it has been imported",
            words.removesuffix(".py").replace("/", "."),
            f"-m {words.removesuffix('.py').replace('/', '.')}, or {words} without -m",
        ),
        "hurry": (
            "the rendezvous gives up after seconds: hosts do not start at the same one",
            "a minute or more, or the default of 600 seconds",
            "leave the timeout out",
        ),
        "typo": (
            f"the shell has no such command: {like} is meant",
            like,
            like,
        ),
        "redraws": (
            "the loop draws another number for each host: they do not meet",
            "one number, drawn before the loop",
            "set a variable before the loop, and use it in it",
        ),
        "everyone": (
            f"every rank gets {words}: all take themselves for the same one",
            "the number that the launcher gives to each rank",
            "leave it out, and RANK=$OMPI_COMM_WORLD_RANK in front of the program",
        ),
        "folded": (
            "a list of Slurm is folded (node[1-2]), and it is cut at a comma",
            "scontrol show hostnames",
            "scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1",
        ),
        "array": (
            "each job of the array takes its own host for the master: each waits for itself",
            "the address of the host of the first job, in all of them",
            "one job with srun in place of an array, or a file in which the first job leaves its address",
        ),
        "local": (
            "RANK is the number of a rank on its host: several hosts have the same ranks",
            "the number in the whole job",
            "RANK=$SLURM_PROCID, or RANK=$OMPI_COMM_WORLD_RANK",
        ),
        "cluster": (
            "the script gives every host one index in TF_CONFIG",
            "another index on each host",
            "fill in the index from a number that is set on each host",
        ),
        "shared": (
            "the container has 64 MB of shared memory, as Docker gives it: a data loader or NCCL needs more",
            "--ipc=host, or --shm-size=16g",
            "add --ipc=host behind `run`",
        ),
        "devices": (
            f"the batch script asks for {like} on a node, and its launcher starts more ranks there",
            f"at most {like} ranks on a node",
            "as many devices as ranks",
        ),
        "given": (
            f"the container is given {like}, and its launcher starts more ranks",
            "as many devices as ranks",
            "give the container more devices, or start fewer ranks in it",
        ),
        "network": (
            "the container has a network of its own: no other host reaches the master in it",
            "--network=host",
            "add --network=host behind `run`",
        ),
        "glued": (
            "a test without blanks around its sign is one word, and always holds",
            "blanks on both sides of the sign",
            'write [ "$A" = "$B" ], with blanks on both sides of the sign',
        ),
        "raises": (
            "with `set -e` the script ends here, because the hard limit of open files is lower",
            "a number up to the hard limit of the login",
            'ulimit -n "$(ulimit -Hn)"',
        ),
        "deep": (
            "TMPDIR is too long for the names of the sockets of a data loader's workers",
            "a path of at most 75 characters",
            "a shorter path",
        ),
        "asroot": (
            f"{words} of Open MPI does not start as root",
            "another user, or --allow-run-as-root",
            f"{words} --allow-run-as-root …",
        ),
        "piped": (
            "a loop behind a pipe runs in a shell of its own: what it exports is lost when it ends",
            "a loop that reads by `done < FILE`",
            "write `while read …; do …; done < FILE`, or `set -a; . ./FILE; set +a`",
        ),
        "strict": (
            "with `set -e` the script ends here if no such process runs: it starts nothing then",
            "a command whose failure does not end the script",
            f"{words} || true",
        ),
        "outside": (
            "the program is named by its path on the host, and the container has it elsewhere",
            like,
            f"name {like}",
        ),
        "types": (
            f"{like} enables both {words}, and DeepSpeed refuses it",
            "one of the two",
            f'"enabled": false for one of {words} in {like}',
        ),
        "entry": (
            f"{like} stops at a line of its hostfile that it does not know",
            "NAME slots=N",
            f"{(re.split('[ :]', words) or ['NAME'])[0]} slots=N",
        ),
        "colon": (
            f"{like} stops at a line of its list of hosts that is written for Open MPI",
            "NAME:N",
            f"{words.split()[0] if words else 'NAME'}:{words.rpartition('=')[2]}",
        ),
        "quotes": (
            "a container gets the quotes of its --env-file as a part of the value",
            "NAME=VALUE without quotes",
            re.sub(r"([\"'])(.*)\1", r"\2", words),
        ),
        "terminal": (
            "the container is to have a terminal, and ssh gives none to a command: it does not start",
            "no -t for the container, or ssh -tt",
            "leave -t out behind `run`",
        ),
        "many": (
            "the file of PBS names a host once for each of its processors: its lines are more than the hosts",
            "the hosts, each once",
            "sort -u $PBS_NODEFILE for its hosts, and sort -u $PBS_NODEFILE | wc -l for their number",
        ),
        "twice": (
            f"{like} stops at a hostfile that has a host in two lines",
            "one line for each host",
            "one line with all slots of the host",
        ),
        "standalone": (
            "with --standalone the launcher waits for other hosts at an address of its own host",
            "--nnodes=1, or a --rdzv_endpoint that all hosts reach in place of --standalone",
            "--rdzv_backend=c10d --rdzv_endpoint=HOST:PORT in place of --standalone",
        ),
        "slotless": (
            "the launcher stops at a host without its slots",
            "NAME:SLOTS,NAME:SLOTS",
            "name each host with its slots (-H node1:8,node2:8)",
        ),
        "forward": (
            "Open MPI hands over only the variables that -x names: ranks on other hosts get no MASTER_ADDR",
            "-x MASTER_ADDR -x MASTER_PORT",
            "add -x MASTER_ADDR -x MASTER_PORT",
        ),
        "gives": (
            "SLURM_GPUS_PER_NODE is empty: Slurm sets it for --gpus-per-node alone",
            "--gpus-per-node in the script, or SLURM_GPUS_ON_NODE",
            "$SLURM_GPUS_ON_NODE in place of $SLURM_GPUS_PER_NODE",
        ),
        "few": (
            f"the hostfile has fewer hosts than {words}: DeepSpeed starts on those alone",
            f"as many hosts as {words} says, not {like}",
            f"add the other hosts to the hostfile, or leave {words} out",
        ),
        "last": (
            "the master is the last host of a list, and rank 0 is on the first: nobody waits at that address",
            "the first host of the list",
            "head -n 1 in place of tail -n 1",
        ),
        "exclude": (
            f"--exclude names {words}, which the hostfile does not have: DeepSpeed stops",
            f"hosts of the hostfile: {like}",
            f"name {like.partition(',')[0]}, or leave {words} out",
        ),
        "slots": (
            f"the hostfile does not have all slots of {words}: DeepSpeed stops",
            like,
            "name slots from 0 to one less than the slots of the host",
        ),
        "both": (
            f"DeepSpeed takes no {words.partition(' ')[0]} beside --include or --exclude: it stops",
            "one of the two",
            f"leave {words} out, or --include and --exclude",
        ),
        "torn": (
            "a blank parts the list of hosts: the launcher takes its second part for the program",
            "no blank in the list",
            "NAME:N,NAME:N without a blank",
        ),
        "unexported": (
            "MASTER_ADDR is set and not exported: python does not get it",
            "export MASTER_ADDR=…",
            "export before MASTER_ADDR and MASTER_PORT",
        ),
        "joins": (
            "a worker of Ray joins at a port that its head does not open",
            f"the port of the head: {like}",
            f"join at port {like}",
        ),
        "include": (
            f"--include names {words}, which the hostfile does not have: DeepSpeed stops",
            f"hosts of the hostfile: {like}",
            f"name {like.partition(',')[0]}, or add {words} to the hostfile",
        ),
    }


def _plain(words: str) -> str:
    """A word with the signs of a keyboard."""
    name = OF_AN_EDITOR.sub("", words)
    dashes = "" if name == words else "-" * min(2, len(name.partition("=")[0]))
    return dashes + name.translate(str.maketrans("“”‘’", "\"\"''"))


def _other_tasks(launch: Launch, process: ProcessEnv) -> Iterator[Problem]:
    """The problem of a launcher for all ranks of a host that another one starts more than once there, or on
    too few hosts.
    """
    agent, nodes = launcher(process), nodes_of(process)
    outer = COMMANDS.get(program_name(process.command[0])) if process.command else None
    if agent is None or not nodes or not agent.command.inside or outer is None or not outer.outer:
        return
    given = outer.derived(read_options(process.command[1:], outer.options).values)
    tasks = given.get("ranks", "")
    number = agent.command.options.get("node_rank", "")  # who starts it for each host gives each a number
    numbered = re.fullmatch(r"|\$\{?(?:SLURM|OMPI|PMIX?)_\w+(?:-\d)?\}?", number)
    others = {"hosts", "het_group", "pack_group"} & given.keys() or agent.launcher.hosts_besides
    alone = numbered and len(launch.told) == 1 and not (process.loop or process.chosen or others)
    if agent.launcher.master is None or not re.fullmatch(r"\d{1,6}", tasks):
        return
    if int(tasks) <= nodes[1] and (int(tasks) >= nodes[0] or not alone):
        return
    kinds = [outer.options.values.get(word.lstrip("-").partition("=")[0]) for word in process.command]
    at = next((kinds.index(kind) for kind in ("ranks", "each") if kind in kinds), 0)
    word, after = (*process.command, "")[at : at + 2]
    said = f"{tasks} tasks" if not at else word.replace("_", "-") if "=" in word else f"{word} {after}"
    yield Problem(
        f"{outer.name} starts {agent.launcher.name} once, and it is for {nodes[1]} hosts"
        if tasks == "1"
        else f"{outer.name} starts {agent.launcher.name} {tasks} times, and it is for {nodes[1]} hosts",
        expected="one task on each host",
        actual=f"{said}, for {process.source}",
        subject=f"{launch.name}: {said}",
        evidence=(Evidence(process.source, " ".join(process.command)[:300]),),
        commands=(remark("--ntasks-per-node=1" if outer is SRUN else f"-n {nodes[1]}"),),
    )

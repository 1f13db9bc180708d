"""The launch: whether each host has the files that it names."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from shlex import quote

from doctor.api import (
    PLAN,
    Ask,
    Capture,
    Confidence,
    Damage,
    Evidence,
    Fact,
    JobPlan,
    Place,
    Problem,
    Run,
    Scope,
    Severity,
    UnreadableOutput,
    check,
    fold,
    maybe,
)
from doctor.facts.job import LAUNCHES
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.job.launch.process_env import Launch
from doctor.job.launch.slips import WRITTEN
from doctor.rules.launch_names import remark
from doctor.rules.machines import votes_of
from doctor.text.hostprogram import host_program

NOT_EXECUTABLE = "not executable"
CR_LF, NO_INTERPRETER = "lines with CR LF", "a script without its interpreter"
POINTER = "a pointer of git-lfs"
"""The state of a file whose contents were not fetched."""
NOT_WRITABLE, NO_ROOM, NO_INODE = "not writable", "less than 100 MB free", "less than 100 inodes free"
HIDES = ", which hides Python's own module"
"""Ends the state of a program beside a file with the name of a module that torch imports."""
ELSEWHERE = ("data", "env", "model", "module", "search", "imports")
"""Data that a program may fetch or name otherwise, an environment whose name has several places, and folders
in which Python only searches."""
BROUGHT = ("read", "configured", "file", "log", "run", "volume", "hosts", *ELSEWHERE)
"""What the script, or somebody else, may bring before it is read."""
SYSTEM = ("/bin/", "/dev/", "/etc/", "/lib", "/proc/", "/run/", "/sbin/", "/sys/", "/tmp", "/usr/", "/var/")
"""Folders of any machine and any container."""
HOME, PATH, PORT, USER = "$HOME", "$PATH", "$PORT", "$WHOSE"
OWN = "a folder with its own "
"""The state of a folder that brings libraries: in PYTHONPATH, before those of the environment."""
LEFT = "there already"
"""The state of a file by which ranks are to meet."""
ALIKE = 0.85
"""How alike the names of a missing file and of one beside it are."""

_LOOK = host_program(__file__, "needed.sh")


def _ask_needed(ask: Ask) -> str:
    """By a process that nobody waits for, as with rank tables: a dead file system must not hold up others."""
    if not ask.paths:
        return ""
    parts = (
        path.partition(path.partition("/")[0] if path.startswith((PATH, PORT, USER)) else HOME)
        for path in ask.paths
    )
    looks = "\n".join(f"l {quote(path or there)} '{start}'" for path, start, there in parts)
    return _LOOK.replace("@looks@", looks)


def _states(capture: Capture) -> Mapping[str, str]:
    lines = capture.stdout.splitlines()
    if lines and lines[-1] != "looked":
        raise UnreadableOutput("the look at the files did not end")
    found = (re.fullmatch(r"(= )?(.*?)((?:\$(?:HOME|PATH|PORT|WHOSE))?/.*)", line) for line in lines)
    return {f"{each[1] or ''}{each[3]}": each[2].strip() or "missing" for each in found if each}


NEEDED_FILES: Fact[Mapping[str, str]] = Fact("missing-files", Run(_ask_needed), _states, timeout=4, slow=True)
"""Path -> "missing", also with a colon and the names that begin and end like it if its folder is there,
"not readable", "a folder", "empty", "lines with CR LF", "a script without its interpreter", "not
executable", or "a pointer of git-lfs"; only a program must be executable; others are usable files. What
ranks write ends in "/.": "not writable", "less than 100 MB free", "less than 100 inodes free", "below a
file". What ssh is to find begins with $PATH, a user with $WHOSE. "= path" -> what a program or a
configuration contains, as a sum.
"""


@check(
    "launch-files-missing",
    LAUNCHES,
    PLAN,
    NEEDED_FILES,
    maybe(ENVIRONMENT),
    scope=Scope.CLUSTER,
    damage=Damage.BLOCKED,
)
def launch_files_missing(
    launches: tuple[Launch, ...],
    plan: JobPlan,
    seen_on: Mapping[str, Mapping[str, str]],
    logins: Mapping[str, Environment] | None,
) -> Iterator[Problem]:
    """A file or folder that the launch names is not on every host, or cannot be used on some.

    Why it matters: the ranks of a host without the container image, the training script, the interpreter or
    the environment end at once, and those of the other hosts wait for them until they time out.

    How it is known: from the absolute paths in the scripts of --launch, and those below home: the image of
    singularity or apptainer, the program and its interpreter, the folder in which it starts, what is
    sourced, and configurations, models and data that options name (--deepspeed, --config, --load,
    --data-path, …): of Megatron's data both files, .bin and .idx. The environment that is activated, by its
    path, or by a name below the conda that the script sources. Each host is asked whether they exist, are
    empty or pointers of git-lfs, and may be read by this user; nothing is run, and of a script only its
    beginning is read. What ssh starts alike on all hosts of the job is looked for there, and with
    HF_HUB_OFFLINE a well-known model of a hub, in the cache that the script names. A program that mpirun or
    `torchrun --no-python` starts must be executable, too. A script must have its interpreter, and no CR at
    the end of its lines, and beside a program no file may have the name of a module that torch imports
    (random.py). What containers mount must be there; a missing one of `-v` is made, empty, which is a
    warning. The CPUs and nodes of taskset and numactl, and the interfaces that Open MPI is to take, are
    looked for below /sys. What is inside a container or on another machine, what the script or a program
    that it runs before may create, and paths with an unknown part are not looked for, nor what is in a
    folder that is missing. A hostfile must be where the launcher starts: on one host, or here. Files that
    variables name are looked for if their library stops without them. What options name to be written
    (--output_dir, --save, --log_dir) must have a folder above it that this user may write to, with 100 MB
    and 100 inodes free; on other hosts than the first it is a warning, because the first may write for all.
    What ssh starts by its name alone must be on the PATH that ssh gives a command. So must conda, if a
    command over ssh begins with `conda activate`. The folder to which its output goes and the user of its
    sudo must exist, and a program that is started by its path must be executable. Of a script whose hosts a
    scheduler chooses, the program counts that it starts first, if some hosts have it and others do not. A
    file of init_method=file:// that is there already is a warning, as are a port of ssh (--ssh_port, ssh
    -p) where nothing listens, and a host on which ssh does not find the orted of mpirun though others have
    it. The user that ssh names must exist. A folder of PYTHONPATH that brings a torch, a numpy or a
    MindSpore of its own should do so on all hosts: else it is a warning. If no host has a path, it is a
    fault of the launch, and of no host, if a file of a similar name is beside it, the folder around what is
    mounted is there, or all hosts have another path that the launch names. Otherwise it is a warning,
    because the script may be meant for other machines, as is what it may bring. Of folders of data, models
    and environments by name nothing is said then.

    What to do: copy the file to the hosts that the finding names, or mount the file system that has it.
    Where ranks cannot write, find the folder on the way that is another user's, full or mounted read-only.
    """
    for launch in launches:
        of_devices = {mark.text for process in launch.told for mark in process.marks}
        kinds = {slip.path: slip.kind for slip in launch.slips}
        reached = {process.on for process in launch.told}
        others = {host for host, login in (logins or {}).items() if login.user and login.user[0] != "root"}
        looked = {
            host: said for host, said in seen_on.items() if "root" not in kinds.values() or host not in others
        }
        yield from _other_imports([path for path in launch.needs if kinds.get(path) == "imports"], looked)
        for path in (path for path in launch.needs if kinds.get(path) != "root"):
            kind = kinds.get(path, "")
            hosts = [host for host in plan.names if host in (reached if reached <= {*plan.names} else looked)]
            seen = {host: looked[host].get(path, "") for host in hosts if host in looked}
            near = _near(path, seen.values())
            above = [each for each in launch.needs if path.startswith(f"{each}/") and not kinds.get(each)]
            states = {
                host: _state(state, kind)
                for host, state in seen.items()
                if not any(_state(looked[host].get(each, ""), "bind") for each in above)
            }
            folders, files = (list(states.values()).count(kind) for kind in ("a folder", ""))
            by_name = folders == files and "." not in path.rpartition("/")[2]
            usual = "a folder" if folders > files or by_name else ""
            for state in sorted({*states.values()} - {usual}):
                hosts = [host for host in states if states[host] == state]
                everywhere = len(hosts) == len(states)
                if not everywhere and kind == "hosts":
                    continue  # the host that starts the others has it
                if everywhere and (
                    launch.scheduled
                    or state == "empty"
                    or path in of_devices
                    or (kind in ELSEWHERE and not near and state != POINTER)
                ):
                    continue  # launch-devices-absent tells of the devices
                here = (near or kind == "bind") and all(each.startswith("missing:") for each in seen.values())
                here = here or (kind not in BROUGHT and _is_meant_for(launch, hosts, looked))
                sure = here or state in (NOT_EXECUTABLE, CR_LF, NO_INTERPRETER, POINTER) or HIDES in state
                said, expected, named = _told(path, kind, state)
                doubtful = kind in ("volume", "search", "imports", "init") or (everywhere and not sure)
                if path.startswith(PORT):
                    if hosts == [plan.names[0]]:
                        continue  # the launcher goes to itself without ssh
                    doubtful = True
                if kind == "out":
                    doubtful = plan.names[0] not in hosts  # the first one may write for all
                yield Problem(
                    said,
                    expected=expected,
                    actual=f"{state or 'no folder'} on {fold(hosts)}",
                    subject=named,
                    hosts=() if everywhere else tuple(hosts),
                    where=tuple(Place(host=host) for host in hosts),
                    severity=Severity.WARN if doubtful else None,
                    evidence=(
                        Evidence(launch.name, f"names {named}"),
                        *((Evidence(path.rpartition("/")[0], f"has {near}"),) if near else ()),
                    ),
                    commands=_typed(named, state, near),
                )


@check(
    "launch-files-differ",
    LAUNCHES,
    NEEDED_FILES,
    scope=Scope.CLUSTER,
    damage=Damage.RISK,
    severity=Severity.WARN,
    several_hosts=True,
)
def launch_files_differ(
    launches: tuple[Launch, ...], looked: Mapping[str, Mapping[str, str]]
) -> Iterator[Problem]:
    """A program or a configuration that the launch names is not the same on all hosts.

    Why it matters: a host that missed the last change trains another model or with other sizes, and its ranks
    wait in another collective than their peers: the job hangs, or its loss is wrong.

    How it is known: each host computes the checksum of the first 256 KB of the .py, .json and .yaml files
    that the launch names by their paths, of four at most. The hosts of the minority are named; without a
    majority, all are. Files that are meant to be per host (hostfiles, rank tables, configurations of
    launchers, what a script sources) are not compared.

    What to do: copy the file from the host that has the right one to the others.
    """
    meant = {slip.path for launch in launches for slip in launch.slips if slip.kind == "configured"}
    for path in dict.fromkeys(path for launch in launches for path in launch.needs if path not in meant):
        sums = {host: said[f"= {path}"] for host, said in looked.items() if f"= {path}" in said}
        votes, tie = votes_of(sums)
        hosts = [*sums] if tie else [host for _, own in votes[1:] for host in own]
        if hosts:
            yield Problem(
                "a file that the launch needs is not the same on all hosts",
                expected=f"the same {path}, on every host",
                actual=f"another one on {fold(hosts)}",
                subject=path,
                hosts=tuple(hosts),
                where=tuple(Place(host=host) for host in hosts),
                confidence=Confidence.SUSPECT if tie else Confidence.STRONG,
                evidence=tuple(Evidence(f"cksum {path}", f"{host}: {said}") for host, said in sums.items())[
                    :8
                ],
                commands=(
                    f"ls -l {_quoted(path)}",
                    *(() if tie else (f"# Copy it from {votes[0][1][0]}, which has it as most hosts do.",)),
                ),
            )


def _other_imports(paths: Sequence[str], looked: Mapping[str, Mapping[str, str]]) -> Iterator[Problem]:
    """The problem of hosts on which PYTHONPATH brings other libraries than on most."""
    found: dict[str, dict[str, str]] = {host: {} for host in looked}
    for path in paths:
        for host, seen in looked.items():
            for name in seen.get(path, "").partition(OWN)[2].split():
                found[host].setdefault(name, path)  # the first folder counts
    own = {
        host: ", ".join(f"{name} in {at}" for name, at in sorted(said.items()))
        for host, said in found.items()
    }
    votes, tie = votes_of(own)
    for said, hosts in votes[0 if tie else 1 :]:
        if tie and not said:
            continue
        yield Problem(
            "PYTHONPATH brings other libraries than on the other hosts",
            expected=f"{votes[0][0] or 'none'}, as on {fold(votes[0][1])}"
            if not tie
            else "the same on all hosts",
            actual=f"{said or 'none'} on {fold(hosts)}",
            subject="PYTHONPATH",
            hosts=tuple(hosts),
            where=tuple(Place(host=host) for host in hosts),
            severity=Severity.WARN,  # they may be of one version
            evidence=tuple(
                Evidence(f"PYTHONPATH on {host}", own[host] or "no such library") for host in [*own][:8]
            ),
            commands=(
                "python3 -c 'import torch; print(torch.__file__)'",
                remark("copy the folder to all hosts, or take it out of PYTHONPATH"),
            ),
        )


def _told(path: str, kind: str, state: str) -> tuple[str, str, str]:
    """What is wrong with a path, what is expected, and how it is named."""
    if kind == "out":
        named = path.removesuffix(WRITTEN)
        return "ranks cannot write where the launch says", f"files below {named}", named
    if path.startswith(f"{PATH}/"):
        named = path.removeprefix(f"{PATH}/")
        expected = f"{named} on the PATH that ssh gives a command, on every host"
        return f"a command over ssh does not find {named}", expected, named
    if path.startswith(PORT):
        named = f"port {path.removeprefix(f'{PORT}/')}"
        return f"nothing listens at the port of ssh that the launch names ({named})", "sshd", named
    if path.startswith(USER):
        named = f"user {path.removeprefix(f'{USER}/')}"
        return f"the {named} of the launch does not exist", f"{named}, on every host", named
    if kind == "init":
        return "a file by which ranks meet is there already", f"no {path}", path
    what = "a part of the machine" if kind == "machine" else "a file"
    how = "is not there" if state == "missing" else "cannot be used"
    return f"{what} that the launch needs {how}", f"{path}, on every host", path


def _is_meant_for(launch: Launch, hosts: Sequence[str], looked: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether all hosts have another path of the launch, one that is not on any machine: it is for them."""
    known = [path for path in launch.needs if not f"{path}/".startswith((*SYSTEM, PATH, PORT, USER))]
    return any(all(not _state(looked[host].get(path, ""), "bind") for host in hosts) for path in known)


def _state(seen: str, kind: str) -> str:
    """What is wrong with a path: only a program must be executable, and what is mounted may be a file too."""
    if kind == "init":
        return LEFT if seen == NOT_EXECUTABLE else ""
    if seen == NOT_EXECUTABLE and kind != "run":
        return ""
    if seen.startswith(OWN):
        seen = "a folder"
    if HIDES in seen and kind not in ("", "file"):  # only the folder of the program is searched
        return ""
    usable = kind in ("bind", "volume") and seen in ("a folder", "empty")
    return "" if usable else "missing" if seen.startswith("missing") else seen


def _near(path: str, seen: Iterable[str]) -> str:
    """The file beside a missing one that is meant, by its name."""
    beside = [name for state in seen for name in state.partition("missing: ")[2].split()]
    close = get_close_matches(path.rpartition("/")[2], beside, 1, ALIKE)
    return close[0] if close else ""


def _typed(path: str, state: str, near: str) -> tuple[str, ...]:
    if path.startswith("port "):
        return (
            "ss -ltn",
            remark("leave the option of the port out, or start the sshd of the job's containers"),
        )
    if path.startswith("user "):
        return (f"id {path[5:]}", remark("create the user with the same uid as on the other hosts"))
    if state == LEFT:
        return (f"ls -l {_quoted(path)}", remark("remove it if no job that runs uses it"))
    if "/" not in path:
        return (
            f"command -v {quote(path)}; echo $PATH",
            remark("ssh does not read what .bashrc says below `case $- in *i*`"),
        )
    if state in (NOT_WRITABLE, NO_ROOM, NO_INODE):
        size = "i" if state == NO_INODE else "h"
        return (f"namei -l {_quoted(path)}", f"df -{size} {_quoted(path.rpartition('/')[0] or '/')}")
    if state == NOT_EXECUTABLE:
        return (f"chmod +x {_quoted(path)}",)
    if state == NO_INTERPRETER:
        return (
            f"head -n 1 {_quoted(path)}",
            remark("make the environment anew: it was moved, or its python"),
        )
    if HIDES in state:
        name = state.removesuffix(HIDES).rpartition(" ")[2]
        return (f"ls -l {_quoted(path.rpartition('/')[0])}/{name}", remark(f"give {name} another name"))
    if state == POINTER:
        return (f"ls -lL {_quoted(path)}", remark("fetch the contents: git lfs pull, in its repository"))
    if state == CR_LF:
        return (f"sed -i 's/\\r$//' {_quoted(path)}",)
    if path.startswith("/sys/"):
        return (remark("name one that every host has:"), f"ls {quote(path.rpartition('/')[0])}")
    meant = (remark(f"name {near} in place of {path.rpartition('/')[2]}"),) if near else ()
    return (*meant, f"ls -ld {_quoted(path)}")


def _quoted(path: str) -> str:
    """For a shell, which fills in where home is."""
    _, home, there = path.partition(HOME)
    return f"{home}{quote(there)}" if home else quote(path)

"""What /proc shows about processes. Reading it may block, so careful.py calls this."""

import bisect
import contextlib
import ipaddress
import math
import os
import re
import stat
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from doctor.agents.onhost.process import link as link
from doctor.agents.onhost.process import links as links
from doctor.agents.onhost.process import tracer
from doctor.live.onhost import descriptors, syscalls

PROC = "/proc"
MOST_THREADS = 512
FIRST_PERSON = 1000
"""The first UID of a person. Smaller ones belong to services, whose containers may be anybody's."""
LONGEST_WORD, LONGEST_TEXT = 256, 4096
MOST_ENVIRON = 1 << 20
TICKS = os.sysconf("SC_CLK_TCK")
MACHINE = os.uname().machine
OURS = "DOCTOR_TOKEN="
"""The start of a variable in processes that doctor itself started with srun."""
GROUPS = re.compile("gloo_tcp_loop|pt_gloo|pt_nccl|NCCL |pt_hccl|hccl_|pt_mpi|TP_(?:UV|SHM)_")
"""Names of threads that exist only in a process with process groups."""
TIMERS = 1 << 13 | 1 << 25 | 1 << 26 | 1 << 28
"""SIGALRM, SIGVTALRM, SIGPROF and SIGIO, as bits of SigCgt."""
LIBRARIES = re.compile(
    r"/(?:lib(?:torch|c10|mpi|gloo|nccl|hccl|mindspore|horovod)|mindspore/|paddle/|horovod/|jaxlib/)"
)
"""Mapped libraries that can create process groups."""


def read(path: str, most: int = 65536) -> str:
    """The first `most` bytes of a file, as text. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    data = b""
    try:
        while len(data) < most:
            piece = os.read(handle, min(65536, most - len(data)))
            if not piece:
                break
            data += piece
    finally:
        os.close(handle)
    return data.decode("utf-8", "replace")


def lenient(path: str, most: int = 65536) -> str:
    with contextlib.suppress(OSError):
        return read(path, most)
    return ""


def namespace(pid: "int | str", kind: str) -> str:
    """The namespace of a process; empty if it may not be seen."""
    return link(f"{PROC}/{pid}/ns/{kind}")


def pids() -> "list[int]":
    return sorted(int(name) for name in os.listdir(PROC) if name.isdigit())


def owners() -> "dict[int, int]":
    """All processes, with the UID of each. Processes in a person's containers belong to the person."""
    found, lent = {}, lends()
    for pid in pids():
        with contextlib.suppress(OSError):
            found[pid] = person(os.stat(f"{PROC}/{pid}").st_uid, lent)
    return found


def stat_of(text: str) -> "tuple[str, list[str]]":
    """The name in /proc/PID/stat, which may contain any characters, and the fields from the state on."""
    return text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()


def row(item: "tuple[int, bool]", names: "Collection[str]" = ()) -> "dict[str, Any] | None":
    """What shows whether a process is a rank. `item`: its PID, and whether to read the parts that may block.

    Only the variables in `names` leave this module: others may be secrets.
    """
    pid, whole = item
    home = f"{PROC}/{pid}"
    try:
        name, fields = stat_of(read(home + "/stat"))
        found = {
            "pid": pid,
            "parent": int(fields[1]),
            "state": fields[0],
            "name": name,
            "start": int(fields[19]),
            "uid": os.stat(home).st_uid,
            "command": [],
            "exe": "",
            "env": {},
            "hidden": False,
            "groups": False,
            "ours": False,
            "blocked": False,
            "typed": False,
        }  # type: dict[str, Any]
    except (OSError, ValueError, IndexError):
        return None
    if whole and fields[0] != "Z":
        found["command"] = lenient(home + "/cmdline", LONGEST_TEXT).split("\0")[:-1][:200]
        try:
            environ = read(home + "/environ", MOST_ENVIRON).split("\0")
            found["env"] = {} if _borrows_rights(home) else _chosen_variables(environ, names)
            found["ours"] = any(each.startswith(OURS) for each in environ)
        except OSError:
            found["hidden"] = bool(found["command"])
        found["typed"] = link(home + "/fd/0").startswith(("/dev/pts/", "/dev/tty"))
        found["exe"] = os.path.basename(link(home + "/exe"))[:LONGEST_WORD]  # no title hides it
        titled = not found["exe"] and found["command"] and int(fields[17]) > 1
        python = "python" in " ".join([name, found["exe"], *found["command"][:1]])
        found["groups"] = bool(python or titled) and _has_groups(home)
    return found


def rights(pid: int) -> "tuple[int, int, tuple[int, ...]] | None":
    """The user, the group and the further groups of a process; None if it is gone. For a setuid-root program,
    the user is the one who started it.
    """
    said = dict(line.partition(":")[::2] for line in lenient(f"{PROC}/{pid}/status").splitlines())
    with contextlib.suppress(KeyError, ValueError, IndexError):
        users, groups = ([int(word) for word in said[name].split()[:2]] for name in ("Uid", "Gid"))
        return users[1] or users[0], groups[1], tuple(map(int, said["Groups"].split()))
    return None


def _borrows_rights(home: str) -> bool:
    """Whether it is a setuid or setgid program: another user may have started it and set its variables."""
    with contextlib.suppress(OSError):
        return bool(os.stat(home + "/exe").st_mode & (stat.S_ISUID | stat.S_ISGID))
    return False


def _chosen_variables(environ: "list[str]", names: "Collection[str]") -> "dict[str, str]":
    pairs = (each.partition("=") for each in environ)
    return {name: value[:LONGEST_WORD] for name, _, value in pairs if name in names and value}


def _has_groups(home: str) -> bool:
    with contextlib.suppress(OSError):
        tasks = os.listdir(home + "/task")[:MOST_THREADS]
        return any(GROUPS.match(lenient(f"{home}/task/{tid}/comm", 64)) for tid in tasks)
    return False


def has_library(pid: int) -> bool:
    """Whether it has loaded a library that creates process groups."""
    return bool(LIBRARIES.search(lenient(f"{PROC}/{pid}/maps", 8 << 20)))


def seen(item: "tuple[int, int, bool, bool]") -> "dict[str, Any]":
    """A process at this moment. `item`: its PID, its start, whether we are root, whether to read everything.

    `inodes` in the result are those of its sockets.
    """
    pid, start, root, whole = item
    home = f"{PROC}/{pid}"
    look = {"pid": pid, "state": "", "inodes": [], "unread": []}  # type: dict[str, Any]
    try:
        _, fields = stat_of(read(home + "/stat"))
        if int(fields[19]) != start:
            return look
    except (OSError, ValueError, IndexError):
        return look
    look.update(state=fields[0], cpu=int(fields[11]) + int(fields[12]))
    look["tracer"] = tracer(pid) if fields[0] == "t" else ""
    caught = re.search(r"SigCgt:\s*(\w+)", lenient(home + "/status"))
    look["timed"] = bool(caught and int(caught.group(1), 16) & TIMERS)
    refused = []  # type: list[str]
    look["threads"] = _threads(home, pid, refused)
    try:
        done = counters(home)
        look["bytes_moved"] = done["rchar"] + done["wchar"]
        look["disk"] = done["read_bytes"] + done["write_bytes"]
        own = counters(f"{home}/task/{pid}")
        look["calls"] = own["syscr"] + own["syscw"]
    except (OSError, ValueError, KeyError):
        refused.append("io")
    if root:
        look["kernel"] = [
            line.split("] ")[-1].split("+")[0][:LONGEST_WORD]
            for line in lenient(home + "/stack").splitlines()[:64]
        ]
    opened = descriptors.opened(home, look["threads"]) if whole else None
    if opened is None:
        refused.append("fd")
    look.update(opened or {})
    if refused and fields[0] not in "ZX":
        names = ", ".join(sorted(set(refused)))
        look["unread"].append(names + (": not permitted" if whole else ": no answer in time"))
    return look


def counters(place: str) -> "dict[str, int]":
    """The counters of input and output of a process or a thread."""
    pairs = (line.split(": ") for line in read(place + "/io").splitlines())
    return {name: int(number) for name, number in pairs}


def _threads(home: str, pid: int, refused: "list[str]") -> "list[dict[str, Any]]":
    try:
        tids = sorted((int(tid) for tid in os.listdir(home + "/task")), key=lambda tid: (tid != pid, tid))
    except OSError:
        return []
    return [one for one in (_thread(f"{home}/task/{t}", t, refused) for t in tids[:MOST_THREADS]) if one]


def _thread(place: str, tid: int, refused: "list[str]") -> "dict[str, Any] | None":
    try:
        name, fields = stat_of(read(place + "/stat"))
    except (OSError, ValueError):
        return None
    one = {
        "tid": tid,
        "name": name[:LONGEST_WORD],
        "state": fields[0],
        "cpu": int(fields[11]) + int(fields[12]),
        "switches": sum(map(int, re.findall(r"ctxt_switches:\s*(\d+)", lenient(place + "/status")))),
    }  # type: dict[str, Any]
    slept = _slept(place) if fields[0] in "SD" else None
    if slept is not None:
        one["slept"] = slept
    waits = lenient(place + "/wchan", LONGEST_WORD)
    one["waits"] = "" if waits == "0" else waits
    try:
        one["syscall"] = syscalls.named(read(place + "/syscall", 1024).split()[:9], MACHINE)
    except OSError:
        refused.append("syscall")
    return one


def _slept(place: str) -> "float | None":
    """Seconds since a thread ran last, by the clock of the scheduler; None if the kernel does not say."""
    its, own = (_last_run(lenient(each + "/sched", 4096)) for each in (place, PROC + "/self"))
    return None if its is None or own is None else max(0.0, round((own - its) / 1000, 2))


def _last_run(text: str) -> "float | None":
    found = re.search(r"^se\.exec_start\s*:\s*(\d{1,15}\.\d+)", text, re.MULTILINE)
    return float(found.group(1)) if found else None


def ticks(pid: int) -> int:
    """The CPU time of a process so far; 0 if it is gone. This does not block."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        _, fields = stat_of(read(f"{PROC}/{pid}/stat"))
        return int(fields[11]) + int(fields[12])
    return 0


def uptime() -> float:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return float(read(PROC + "/uptime").split()[0])
    return 0.0


def users(uids: "Iterable[int]" = ()) -> "dict[int, str]":
    """User names by UID, from files only: a directory service may not answer. `uids` may include UIDs that a
    person uses in containers; these get the person's name.
    """
    rows = [line.split(":") for line in lenient("/etc/passwd", 1 << 20).splitlines()]
    named = {int(each[2]): each[0][:LONGEST_WORD] for each in rows if len(each) > 2 and each[2].isdigit()}
    lent = lends()
    borrowed = {
        uid: named[person(uid, lent)] for uid in uids if uid not in named and person(uid, lent) in named
    }
    return {**named, **borrowed}


def lends() -> "list[tuple[int, int, int]]":
    """The UIDs that each person may use in containers: the first, the end, and the person's own UID."""
    rows = [line.split(":") for line in lenient("/etc/passwd", 1 << 20).splitlines()]
    people = {each[0]: int(each[2]) for each in rows if len(each) > 2 and each[2].isdigit()}
    found = []
    for line in lenient("/etc/subuid", 1 << 20).splitlines():
        name, _, numbers = line.partition(":")
        first, _, count = numbers.partition(":")
        own = people.get(name, int(name) if name.isdigit() else 0)
        if own >= FIRST_PERSON and first.isdigit() and count.isdigit():
            found.append((int(first), int(first) + int(count), own))
    return sorted(found)


def person(uid: int, lent: "Sequence[tuple[int, int, int]]") -> int:
    """The UID of the person to whom this UID belongs or is lent."""
    at = bisect.bisect_right(lent, (uid, math.inf, 0)) - 1
    return lent[at][2] if at >= 0 and uid < lent[at][1] else uid


def addresses() -> "list[str]":
    """The addresses of this host's interfaces."""
    v4 = re.findall(r"\|-- ([\d.]+)\n\s+/32 host LOCAL", lenient(PROC + "/net/fib_trie", 1 << 22))
    digits = [line.split(" ")[0] for line in lenient(PROC + "/net/if_inet6", 1 << 20).splitlines()]
    v6 = [str(ipaddress.IPv6Address(bytes.fromhex(each))) for each in digits if len(each) == 32]
    return list(dict.fromkeys(v4 + v6))[:1024]

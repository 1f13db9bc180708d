"""What libraries of this host know about the ranks, gathered during the two looks.

RAS is asked only if a rank has loaded NCCL. Every read and question has its own time limit; all of them
together have SECONDS.
"""

import contextlib
import json
import math
import os
import re
import select
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO

from doctor.live.onhost import ask, careful, job_files, proc, room

SECONDS = 20.0
"""The limit for everything, without the time between the first and the second answers."""
ASKING = ask.SECONDS + ask.CONNECT + 0.5
"""Seconds for a question to a server."""
LONGEST = 500000
MOST = 250
MOST_LOGS = 8
"""The most logs of ranks that are read for the time that their steps take."""
MOST_RANKS = 128
"""The most ranks of a host whose files are read."""
_WANTED = (
    "NCCL_RAS_ADDR NCCL_RAS_ENABLE TORCH_FR_DUMP_TEMP_FILE TORCH_NCCL_DEBUG_INFO_TEMP_FILE"
    " TORCH_HCCL_DEBUG_INFO_TEMP_FILE TORCH_WORKER_SERVER_SOCKET TORCH_HCCL_STATUS_SAVE_PATH"
    " ASCEND_PROCESS_LOG_PATH HOME RANK"
)
WANTED = frozenset(_WANTED.split())
DUMPS = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_HCCL_DEBUG_INFO_TEMP_FILE")
_LIBRARIES = {"nccl": re.compile(r"/libnccl\b"), "hccl": re.compile("/libhccl")}
_LOG = re.compile(r"worker_\d+\.log\Z")


def about(item: "tuple[int, int]") -> "dict[str, Any] | None":
    """What a rank has loaded, and where it writes its files. This may block."""
    pid, start = item
    home = f"/proc/{pid}"
    with contextlib.suppress(OSError, ValueError, IndexError):
        _, fields = proc.stat_of(proc.read(home + "/stat"))
        if int(fields[19]) != start or fields[0] in "ZX":
            return None
        pairs = (each.partition("=") for each in proc.read(home + "/environ", proc.MOST_ENVIRON).split("\0"))
        found = {
            "environ": {name: value[:4096] for name, _, value in pairs if name in WANTED},
            "uid": os.stat(home).st_uid,
            "since": time.time() - proc.uptime() + start / proc.TICKS - 1.0,
            "root": "" if _same(pid, "mnt") else home + "/root",
            "near": _same(pid, "net"),
            "inner": _inner(home),
        }  # type: dict[str, Any]
        maps = proc.lenient(home + "/maps", 8 << 20)
        for name, library in _LIBRARIES.items():
            found[name] = bool(library.search(maps))
        out = proc.link(home + "/fd/1")
        found["log"] = out if out.startswith("/") and not out.startswith("/dev/") else ""
        folder, _, name = out.rpartition("/")
        found["scheduler"] = folder + "/scheduler.log" if folder and _LOG.match(name) else ""
        return found
    return None


def _same(pid: int, namespace: str) -> bool:
    own, its = (os.readlink(f"/proc/{each}/ns/{namespace}") for each in ("self", pid))
    return own == its


def _inner(home: str) -> int:
    """The PID of the process in its own container; 0 if it has no other PID."""
    match = re.search(r"^NSpid:\s+\d+\s+(?:\d+\s+)*(\d+)$", proc.lenient(home + "/status"), re.MULTILINE)
    return int(match.group(1)) if match else 0


class _Gatherer:
    def __init__(self, ranks: "Sequence[Mapping[str, Any]]", deadline: float) -> None:
        self.deadline = deadline
        self.texts = []  # type: list[dict[str, Any]]
        self.size = 0
        ranks = [rank for rank in ranks if rank.get("helps") is None][:MOST_RANKS]
        self.members = {rank["pid"]: rank for rank in ranks}
        known = careful.carefully(about, [(rank["pid"], rank["start"]) for rank in ranks], until=deadline)
        self.ranks = {pid: found for (pid, _), found in known if found is not None}

    def add(self, source: str, name: str, which: str, answer: "Mapping[str, Any]", pid: "int | None") -> None:
        text, problem = answer.get("text", ""), answer.get("problem", "")
        size = room.weight(text.encode("utf-8", "replace"))
        if len(text) > LONGEST or self.size + size > room.FOR_LIBRARIES:
            text, problem, size = "", "it is too long to be read here", 0
        if len(self.texts) < MOST:
            one = {"source": source, "name": _clean(name), "which": which, "pid": pid}
            at = max(0.0, answer.get("at", 0.0))
            self.texts.append(dict(one, at=at, text=text, problem=_clean(problem)))
            self.size += size

    def run(self, apart: float) -> "list[dict[str, Any]]":
        began = time.monotonic()
        self.numbers()
        self.twice("a")
        time.sleep(max(0.0, min(began + apart, self.deadline) - time.monotonic()))
        self.twice("b")
        self.once()
        return self.texts

    def numbers(self) -> None:
        inner = [f"{pid} {rank['inner']}" for pid, rank in self.ranks.items() if rank["inner"]]
        if inner:
            self.add("process-numbers", "/proc", "a", {"text": "\n".join(inner)}, None)

    def twice(self, which: str) -> None:
        for place in self.places():
            self.ask(ask.ras_state, place, "nccl-ras", which, seconds=ASKING)
        for pid, rank in self.ranks.items():
            if rank["environ"].get("TORCH_HCCL_STATUS_SAVE_PATH"):
                folder = self.path(pid, "TORCH_HCCL_STATUS_SAVE_PATH")
                item = folder, self.names(pid), rank["uid"], rank["since"]
                self.ask(job_files.status, item, "torch_npu-status", which, pid)

    def once(self) -> None:
        limits = {pid: (rank["uid"], rank["since"]) for pid, rank in self.ranks.items()}
        for pid in self.ranks:
            for path in self.dumps(pid):
                self.ask(job_files.dump, (path, *limits[pid]), "flight-recorder", "a", pid)
        for server in sorted({self.path(pid, "TORCH_WORKER_SERVER_SOCKET") for pid in self.ranks} - {""}):
            self.ask(ask.server_dump, server, "flight-recorder", "a", seconds=ASKING)
        for pid, rank in self.ranks.items():
            if rank["hccl"]:
                home = os.path.join(self.path(pid, "HOME") or "/root", "ascend", "log")
                item = self.path(pid, "ASCEND_PROCESS_LOG_PATH") or home, self.names(pid), *limits[pid]
                self.ask(job_files.plog, item, "hccl-heartbeat", "a", pid)
        for path, pid in [*self.logs("log").items()][:MOST_LOGS]:
            self.ask(job_files.pace, (path, *limits[pid]), "step-pace", "a", pid)
        for path, pid in self.logs("scheduler").items():
            self.ask(job_files.scheduler, (path, *limits[pid]), "mindspore-scheduler", "a")

    def dumps(self, pid: int) -> "list[str]":
        """The paths at which a rank leaves its dumps."""
        number = self.members[pid].get("rank")
        number = self.ranks[pid]["environ"].get("RANK", "") if number is None else str(number)
        return sorted(path + number for path in {self.path(pid, name) for name in DUMPS} - {""} if number)

    def logs(self, kind: str) -> "dict[str, int]":
        """The logs of this kind, each with the first rank that writes it."""
        found = {}  # type: dict[str, int]
        for pid, rank in self.ranks.items():
            if rank[kind]:
                found.setdefault(rank["root"] + rank[kind], pid)
        return found

    def places(self) -> "list[tuple[str, int]]":
        """Addresses of RAS to ask. RAS answers for the whole job, so the hosts of the first and the last rank
        suffice.
        """
        found = set()
        for pid, rank in self.ranks.items():
            member = self.members[pid]
            number, world = member.get("rank"), member.get("world")
            asks = number is None or number == 0 or world is None or number == world - 1
            if rank["nccl"] and rank["near"] and asks:
                place = ask.ras_address(rank["environ"])
                if place is not None:
                    found.add(place)
        return sorted(found)[:2]

    def names(self, pid: int) -> "list[int]":
        return [pid] + [inner for inner in [self.ranks[pid]["inner"]] if inner]

    def path(self, pid: int, name: str) -> str:
        """The path in a variable of a rank, as seen from outside its container; empty if it is relative."""
        path = self.ranks[pid]["environ"].get(name, "")
        return self.ranks[pid]["root"] + path if path.startswith("/") else ""

    def ask(
        self,
        work: "Any",
        item: "Any",
        source: str,
        which: str,
        pid: "int | None" = None,
        seconds: float = careful.STALL,
    ) -> None:
        """Ask one question, whose item is a place, or begins with one."""
        if time.monotonic() > self.deadline:
            return
        ((_, answer),) = careful.carefully(work, [item], seconds, until=self.deadline)
        if answer is None and work is job_files.dump:
            answer = {"problem": "it could not be read in time"}
        if answer:
            self.add(source, answer.get("name") or _name(item), which, answer, answer.get("pid", pid))


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")[:1000]


def _name(item: "Any") -> str:
    """The path, or ADDRESS:PORT."""
    if isinstance(item, str):
        return item
    return str(item[0]) if len(item) > 2 else ":".join(map(str, item))


def gather(
    ranks: "Sequence[Mapping[str, Any]]", apart: float = 2.0, until: float = math.inf
) -> "list[dict[str, Any]]":
    """Rows of LibraryText. Questions that are asked twice are asked `apart` seconds apart."""
    return _Gatherer(ranks, min(until, time.monotonic() + SECONDS + apart)).run(apart)


class GatherProcess:
    """Runs `gather` in a child process, while this process looks at the ranks."""

    def __init__(self, ranks: "Sequence[Mapping[str, Any]]", apart: float, within: float = math.inf) -> None:
        """`within`: its time limit in seconds, without the time between the first and the second answers."""
        self.deadline = time.monotonic() + min(SECONDS, within) + apart
        over = self.deadline - careful.EASE

        def write(out: "BinaryIO") -> None:
            for text in gather(ranks, apart, over):
                out.write(json.dumps(text).encode("ascii") + b"\n")

        self.child, self.ear = careful.forked(write)

    def texts(self) -> "Iterable[dict[str, Any]]":
        """Everything that it has gathered by its deadline, even if the looks beside it took longer."""
        heard = bytearray()
        poll = select.poll()
        poll.register(self.ear, select.POLLIN)
        over = max(self.deadline, time.monotonic() + careful.EASE)
        while time.monotonic() < over:
            if poll.poll(100):
                data = os.read(self.ear, 1 << 20)
                if not data:
                    break
                heard += data
        os.close(self.ear)
        careful.end(self.child)
        for line in bytes(heard).split(b"\n")[:-1]:
            with contextlib.suppress(ValueError):
                yield json.loads(line.decode("ascii"))

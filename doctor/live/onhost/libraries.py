"""What libraries and device tools of this host know about the ranks, gathered during the two looks.

RAS is asked only if a rank has loaded NCCL, and device tools only if ranks use a device. Every read, question
and tool has its own time limit; all of them together have SECONDS.
"""

import contextlib
import json
import math
import os
import re
import select
import shutil
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from doctor.agents.onhost.process import default_signals, die_with_parent
from doctor.live.onhost import ask, careful, job_files, proc, room

SECONDS = 20.0
"""The limit for everything, without the time between the first and the second answers."""
TOOL_SECONDS = 5.0
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
_LIBRARIES = {
    "nccl": re.compile(r"/libnccl\b"),
    "cuda": re.compile(r"/libcuda\."),
    "hccl": re.compile("/libhccl"),
}
_GPU_ROWS = ("--query-gpu=index,uuid,utilization.gpu,power.draw", "--format=csv,noheader,nounits")
_GPU_APPS = ("--query-compute-apps=pid,gpu_uuid", "--format=csv,noheader")
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
        out = ""
        with contextlib.suppress(OSError):
            out = os.readlink(home + "/fd/1")
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
        items = [(rank["pid"], rank["start"]) for rank in ranks]
        known = careful.carefully(about, items, until=deadline)
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
            self.each([("ras", place)], ask.attempt, "nccl-ras", which, ask.SECONDS + ask.CONNECT + 0.5)
        items = [
            (
                "status",
                self.path(pid, "TORCH_HCCL_STATUS_SAVE_PATH"),
                self.names(pid),
                rank["uid"],
                rank["since"],
            )
            for pid, rank in self.ranks.items()
            if rank["environ"].get("TORCH_HCCL_STATUS_SAVE_PATH")
        ]
        self.each(items, job_files.attempt, "torch_npu-status", which)
        if any(rank["cuda"] for rank in self.ranks.values()) and os.path.exists(
            "/proc/driver/nvidia/version"
        ):
            self.tools(which, "nvidia-smi", _GPU_ROWS, _GPU_APPS)
        if any(rank["hccl"] for rank in self.ranks.values()) and os.path.exists("/dev/davinci_manager"):
            self.tools(which, "npu-smi", ("info",))

    def once(self) -> None:
        dumps, sockets, logs = [], [], []  # type: list[Any], list[Any], list[Any]
        schedulers = {}  # type: dict[str, tuple[int, float]]
        paces = {}  # type: dict[str, tuple[int, tuple[int, float]]]
        for pid, rank in self.ranks.items():
            number = self.members[pid].get("rank")
            number = rank["environ"].get("RANK", "") if number is None else str(number)
            limits = (rank["uid"], rank["since"])
            named = {self.path(pid, name) + number for name in DUMPS if rank["environ"].get(name) and number}
            dumps += [("dump", path, *limits, pid) for path in sorted(named)]
            if rank["environ"].get("TORCH_WORKER_SERVER_SOCKET"):
                sockets.append(("trace", self.path(pid, "TORCH_WORKER_SERVER_SOCKET")))
            if rank["hccl"]:
                named_so = self.path(pid, "ASCEND_PROCESS_LOG_PATH")
                folder = named_so or os.path.join(self.path(pid, "HOME") or "/root", "ascend", "log")
                logs.append(("plog", folder, self.names(pid), *limits))
            if rank["log"]:
                paces.setdefault(rank["root"] + rank["log"], (pid, limits))
            if rank["scheduler"]:
                schedulers[rank["root"] + rank["scheduler"]] = limits
        for item in dumps:
            self.each([item[:-1]], job_files.attempt, "flight-recorder", "a", careful.STALL, item[-1])
        for server in sorted(set(sockets)):
            self.each([server], ask.attempt, "flight-recorder", "a", ask.SECONDS + ask.CONNECT + 0.5)
        self.each(logs, job_files.attempt, "hccl-heartbeat", "a")
        for path, (pid, limits) in list(paces.items())[:MOST_LOGS]:
            self.each([("pace", path, *limits)], job_files.attempt, "step-pace", "a", careful.STALL, pid)
        said = [("scheduler", path, *limits) for path, limits in schedulers.items()]
        self.each(said, job_files.attempt, "mindspore-scheduler", "a")

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

    def each(
        self,
        items: "Sequence[Any]",
        work: "Any",
        source: str,
        which: str,
        stall: float = careful.STALL,
        pid: "int | None" = None,
    ) -> None:
        if not items or time.monotonic() > self.deadline:
            return
        for item, answer in careful.carefully(work, items, stall, until=self.deadline):
            owner = pid
            if owner is None and isinstance(item[2] if len(item) > 2 else None, list):
                owner = item[2][0]
            if answer is None and item[0] == "dump":
                answer = {"problem": "it could not be read in time"}
            if answer:
                owner = answer.get("pid", owner)
                self.add(source, answer.get("name", _name(item)), which, answer, owner)
            if time.monotonic() > self.deadline:
                return

    def tools(self, which: str, tool: str, *calls: "Sequence[str]") -> None:
        program = shutil.which(tool) or shutil.which(tool, path="/usr/bin:/usr/local/sbin:/usr/local/bin")
        left = min(TOOL_SECONDS, self.deadline - time.monotonic())
        if program is None or left <= 0.5:
            return
        starts = [_starting([program, *call], left) for call in calls]
        outs, problem, at = {}, "", time.time()
        try:
            for place, ran, code in careful.run_all(starts, 1):
                outs[place] = bytes(ran.out).decode("utf-8", "replace")
                if code != 0:
                    problem = ran.why or f"it ended with {code}"
        except OSError as error:
            problem = str(error)
        text = "" if problem else "".join(outs[place] for place in sorted(outs))
        self.add("utilisation", tool, which, {"text": text, "problem": problem, "at": at}, None)


def _starting(argv: "Sequence[str]", seconds: float) -> "Any":
    return lambda: careful.Tool(argv, seconds, LONGEST)


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")[:1000]


def _name(item: "Sequence[Any]") -> str:
    where = item[1]
    return where if isinstance(where, str) else ":".join(map(str, where))


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
        self.ear, mouth = os.pipe()
        me = os.getpid()
        self.child = os.fork()
        if self.child == 0:
            code = 1
            try:
                default_signals()
                die_with_parent(me)
                os.close(self.ear)
                with open(mouth, "wb") as out:
                    for text in gather(ranks, apart, self.deadline - careful.EASE):
                        out.write(json.dumps(text).encode("ascii") + b"\n")
                code = 0
            finally:
                os._exit(code)
        os.close(mouth)

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
        self._end()
        for line in bytes(heard).split(b"\n")[:-1]:
            with contextlib.suppress(ValueError):
                yield json.loads(line.decode("ascii"))

    def _end(self) -> None:
        """End the child. Everything that it started ends with it."""
        with contextlib.suppress(OSError):
            os.kill(self.child, signal.SIGKILL)
        until = time.monotonic() + careful.EASE
        with contextlib.suppress(OSError):
            while not os.waitpid(self.child, os.WNOHANG)[0] and time.monotonic() < until:
                time.sleep(0.002)

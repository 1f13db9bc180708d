"""What NCCL and torch themselves know about a hang, in a few lines: evidence beside the pages, not a verdict.

Standard library only, Python 3.6 and later, so that a process without torch can ask too. Time and size are
bounded: a backend that hangs may answer late, never, or with too much.
"""

import json
import os
import re
import socket
import time
from typing import Any

RAS_PORT = 28028
_TEXT = 4_000
_GROUPS = 16
_DUMP = 64 << 20
_NETWORK = re.compile(
    r" NCCL (?:INFO )?(?:.* (?=via NET/))?(via NET/[^/]+/\S+|.*(?:WARN|Using network|NET/[A-Z]|ibv).*)"
)
_FILES = []  # type: list[int]


def recorded(dump: "str | bytes") -> str:
    """A Flight Recorder dump in JSON: how far each group got, and what it waits for; "" if it shows nothing.

    The format is that of torch/csrc/distributed/c10d/FlightRecorderDetail.hpp, which torch_npu's follows:
    https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/FlightRecorderDetail.hpp
    """
    if len(dump) > _DUMP:
        return ""
    try:
        seen = json.loads(dump)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(seen, dict) or not isinstance(seen.get("pg_status"), dict):
        return ""
    entries = seen.get("entries")
    newest: dict[str, dict[str, Any]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            newest[str(entry.get("pg_id"))] = entry
    lines = [
        _group_line(number, status, newest.get(number, {}))
        for number, status in list(seen["pg_status"].items())[:_GROUPS]
        if isinstance(status, dict)
    ]
    return "\n".join(lines)[:_TEXT]


def _group_line(number: str, status: "dict[str, Any]", last: "dict[str, Any]") -> str:
    names = last.get("process_group")
    name = names[-1] if isinstance(names, list) and names and isinstance(names[-1], str) else ""
    group = f"group {_short(number)}" + (f" ({_short(name)})" if name else "")
    enqueued = _short(status.get("last_enqueued_collective", "?"))
    completed = _short(status.get("last_completed_collective", "?"))
    line = f"{group}: {enqueued} collectives enqueued, {completed} completed"
    if last and enqueued != completed:
        name, sizes, state = (
            _short(last.get(key, "?")) for key in ("profiling_name", "input_sizes", "state")
        )
        line += f"; the last is {name} {sizes}, {state}"
    return line


def _short(value: Any, longest: int = 60, instead: str = "?") -> str:
    return "".join(char if char.isprintable() else instead for char in str(value)[:longest])


def listen() -> "dict[str, str]":
    """Variables with which NCCL writes what it does into memory of this process alone."""
    try:
        _FILES[:] = [os.memfd_create("nccl")]
    except (AttributeError, OSError):  # an old system
        return {"NCCL_DEBUG": "WARN"}
    file = f"/proc/self/fd/{_FILES[0]}"
    return {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET", "NCCL_DEBUG_FILE": file}


def said(word: str = "") -> "list[str]":
    """What NCCL said of its network, each once and without the channel; only lines with that word."""
    text = "".join(os.pread(file, 1 << 22, 0).decode("utf-8", "replace") for file in _FILES)
    found = (_NETWORK.search(line) for line in text.splitlines() if word in line)
    return list(dict.fromkeys(_short(each[1], 200, " ") for each in found if each))[:64]


def ras_address() -> "tuple[str, int]":
    """The address at which NCCL's processes on this host answer: see NCCL's variable `NCCL_RAS_ADDR`."""
    host, colon, port = os.environ.get("NCCL_RAS_ADDR", "").rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port[:6]) < 65536:
        return "localhost", RAS_PORT
    return host.strip("[]") or "localhost", int(port)


def ras(address: "tuple[str, int] | None" = None, limit: float = 6.0) -> str:
    """The report of NCCL's own watchers (NCCL 2.24 and later); "" if there is none within the limit.

    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html
    """
    end = time.monotonic() + limit
    said = bytearray()
    try:
        with socket.create_connection(address or ras_address(), timeout=min(1.0, limit)) as wire:
            # NCCL itself waits this long for processes that do not answer: here those that hang.
            wire.sendall(f"timeout {max(1, int(limit) - 2)}\nstatus\n".encode())
            while len(said) < 16 * _TEXT:
                wire.settimeout(max(0.01, end - time.monotonic()))
                part = wire.recv(65536)
                if not part or time.monotonic() >= end:
                    break
                said += part
    except (OSError, ValueError):
        pass  # the part that has arrived is used
    # NCCL first acknowledges the timeout with a line of its own.
    text = said.decode("utf-8", "replace").splitlines()
    lines = [_short(line, 400, " ").rstrip() for line in text if line.strip() not in ("", "OK")]
    return "\n".join(lines)[:_TEXT]

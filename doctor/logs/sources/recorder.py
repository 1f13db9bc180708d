"""A dump of PyTorch's flight recorder as lines of a log: how far its rank came, and where it waits."""

import re
from collections.abc import Iterator
from typing import Any

from doctor.agents.onhost.recorder import MOST, UnreadableDump, loaded
from doctor.logs.sources.kind import HEAD
from doctor.logs.sources.stream import PeekStream
from doctor.text.grouped import grouped

_AS_OF_WATCHDOG = {"ALL_TO_ALL": "ALLTOALL_BASE", "ALL_REDUCE_BARRIER": "ALLREDUCE"}


def lines_of(name: str, file: PeekStream) -> bytes:
    """Empty if it is no dump. torch ends the name of the file with the rank."""
    head = file.peek(HEAD)
    if head[:1] not in (b"\x80", b"{") or (b"pg_config" not in head and b"collective_seq_id" not in head):
        return b""
    ranks = re.findall(r"(?i)rank[_-]?(\d{1,6})", name)[-1:] or re.findall(r"\d{1,6}$", name)
    whose = f"[rank{ranks[0]}]: " if ranks else ""
    try:
        lines = [f"{whose}{' '.join(line.split())}" for line in _told(loaded(file.peek(MOST))["entries"])]
    except (UnreadableDump, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return b""
    return "\n".join(lines).encode("utf-8", "replace")


def _told(entries: Any) -> Iterator[str]:
    for guid, ours in grouped((_group(each), each) for each in entries if not each["is_p2p"]).items():
        mine = {each["collective_seq_id"]: each for each in ours}
        done = max((n for n, e in mine.items() if e["retired"] or e["state"] == "completed"), default=-1)
        who, last = f"[PG GUID {guid} flight recorder]", f"last enqueued work: {max(mine)}"
        yield f"{who} {last}, last completed work: {done}"
        if waits := mine.get(min((number for number in mine if number > done), default=None)):
            name = waits["profiling_name"].rpartition(":")[2].upper()
            name = _AS_OF_WATCHDOG.get(name, name.replace("ALL_", "ALL", 1))
            frames = [f"{each['filename']}:{each['line']}" for each in waits.get("frames") or ()]
            at = next((each for each in frames if "/torch/" not in each), "an unknown line")
            work = f"WorkNCCL(SeqNum={waits['collective_seq_id']}, OpType={name})"
            yield f"{who} waits in {work} of {str(waits['input_sizes'])[:99]}, called at {at}"


def _group(entry: Any) -> str:
    """As NCCL's watchdog calls it. Another backend of the same group counts on its own."""
    (number, name), backend = entry["process_group"], entry["profiling_name"].partition(":")[0]
    guid = number if name == "undefined" else f"{number}({name})"
    return guid if backend == "nccl" else f"{backend}:{guid}"

"""Finds where a rank was when Ctrl-C ended it, and the call in which it waited, from its traceback."""

from __future__ import annotations

import re
from collections.abc import Iterable

INTERRUPTED = "KeyboardInterrupt"
_FRAME = re.compile(
    r'\s{0,9}File "(?P<file>[^"]{1,500})", line (?P<line>\d{1,9}), in (?P<where>[\w.<>]{1,80})'
)
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python3|^<")
_WAITS = re.compile(
    r"\b(all_reduce|all_gather\w{0,20}|all_to_all\w{0,20}|reduce_scatter\w{0,20}|broadcast\w{0,20}|barrier"
    r"|monitored_barrier|reduce|gather|scatter|recv|irecv|send|init_process_group|new_group)\("
)
_OWN = re.compile(r"[a-z]\w{0,40}")


def stopped_at(text: str, prefix: str, above: Iterable[str]) -> str:
    """The line with the place of the rank added: "… (train.py:31, in average, waits in all_reduce)".

    `above` are the lines before it, the nearest first; `prefix` is the launcher's prefix of the line.
    """
    if not text.rstrip().endswith(INTERRUPTED):
        return text
    waits = source = ""
    for line in above:
        if not line.startswith(prefix):
            continue
        own = line[len(prefix) :]
        frame = _FRAME.match(own)
        if frame is None:
            if "Traceback (most recent" in own:
                break
            source = own if own.strip(" ~^") else source
            continue
        if not _LIBRARY.search(frame["file"]):
            asked = _WAITS.search(source)
            waits = waits and (asked[1] if asked else waits)
            place = f"{frame['file'].rpartition('/')[2]}:{frame['line']}, in {frame['where']}"
            return f"{text.rstrip()} ({place}{f', waits in {waits}' if waits else ''})"
        if "/torch/distributed/" in frame["file"]:
            waits = frame["where"] if _OWN.fullmatch(frame["where"]) else waits or "a collective"
        elif frame["file"].endswith("torch/autograd/graph.py"):
            waits = "backward"
        source = ""
    return text

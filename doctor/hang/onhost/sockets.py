"""TCP connections by ss, which also says for how long each has been silent. Needs no rights."""

import re
from collections.abc import Sequence
from typing import Any

from doctor.hang.onhost.careful import Tool, run_all

SECONDS = 5.0
MOST = 16 << 20
MOST_OF_ONE = 1024
WAYS = (["ss", "-tnieHO"], ["ss", "-tnie"])
"""Older ones know neither -H nor -O."""
_PAIRS = re.compile(r"(\w+):(\d+)")
_TIMER = re.compile(r"timer:\((\w+),")


def connections(inside: "Sequence[str]" = ()) -> "tuple[dict[str, dict[str, Any]], str]":
    """By inode, and why there are none. `inside` is the command that enters another network namespace."""
    why = ""
    for argv in ([*inside, *way] for way in WAYS):
        try:
            ((_, tool, code),) = run_all([lambda argv=argv: Tool(argv, SECONDS, MOST)], 1)  # type: ignore[misc]
        except OSError as error:
            return {}, f"{argv[0]}: {error.strerror}"
        if code == 0:
            return parse(tool.out.decode("utf-8", "replace")), ""
        last = tool.err.decode("utf-8", "replace").strip().splitlines()[-1:]
        why = "ss: " + (tool.why or " ".join(last) or f"exit status {code}")[:200]
    return {}, why


def parse(text: str) -> "dict[str, dict[str, Any]]":
    found = {}
    for line in re.sub(r"\n[ \t]+", " ", text).splitlines():
        words = line.split()
        if len(words) < 5 or not (words[1].isdigit() and words[2].isdigit()):
            continue
        rest = " ".join(words[5:])
        said = {name: int(value) for name, value in _PAIRS.findall(rest)}
        timer = _TIMER.search(rest)
        found[str(said.get("ino", 0))] = {
            "state": words[0][:32],
            "local": _plain(words[3]),
            "peer": _plain(words[4]),
            "received": said.get("bytes_received", 0),
            "last_sent": said.get("lastsnd", 0),
            "last_received": said.get("lastrcv", 0),
            "waiting_to_be_read": int(words[1]),
            "waiting_to_be_sent": int(words[2]),
            "unacknowledged": said.get("unacked", 0),
            "backoff": said.get("backoff", 0),
            "persist": bool(timer and timer.group(1) == "persist"),
            "uid": said.get("uid", 0),
        }
    found.pop("0", None)
    return found


def _plain(place: str) -> str:
    """ADDRESS:PORT without the interface; one of IPv4 as such."""
    return re.sub(r"%[^\]:]*", "", re.sub(r"\[::ffff:([\d.]+)\]", r"\1", place))[:256]

"""Finds whom the lines around a line name: the process that Ray says is dead, the tasks that JAX misses."""

import re
from collections.abc import Iterable
from itertools import chain, islice, takewhile

DIED = ("actor died", "actor is dead", "A worker died or was killed", "Task was killed due to the node")
"""In the lines of Ray that report the end of a process."""
_HEAD = r"(?:\(.{1,80}\) )?(?:\S{19,40} |[A-Z]{4,8} [\d:.,/ -]{8,30} \[[^\]]{1,60}\] )?"
_FIELD = re.compile(rf"{_HEAD}\s{{1,8}}(?P<name>\w{{0,6}}name|pid|ip): (?P<value>\S{{1,120}})")
_FIELDS = 8
MISSED = ("imed out task names:", "The following tasks are unhealthy")
"""In the lines of JAX's coordination service that miss tasks."""
_TASK = re.compile(r"/job:\w{1,40}/replica:\d{1,6}/task:(\d{1,6})\b")
_IN_LINE = (
    re.compile(r"Worker IP address: (?P<ip>[\w.:-]{1,45}) .{0,60}?Worker PID: (?P<pid>\d{1,9})"),
    re.compile(r"\(IP: (?P<ip>[\w.:-]{1,45}), .{1,200}?, pid=(?P<pid>\d{1,9})"),
    re.compile(r"\(pid=(?P<pid>\d{1,9}), ip=\[?(?P<ip>[\w.:-]{1,45})"),
)


def with_actor(text: str, above: Iterable[str], below: Iterable[str]) -> str:
    """The line with the process that it is about: "… (pid 5226, ip 10.0.0.2, actor Trainer)"."""
    below = list(below)
    sentence = f"{text} {below[0]}" if below else text
    found = next(filter(None, (each.search(sentence) for each in _IN_LINE)), None)
    fields = found.groupdict() if found else _fields(below) or _fields(above)
    said = [f"{name} {fields[name]}" for name in ("pid", "ip") if fields.get(name)]
    actor = fields.get("name") or fields.get("class_name")
    said += [f"actor {actor}"] if actor else []
    return f"{text.rstrip()} ({', '.join(said)})" if said else text


def with_tasks(text: str, below: Iterable[str]) -> str:
    """The line with the numbers of the tasks that it or the lines below list: "… (tasks 2-3, 5)"."""
    listed = next(text.partition(word)[2] for word in MISSED if word in text)
    lines = chain([listed], takewhile(_TASK.match, below))
    tasks = dict.fromkeys(each[1] for line in lines for each in _TASK.finditer(line))
    return f"{text.rstrip()} (tasks {', '.join(tasks)})" if tasks else text


def _fields(lines: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in islice(lines, _FIELDS):
        field = _FIELD.match(line)
        if field:
            found.setdefault(field["name"], field["value"])
    return found

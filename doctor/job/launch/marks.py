"""Words of a launch script that mean accelerators of one vendor, wherever in the script they are."""

import re
from dataclasses import dataclass

from doctor.devices import VENDORS
from doctor.job.launch.launchers import COMMANDS
from doctor.text.redact import redact

MOST = 8
COUNTED = "nproc"
"""In the words by which torchrun counts the GPUs, whatever the backend is."""
_CHOOSES = re.compile(r"(?m)^\s*(?:if|case|echo)\b|\|\|")
_ON_CPUS = re.compile(r"--(?:\w+[-_])?backend[= ]+['\"]?gloo\b")
_LAUNCHER = re.compile(rf"\b(?:{'|'.join(COMMANDS)}|torch\.distributed\.\w+)\s")
_BACKEND = re.compile(r"--(?:dist\w*[-_])?backend[= ]+['\"]?([\w$]+)")


@dataclass(frozen=True, slots=True)
class Mark:
    """Such words in `line`; `vendor` is its name. `strong`: the script cannot do without these devices, and
    has no other way.
    """

    vendor: str
    text: str
    line: int
    strong: bool


def over_gloo(text: str) -> bool:
    """Whether each launcher of a script hands its program gloo as the backend."""
    lines = re.sub(r"(?m)(?:^|\s)#.*", "", text).replace("\\\n", " ").splitlines()
    return {_BACKEND.findall(each)[-1:] == ["gloo"] for each in lines if _LAUNCHER.search(each)} == {True}


def marks_in(text: str) -> tuple[Mark, ...]:
    """The first such words of each kind. Comments say nothing."""
    found: dict[tuple[str, str], Mark] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        code = re.sub(r"(?:^|\s)#.*", "", line)
        for vendor in VENDORS:
            for strong, pattern in ((True, vendor.launch_needs), (False, vendor.launch_hints)):
                for match in re.finditer(pattern, code) if pattern else ():
                    words = redact(match[0].strip())[:80]
                    mark = Mark(vendor.name, words, number, strong and not _has_a_choice(words, code, text))
                    found.setdefault((vendor.name, words), mark)
    return tuple(found.values())[:MOST]


def _has_a_choice(words: str, line: str, text: str) -> bool:
    """Whether the script works without these devices: it tests for the file, tolerates its absence, or knows
    gloo.
    """
    looks = re.search(rf"-[defrs]\s+[\"']?{re.escape(words)}", text)
    command = next((each for each in text.replace("\\\n", " ").splitlines() if words in each), line)
    if COUNTED in words and _ON_CPUS.search(command):
        return _CHOOSES.search(text) is not None
    on_cpus = _ON_CPUS.search(text) is not None
    return bool(looks) or "||" in line.partition(words)[2] or on_cpus

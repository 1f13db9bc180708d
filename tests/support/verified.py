"""The `verify` lines of a report, typed as they are printed: they fail while the fault is there, and pass
once it is mended. The `do` lines that only look at something are typed too, on the host that they name.

In `make test-all` each process types one line of each check and remedy; with --long every line is typed.
"""

import os
import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from doctor.errors import EXIT_FAULT, EXIT_INCONCLUSIVE, EXIT_OK, EXIT_USAGE
from tests.lab import Host, Lab
from tests.support.printed import ANYWHERE, misread, only_reads, parts, seen_again

EVERY_LINE = "VERIFY_EVERY_LINE"
"""Set in the environment by --long."""
PRINTED = re.compile(r"^ {6}verify {5}(doctor .*)$", re.MULTILINE)


Kinds = set[tuple[str, str]]
_red: Kinds = set()
_green: Kinds = set()
"""The checks, with their remedies, of which a line was typed before and after the repair."""
_looked: Kinds = set()
"""The checks, with the `do` lines that were typed, but for numbers."""
MISTYPED = re.compile(r"(?i)syntax error|unexpected EOF|(?:invalid|unknown|unrecognized) option|usage:")


def _to_type(report: dict[str, Any], text: str, typed: Kinds) -> list[str]:
    """The lines to type. Every independent fault has one, unless its remedy names the same command."""
    printed = [line.strip() for line in PRINTED.findall(text)]
    chosen: dict[str, None] = {}
    for found in report["findings"]:
        remedy = found["remedy"] or {"id": "", "commands": ()}
        if found["verify"] is None or found["verify"] in " ; ".join(remedy["commands"]):
            continue
        wanted = "doctor smoke " if found["check"].startswith("smoke-") else f" --only {found['check']} "
        own = [line for line in printed if wanted in f"{line} "]
        assert own, f"{found['check']} has no verify line:\n{text}"
        kind = (found["check"], remedy["id"])
        if os.environ.get(EVERY_LINE) or kind not in typed:
            typed.add(kind)
            chosen.update(dict.fromkeys(own))
    return [*chosen]


def assert_typed(lab: Lab, report: dict[str, Any]) -> None:
    """Every line that a host takes is one that a shell there understands."""
    for found in report["findings"]:
        assert not seen_again(found), found
        for line in (found["remedy"] or {"commands": ()})["commands"]:
            kind = (found["check"], re.sub(r"\d+", "0", line))
            if not line.startswith("#") and kind not in _looked:
                _looked.add(kind)
                refused = _refused(lab, [lab[name] for name in found["hosts"] if name in lab.names], line)
                assert not refused, f"{found['check']}: {line}\n{refused}"


def _refused(lab: Lab, hosts: Sequence[Host], line: str) -> str:
    """Why a line cannot be typed; empty if it can. What takes long or changes something is only read."""
    if any(words[0] == "doctor" for words in parts(line)):
        changes = "--accept-new" in line or line.startswith(("doctor smoke ", "doctor ranktable make "))
        if changes or not line.startswith("doctor "):
            return misread(line)
        done = lab.doctor(*shlex.split(line, comments=True)[1:])
        return done.stderr if done.returncode == EXIT_USAGE else misread(line)
    for host in (each for each in hosts[:1] if each.running):
        own = only_reads(line) and all(words[0] in ANYWHERE - {"ssh"} for words in parts(line))
        done = host.ask('timeout 10 bash -c "$1"', line) if own else host.ask("bash -n", stdin=line)
        if MISTYPED.search(done.stderr):
            return done.stderr
    return ""


def assert_red(lab: Lab, report: dict[str, Any], text: str) -> None:
    """What a host's kernel has logged stays in its log: such a line fails if it comes again."""
    lines = _to_type(report, text, _red)
    for line in (each for each in lines if "kernel_log_since=" not in each):
        done = lab.doctor(*shlex.split(line)[1:])
        assert done.returncode == EXIT_FAULT, f"{line}\n{done.stdout}{done.stderr}"


def assert_green(
    lab: Lab, report: dict[str, Any], text: str, recording: Path, gone: Collection[str] = ()
) -> None:
    """The lines pass; if none of them is typed, `--again` reports that everything is fixed; with --long both.
    What the checks in `gone` look at no longer exists.
    """
    left = [found for found in report["findings"] if found["check"] not in gone]
    lines = _to_type({"findings": left}, text, _green)
    for line in lines:
        done = lab.doctor(*shlex.split(line)[1:])
        assert done.returncode == EXIT_OK, f"{line}\n{done.stdout}{done.stderr}"
    if lines and not os.environ.get(EVERY_LINE):
        return
    done = lab.doctor("check", "--again", str(recording), "--strict")
    wanted, says = (EXIT_INCONCLUSIVE, "not decided") if gone else (EXIT_OK, "Fixed: ")
    assert done.returncode == wanted, f"{done.stdout}{done.stderr}"
    assert says in done.stdout.replace("Not decided", "not decided")

"""A host's answer -> a capture for each fact that it gave, and why the others are missing. Pure."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from doctor.api import Fact, Read, grouped, path_and_text
from doctor.model import Answer, AnswerEnd, Capture, MissingFact, UnreachedHost, UnreachedKind
from doctor.probe import frames
from doctor.text.hostprogram import table
from doctor.text.redact import redact


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """The contents of a host's answer: a capture for each fact it gave, and why the others are missing."""

    host: str
    captures: Mapping[str, Capture]
    missing: Mapping[str, MissingFact]
    complete: bool
    started: float
    ended: float
    sudo: str = ""


_TIMED_OUT = (124, 137)
"""Exit codes of `timeout` for a command that it killed; some versions return 128 + 9, for SIGKILL."""

_CUT_SHORT = 141
"""128 + SIGPIPE: the output exceeded its cap. (The shell does not count a line end exactly at the cap.)"""

_FRAME = re.compile(rb"^(?:o (?P<name>[\w-]+) (?P<rc>\d{1,3})|e) (?P<size>\d{1,9})$")


def read(answer: Answer, facts: Sequence[Fact[Any]], token: str) -> HostAnswer | UnreachedHost:
    """Split an answer into captures. A host whose answer has no frame counts as unreached."""
    out, err, sudo, done = _frames(
        answer.stdout, token[: frames.FRAME].encode(), token[frames.FRAME :].encode()
    )
    if not out:
        return _no_answer(answer)
    texts = {name: redact(payload.decode("utf-8", "replace")) for name, (_, payload, _) in out.items()}
    contents = _files("\n".join((texts.get(frames.FILES, ""), texts.get(frames.THERE, ""))))
    captures: dict[str, Capture] = {}
    missing: dict[str, MissingFact] = {}
    for fact in facts:
        if isinstance(fact.command, Read):
            reason = _why_no_files(fact.command, out)
            if reason:
                missing[fact.name] = MissingFact(fact.name, reason)
            else:
                captures[fact.name] = Capture(
                    fact.name, 0, _select(contents, (*fact.command.paths, *fact.command.there))
                )
            continue
        if fact.name not in out:
            missing[fact.name] = MissingFact(fact.name, _why_absent(fact, answer, done))
            continue
        rc, payload, whole = out[fact.name]
        stderr = redact(err.get(fact.name, b"").decode("utf-8", "replace"))
        truncated = bool(fact.cap and (len(payload) >= fact.cap - 1 or rc == _CUT_SHORT))
        if fact.group and rc == frames.NOT_HERE:
            missing[fact.name] = MissingFact(fact.name, f"there is no {fact.group.thing}", absent=True)
            continue
        reason = _why_unusable(fact, rc, len(payload), whole, truncated, stderr, sudo)
        if reason:
            missing[fact.name] = MissingFact(fact.name, reason)
        captures[fact.name] = Capture(fact.name, rc, texts[fact.name], stderr, truncated)
    return HostAnswer(
        answer.host,
        captures,
        missing,
        done and answer.end is AnswerEnd.DONE,
        answer.started,
        answer.ended,
        sudo,
    )


def _frames(
    stdout: bytes, token: bytes, rest: bytes
) -> tuple[dict[str, tuple[int, bytes, bool]], dict[str, bytes], str, bool]:
    out: dict[str, tuple[int, bytes, bool]] = {}
    err: dict[str, bytes] = {}
    sudo, done = "", False
    head = b"\n" + token + b" "
    heads = re.compile(b"\n%s(%s)? " % (token, rest))
    found = heads.search(stdout)
    while found:
        start = found.end()
        end = stdout.find(b"\n", start)
        if end < 0:
            break
        line = stdout[start:end]
        match = _FRAME.match(line)
        follow = end
        if match:
            size = int(match["size"])
            payload = stdout[end + 1 : end + 1 + size]
            whole = len(payload) == size and stdout[end + 1 + size : end + 2 + size] == b"\n"
            if match["name"]:
                name = match["name"].decode()
                if name not in out or (whole and not out[name][2]):
                    out[name] = (int(match["rc"]), payload, whole)
            else:
                for part in payload.split(head + b"n ")[1:]:
                    name, _, text = part.partition(b"\n")
                    err.setdefault(name.decode("ascii", "replace"), text.rstrip(b"\n"))
            follow = end + 1 + size if whole else end
        elif line == b"done" and (found[1] or b"") == rest:
            done = True
        elif line in (b"sudo ok", b"sudo refused"):
            sudo = line.decode().removeprefix("sudo ")
        found = heads.search(stdout, follow)
    return out, err, sudo, done


def _files(text: str) -> dict[str, list[str]]:
    lines = ((path_and_text(line)[0], line) for line in text.split("\n"))
    return grouped((path, line) for path, line in lines if path.startswith("/") and len(path) < len(line))


_WILD = frozenset("*?[")


def _select(contents: Mapping[str, Sequence[str]], patterns: Sequence[str]) -> str:
    lines: list[str] = []
    for pattern in patterns:
        if not _WILD.isdisjoint(pattern):
            lines += (line for path in contents if _fits(path, pattern) for line in contents[path])
        else:
            lines += contents.get(pattern, ())
    return "\n".join(lines)


@lru_cache(16384)
def _fits(path: str, pattern: str) -> bool:
    """Cached, because hosts of one cluster have the same files."""
    return fnmatchcase(path, pattern) and path.count("/") == pattern.count("/")


def _why_no_files(wanted: Read, told: Mapping[str, tuple[int, bytes, bool]]) -> str:
    """Empty if they are complete. A part of them would look like a host that lacks the rest."""
    for name in (frames.FILES, frames.THERE) if wanted.there else (frames.FILES,):
        if name not in told:
            return "the answer was cut off before it"
        rc, payload, whole = told[name]
        if not whole:
            return frames.DAMAGED
        if name == frames.FILES and (reason := _why_grep_failed(rc, payload)):
            return reason
    return ""


def _why_grep_failed(rc: int, payload: bytes) -> str:
    """Why grep failed; empty if it did not. It returns 1 or 2 on healthy hosts, which lack some files."""
    if rc in _TIMED_OUT:
        return f"reading files did not end within {frames.FILES_SECONDS} s, or was killed"
    if rc in (frames.CANNOT_RUN, frames.NOT_FOUND):
        return "grep, which reads the files, is not installed there or cannot be run"
    if rc > 128:
        return f"grep, which reads the files, was ended by signal {rc - 128}"
    if rc > 2:
        return f"grep, which reads the files, ended with {rc}"
    return "" if payload else "not a single file could be read"


def _why_absent(fact: Fact[Any], answer: Answer, done: bool) -> str:
    if (fact.slow or fact.group) and done:
        seconds = frames.SLOW_LANE_SECONDS + (fact.group.seconds if fact.group else 0)
        return f"its command did not end within {seconds} s {frames.NOT_STOPPED}"
    if answer.end is AnswerEnd.TIMEOUT:
        return "the host did not finish answering in time"
    if answer.end is AnswerEnd.LOST:
        return "the connection was lost before it came"
    if answer.end is AnswerEnd.FLOOD:
        return "the host printed too much; the rest was not read"
    return "the answer does not contain it"


def _why_unusable(
    fact: Fact[Any], rc: int, size: int, whole: bool, truncated: bool, stderr: str, sudo: str
) -> str:
    if not whole:
        return frames.DAMAGED
    if truncated and not fact.partial:
        return f"its output is larger than {fact.cap} bytes"
    if rc in fact.ok_rc or truncated:
        return ""
    if rc == frames.NEEDS_ROOT and fact.needs_root:
        return "sudo was refused there" if sudo == "refused" else "needs root (--sudo uses sudo -n)"
    if rc in _TIMED_OUT and not (fact.partial and size):
        left = f" or what was left of the {fact.group.seconds} s for its tool" if fact.group else ""
        return f"its command did not end within {fact.timeout} s{left}"
    if rc in _TIMED_OUT:
        return ""
    if fact.group and rc == frames.HUNG_BEFORE:
        return f"not asked: {fact.group.tool or 'its tool'} had hung before"
    if fact.group and rc == frames.NO_TIME:
        return f"the {fact.group.seconds} s for its tool were used up before it"
    if rc == frames.CANNOT_RUN:
        return "its command is a directory, or may not be executed there"
    if (
        rc == frames.NOT_FOUND and "loading shared librar" not in stderr
    ):  # it may only lack a library of its own
        return frames.ABSENT
    lines = [line.strip() for line in stderr.splitlines() if line.strip() and not _BESIDE.match(line)]
    said = "; ".join([line for line in lines if _RAISED.match(line)][-1:] or lines[:2])[:200]
    return f"its command ended with {rc}" + (f": {said}" if said else "")


_BESIDE = re.compile(r"[ \t]|Current thread |<no Python frame>|ERROR: ld\.so: object .* ignored\.$")
"""Lines of a stack, which Python prints below its error if it cannot start, and what the linker ignores."""
_RAISED = re.compile(r"[\w.]+(?:Error|Exception): ")
"""An exception is in the last of many lines; others first say what is wrong, and then how they are used."""


def _no_answer(answer: Answer) -> UnreachedHost:
    """Why a shell that was reached printed no frame."""
    first = redact((answer.stderr or answer.stdout)[:4000].decode("utf-8", "replace")).strip()
    detail = first.splitlines()[0][:400] if first else ""
    ended = f" (it ended with {answer.rc})" if answer.rc is not None else ""
    kind, problem, advice, login = _NO_ANSWER.get(answer.end.name, _NO_ANSWER["ANYTHING ELSE"])
    command = login.format(shlex.quote(answer.host))
    return UnreachedHost(
        answer.host, UnreachedKind[kind], problem.format(ended=ended), advice, (command,), detail
    )


_NO_ANSWER = {end: words for end, *words in table(__file__, "no_answer.txt")}

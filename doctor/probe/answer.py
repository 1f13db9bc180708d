"""Facts -> one POSIX sh script for a host, and the host's answer -> captures. Pure both ways.

The script prints frames, each headed by a random token, so that nothing else a login prints is taken for an
answer. It runs in lanes joined by pipes: the slowest fact | other slow facts | root's facts | the rest. A
later lane prints first and then passes on what the earlier ones said, so lanes run at once, need no temporary
file, and never mix their output. A command that cannot be killed (a dead network file system) costs its own
lane only: the last lane says that the answer is whole, while the shell still waits for the first.

Stdin stays open while the script runs; when it ends before the script does, the controller is gone, and the
script ends its whole session: itself and everything it started, also what `timeout` put into other groups.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from doctor.api import Ask, Fact, Read, Run
from doctor.model import Answer, Capture, End, Host, Missing, Reach, Unreached
from doctor.redact import redact
from doctor.transport import Script

FILES = "files"
FILES_SECONDS = 10
THERE = "there"
DAMAGED = "its output arrived damaged"
LAST = "clock-end"
"""The fact to ask for when all others are in."""
SLOW_LANE_SECONDS = 15
NEEDS_ROOT = 125
"""Printed as the exit code of a fact that only root can have, when the probe is not root."""

_PRELUDE = r"""
exec 3<&0 </dev/null
LC_ALL=C; PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin:/usr/local/bin; export LC_ALL PATH
command -v timeout >/dev/null 2>&1 || timeout() { [ "$1" = -s ] && shift 2; shift; "$@"; }
renice -n 5 -p $$ >/dev/null 2>&1
end() { # a session whose leader is outside our PID namespace has the number 0, as have those of strangers
  read -r _ _ _ _ _ s _ </proc/self/stat
  [ "${s:-0}" != 0 ] && pkill -KILL -s "$s" || kill -KILL 0
}
trap end TERM HUP
( while read -r _ <&3; do :; done; end ) >/dev/null 2>&1 & W=$!
exec 3<&-
f() { # name cap seconds command...
  n=$1 c=$2 s=$3; shift 3
  printf '\n%s n %s\n' "$T" "$n" >&2
  if [ "$c" -gt 0 ]; then
    o=$( exec 7>&1
         r=$( { { timeout -s KILL "$s" "$@" </dev/null 7>&- 8>&-; echo $? >&8; } | head -c "$c" >&7; } 8>&1 )
         exit ${r:-1} )
  else o=$(timeout -s KILL "$s" "$@" </dev/null)
  fi
  printf '\n%s o %s %s %s\n%s\n' "$T" "$n" $? ${#o} "$o"
}
there() { # patterns: those that name something
  o=
  for p; do [ ! -e "$p" ] || o="$o$p:
"; done
  printf '\n%s o there 0 %s\n%s\n' "$T" ${#o} "$o"
}
""".strip("\n")


@dataclass(frozen=True, slots=True)
class Heard:
    """What a host's answer holds: a capture for each fact that it gave, and why the others are missing."""

    host: str
    captures: Mapping[str, Capture]
    missing: Mapping[str, Missing]
    complete: bool
    started: float
    ended: float
    sudo: str = ""


def script(facts: Sequence[Fact[Any]], ask: Ask, token: str, *, sudo: bool = False) -> Script:
    """The whole probe of one host."""
    files = [fact.command for fact in facts if isinstance(fact.command, Read)]
    reads = sorted({path for command in files for path in command.paths})
    names = sorted({path for command in files for path in command.there})
    runs = [fact for fact in facts if isinstance(fact.command, Run)]
    slow = sorted((f for f in runs if f.slow and not f.needs_root), key=lambda f: -f.timeout)
    root = _calls((f for f in runs if f.needs_root), ask)
    last = _calls((f for f in runs if f.name == LAST), ask)
    rest = _calls((f for f in runs if not f.slow and not f.needs_root and f.name != LAST), ask)
    lines = [
        "{",
        f"T={token}",
        _PRELUDE,
        "{",
        *_lane(_calls(slow[:1], ask)),
        "} | {",
        *_lane([*_calls(slow[1:], ask), "cat"]),
        "} | {",
        *_lane([*_as_root(root, runs, token, sudo), "cat"]),
        "} | {",
        *_lane(
            [
                f"f {FILES} 0 {FILES_SECONDS} grep -sH '' {' '.join(reads)}" if reads else ":",
                f"there {' '.join(names)}",
                *rest,
                f"timeout {SLOW_LANE_SECONDS} cat",
                *last,
            ]
        ),
        f"printf '\\n%s done\\n' {token}; }}",
        "kill $W",
        "exit 0; }",
        "",
    ]
    return Script("exec sh -s", "\n".join(lines).encode(), f"{token} done".encode())


def _lane(lines: Sequence[str]) -> list[str]:
    """Frames go straight out; what the commands printed on stderr comes behind them, by fact."""
    return ["{ e=$( {", *lines, ":; } 2>&1 >&5 ); } 5>&1", "printf '\\n%s e %s\\n%s\\n' $T ${#e} \"$e\""]


def _calls(facts: Iterable[Fact[Any]], ask: Ask) -> list[str]:
    return [
        f"f {fact.name} {fact.cap or 0} {fact.timeout} sh -c {shlex.quote(fact.command.text(ask))}"
        if _needs_shell(fact.command.text(ask))
        else f"f {fact.name} {fact.cap or 0} {fact.timeout} {fact.command.text(ask)}"
        for fact in facts
        if isinstance(fact.command, Run)
    ]


def _needs_shell(text: str) -> bool:
    """A plain command is run as it is: one process less on the host."""
    return re.fullmatch(r"[\w./+%:=, -]+", text) is None


def _as_root(calls: list[str], runs: Sequence[Fact[Any]], token: str, sudo: bool) -> list[str]:
    """Root's facts: plainly for root, through one `sudo -n` when asked for, else named as missing."""
    if not calls:
        return []
    refused = [
        f"printf '\\n%s o %s {NEEDS_ROOT} 0\\n\\n' {token} {fact.name}" for fact in runs if fact.needs_root
    ]
    lines = ['if [ "$(id -u)" = 0 ]; then', *calls]
    if sudo:
        # Asked once: the marker comes from inside, so its absence is the refusal.
        inner = "\n".join([f"T={token}", _F_ONLY, f"printf '\\n%s sudo ok\\n' {token}", *_lane(calls)])
        lines += [
            "else",
            f"  s=$(sudo -n sh -c {shlex.quote(inner)} 2>&1)",
            f"  case $s in (*'{token} sudo ok'*) printf '%s\\n' \"$s\";;",
            f"  (*) printf '\\n%s sudo refused\\n' {token}",
            *refused,
            "  esac",
        ]
    else:
        lines += ["else", *refused]
    return [*lines, "fi"]


_F_ONLY = (
    "\n".join(line for line in _PRELUDE.splitlines() if line.startswith(("LC_ALL", "command -v timeout")))
    + _PRELUDE[_PRELUDE.index("\nf() {") :]
)


def through(script: Script, host: Host) -> Script:
    """The same script run inside what `--enter` enters (a container); the host's shell only passes it on."""
    if not host.enter:
        return script
    return Script(f"exec {host.enter} {script.command.removeprefix('exec ')}", script.stdin, script.last_line)


_TIMED_OUT = (124, 137)
"""`timeout` kills outright, since a command may ignore anything less; some versions then say 128 + 9."""

_CUT_SHORT = 141
"""128 + SIGPIPE: it printed on beyond its cap. (A line end at the very cap is not counted by the shell.)"""

_FRAME = re.compile(rb"^(?:o (?P<name>[\w-]+) (?P<rc>\d{1,3})|e) (?P<size>\d{1,9})$")


def read(answer: Answer, facts: Sequence[Fact[Any]], token: str) -> Heard | Unreached:
    """Split an answer into captures. An answer without a single frame is no answer."""
    out, err, sudo, done = _frames(answer.stdout, token.encode())
    if not out:
        return _no_answer(answer)
    texts = {name: redact(payload.decode("utf-8", "replace")) for name, (_, payload, _) in out.items()}
    contents = _files("\n".join((texts.get(FILES, ""), texts.get(THERE, ""))))
    captures: dict[str, Capture] = {}
    missing: dict[str, Missing] = {}
    for fact in facts:
        if isinstance(fact.command, Read):
            reason = _why_no_files(fact.command, out)
            if reason:
                missing[fact.name] = Missing(fact.name, reason)
            else:
                captures[fact.name] = Capture(
                    fact.name, 0, _select(contents, (*fact.command.paths, *fact.command.there))
                )
            continue
        if fact.name not in out:
            missing[fact.name] = Missing(fact.name, _why_absent(fact, answer, done))
            continue
        rc, payload, whole = out[fact.name]
        stderr = redact(err.get(fact.name, b"").decode("utf-8", "replace"))
        truncated = bool(fact.cap and (len(payload) >= fact.cap - 1 or rc == _CUT_SHORT))
        reason = _why_unusable(fact, rc, len(payload), whole, truncated, stderr, sudo)
        if reason:
            missing[fact.name] = Missing(fact.name, reason)
        captures[fact.name] = Capture(fact.name, rc, texts[fact.name], stderr, truncated)
    return Heard(
        answer.host, captures, missing, done and answer.end is End.DONE, answer.started, answer.ended, sudo
    )


def _frames(
    stdout: bytes, token: bytes
) -> tuple[dict[str, tuple[int, bytes, bool]], dict[str, bytes], str, bool]:
    out: dict[str, tuple[int, bytes, bool]] = {}
    err: dict[str, bytes] = {}
    sudo, done = "", False
    head = b"\n" + token + b" "
    position = stdout.find(head)
    while position >= 0:
        start = position + len(head)
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
                out.setdefault(match["name"].decode(), (int(match["rc"]), payload, whole))
            else:
                for part in payload.split(head + b"n ")[1:]:
                    name, _, text = part.partition(b"\n")
                    err.setdefault(name.decode("ascii", "replace"), text.rstrip(b"\n"))
            follow = end + 1 + size if whole else end
        elif line == b"done":
            done = True
        elif line in (b"sudo ok", b"sudo refused"):
            sudo = line.decode().removeprefix("sudo ")
        position = stdout.find(head, follow)
    return out, err, sudo, done


def _files(text: str) -> dict[str, list[str]]:
    contents: dict[str, list[str]] = {}
    for line in text.split("\n"):
        path, colon, _ = line.partition(":")
        if colon and path.startswith("/"):
            contents.setdefault(path, []).append(line)
    return contents


def _select(contents: Mapping[str, Sequence[str]], patterns: Sequence[str]) -> str:
    lines: list[str] = []
    for pattern in patterns:
        if any(sign in pattern for sign in "*?["):
            for path, found in contents.items():
                if _fits(path, pattern):
                    lines += found
        else:
            lines += contents.get(pattern, ())
    return "\n".join(lines)


@lru_cache(16384)
def _fits(path: str, pattern: str) -> bool:
    """Remembered: hosts of one cluster have the same files."""
    return fnmatchcase(path, pattern) and path.count("/") == pattern.count("/")


def _why_no_files(wanted: Read, frames: Mapping[str, tuple[int, bytes, bool]]) -> str:
    """Half of the files would look like a host that lacks the others."""
    for name in (FILES, THERE) if wanted.there else (FILES,):
        if name not in frames:
            return "the answer was cut off before it"
        rc, _, whole = frames[name]
        if not whole:
            return DAMAGED
        if rc in _TIMED_OUT:
            return f"reading files did not end within {FILES_SECONDS} s"
    return ""


def _why_absent(fact: Fact[Any], answer: Answer, done: bool) -> str:
    if fact.slow and done:
        return f"its command did not end within {SLOW_LANE_SECONDS} s and could not be stopped"
    if answer.end is End.TIMEOUT:
        return "the host did not finish answering in time"
    if answer.end is End.LOST:
        return "the connection was lost before it came"
    if answer.end is End.FLOOD:
        return "the host printed too much; the rest was not read"
    return "the answer does not hold it"


def _why_unusable(
    fact: Fact[Any], rc: int, size: int, whole: bool, truncated: bool, stderr: str, sudo: str
) -> str:
    if not whole:
        return DAMAGED
    if truncated and not fact.partial:
        return f"its output is larger than {fact.cap} bytes"
    if rc in fact.ok_rc or truncated:
        return ""
    if rc == NEEDS_ROOT and fact.needs_root:
        return "sudo was refused there" if sudo == "refused" else "needs root (--sudo uses sudo -n)"
    if rc in _TIMED_OUT and not (fact.partial and size):
        return f"its command did not end within {fact.timeout} s"
    if rc in _TIMED_OUT:
        return ""
    if rc in (126, 127):
        return "its command is not installed there"
    last = stderr.strip().splitlines()[-1:] or [""]
    return f"its command ended with {rc}" + (f": {last[0][:200]}" if last[0] else "")


def _no_answer(answer: Answer) -> Unreached:
    """The shell was reached and did not give one frame."""
    first = redact((answer.stderr or answer.stdout)[:400].decode("utf-8", "replace")).strip()
    detail = first.splitlines()[0] if first else ""
    login = ("ssh", shlex.quote(answer.host), "true")
    if answer.end is End.TIMEOUT:
        return Unreached(
            answer.host,
            Reach.SILENT,
            "the login works, but its shell never answers",
            "Log in by hand: a start file of the shell may wait for a prompt or for a hung network home.",
            (" ".join(login),),
            detail,
        )
    if answer.end is End.FLOOD:
        return Unreached(
            answer.host,
            Reach.FLOOD,
            "the login shell prints without end instead of running the probe",
            "Look at the start files of the shell (.profile, .bashrc) on that host.",
            (" ".join(login),),
            detail,
        )
    if answer.end is End.LOST:
        return Unreached(
            answer.host,
            Reach.LOST,
            "the connection was lost before the host answered",
            "Look at the SSH server's log on that host and at the network in between.",
            (f"ssh -v {shlex.quote(answer.host)} true",),
            detail,
        )
    return Unreached(
        answer.host,
        Reach.NO_SHELL,
        "the login works, but no POSIX shell ran there"
        + (f" (it ended with {answer.rc})" if answer.rc is not None else ""),
        "The account needs a login shell that can start sh.",
        (f"ssh {shlex.quote(answer.host)} 'sh -c true'",),
        detail,
    )

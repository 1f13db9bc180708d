"""Facts -> one POSIX sh script for a host, and the host's answer -> captures. Pure both ways.

The script prints frames, each headed by a random token, so that nothing else a login prints is taken for an
answer. It runs in lanes joined by pipes: the slowest fact and tools of devices | other slow facts | root's
facts | the rest. A later lane prints first and then passes on what the earlier ones said, so lanes run at
once, need no temporary file, and never mix their output. A command that cannot be killed (a dead network file
system) costs its own lane only: the last lane says that the answer is whole, while the shell still waits for
the first.

Stdin stays open while the script runs; when it ends before the script does, the controller is gone, and the
script ends its whole session: itself and everything it started, also what `timeout` put into other groups.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from doctor.api import Ask, Fact, Group, Read, Run
from doctor.model import Host
from doctor.probe.frames import FILES, FILES_SECONDS, LAST, NEEDS_ROOT, NOT_HERE, SLOW_LANE_SECONDS
from doctor.transport import Script
from doctor.transport.containers import entered

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
any() { for p; do [ -e "$p" ] && return; done; return 1; }
now() { read -r u _ </proc/uptime; u=${u%.*}; }
g() { # name cap seconds command... before the moment E
  now
  if [ $((E-u)) -gt "$3" ]; then f "$@"
  elif [ "$E" -gt "$u" ]; then n=$1 c=$2; shift 3; f "$n" "$c" $((E-u)) "$@"
  else printf '\n%s o %s 122 0\n\n' "$T" "$1"; fi
}
there() { # patterns: those that name something
  o=
  for p; do [ ! -e "$p" ] || o="$o$p:
"; done
  printf '\n%s o there 0 %s\n%s\n' "$T" ${#o} "$o"
}
""".strip("\n")


def script(facts: Sequence[Fact[Any]], ask: Ask, token: str, *, sudo: bool = False) -> Script:
    """The whole probe of one host."""
    files = [fact.command for fact in facts if isinstance(fact.command, Read)]
    reads = sorted({path for command in files for path in command.paths})
    names = sorted({path for command in files for path in command.there})
    runs = [fact for fact in facts if isinstance(fact.command, Run)]
    tools = _groups([f for f in runs if f.group and not f.needs_root], ask, token)
    slow = sorted((f for f in runs if f.slow and not f.needs_root and not f.group), key=lambda f: -f.timeout)
    root = _calls((f for f in runs if f.needs_root and not f.group), ask)
    root += _groups([f for f in runs if f.needs_root and f.group], ask, token)
    last = _calls((f for f in runs if f.name == LAST), ask)
    rest = _calls((f for f in runs if not (f.slow or f.needs_root or f.group or f.name == LAST)), ask)
    lines = [
        "{",
        f"T={token}",
        _PRELUDE,
        f"P=$$ w={SLOW_LANE_SECONDS}; export P",
        *(f"any {' '.join(group.where)} && w=$((w+{group.seconds}))" for group in _grouped(runs)),
        "{",
        *_lane([*_calls(slow[:1], ask), *tools]),
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
                "timeout $w cat && all=1",
                *last,
                # The last line is where stdin ends; a lane that hangs is then ended by who watches.
                '[ -z "$all" ] || kill $W',
            ]
        ),
        f"printf '\\n%s done\\n' {token}; }}",
        # Waited for: PID 1 of a container often is the job itself, which reaps nobody.
        "kill $W; wait $W",
        "exit 0; }",
        "",
    ]
    return Script("exec sh -s", "\n".join(lines).encode(), f"{token} done".encode())


def _lane(lines: Sequence[str]) -> list[str]:
    """Frames go straight out; what the commands printed on stderr comes behind them, by fact."""
    return ["{ e=$( {", *lines, ":; } 2>&1 >&5 ); } 5>&1", "printf '\\n%s e %s\\n%s\\n' $T ${#e} \"$e\""]


def _calls(facts: Iterable[Fact[Any]], ask: Ask) -> list[str]:
    return [_call(fact, fact.command.text(ask)) for fact in facts if isinstance(fact.command, Run)]


def _call(fact: Fact[Any], text: str) -> str:
    """A plain command is run as it is, and for none a frame is printed: processes saved on the host."""
    if not text:
        return f"printf '\\n%s o %s 0 0\\n\\n' $T {fact.name}"
    run = text if re.fullmatch(r"[\w./+%:=, -]+", text) else f"sh -c {shlex.quote(text)}"
    return f"f {fact.name} {fact.cap or 0} {fact.timeout} {run}"


def _grouped(runs: Iterable[Fact[Any]]) -> dict[Group, list[Fact[Any]]]:
    groups: dict[Group, list[Fact[Any]]] = {}
    for fact in runs:
        if fact.group:
            groups.setdefault(fact.group, []).append(fact)
    return groups


def _groups(runs: Iterable[Fact[Any]], ask: Ask, token: str) -> list[str]:
    """The facts of each group behind one question: whether there is anything for its tool to look at."""
    lines: list[str] = []
    for group, facts in _grouped(runs).items():
        absent = [f"printf '\n%s o %s {NOT_HERE} 0\n\n' {token} {fact.name}" for fact in facts]
        calls = [f"g{call[1:]}" if call.startswith("f ") else call for call in _calls(facts, ask)]
        where = " ".join(group.where)
        lines += [f"if any {where}; then now; E=$((u+{group.seconds}))", *calls, "else", *absent, "fi"]
    return lines


def _as_root(calls: list[str], runs: Sequence[Fact[Any]], token: str, sudo: bool) -> list[str]:
    """Root's facts: plainly for root, through one `sudo -n` when asked for, else named as missing."""
    if not calls:
        return []
    refused = [line for fact in runs if fact.needs_root for line in _refused(fact, token)]
    lines = ['if [ "$(id -u)" = 0 ]; then', *calls]
    if sudo:
        # Asked once: the marker comes from inside, so its absence is the refusal.
        # $1 is the probe: what only root can end looks whether it is still there.
        start = [f"T={token} P=$1; export P", _F_ONLY, f"printf '\\n%s sudo ok\\n' {token}"]
        inner = "\n".join([*start, *_lane(calls)])
        lines += [
            "else",
            f"  s=$(sudo -n sh -c {shlex.quote(inner)} sh $P 2>&1)",
            f"  case $s in (*'{token} sudo ok'*) printf '%s\\n' \"$s\";;",
            f"  (*) printf '\\n%s sudo refused\\n' {token}",
            *refused,
            "  esac",
        ]
    else:
        lines += ["else", *refused]
    return [*lines, "fi"]


def _refused(fact: Fact[Any], token: str) -> list[str]:
    """Where there is nothing to look at, no root is missed."""
    lacks_root = f"printf '\\n%s o %s {NEEDS_ROOT} 0\\n\\n' {token} {fact.name}"
    if not fact.group:
        return [lacks_root]
    absent = f"printf '\\n%s o %s {NOT_HERE} 0\\n\\n' {token} {fact.name}"
    return [f"if any {' '.join(fact.group.where)}; then {lacks_root}; else {absent}; fi"]


_F_ONLY = (
    "\n".join(line for line in _PRELUDE.splitlines() if line.startswith(("LC_ALL", "command -v timeout")))
    + _PRELUDE[_PRELUDE.index("\nf() {") :]
)


def through(script: Script, host: Host) -> Script:
    """The same script run inside what `--enter` enters (a container); the host's shell only passes it on."""
    if not host.enter:
        return script
    command = f"exec {entered(host)} {script.command.removeprefix('exec ')}"
    return Script(command, script.stdin, script.last_line)

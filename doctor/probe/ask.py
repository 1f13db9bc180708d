"""Facts -> one POSIX sh script for a host. Pure.

docs/architecture.md says what the script does. It is sent over stdin, because others can read command lines.
Its lanes are joined by pipes: the slowest fact and tools of devices | other slow facts | root's facts | the
rest. A later lane prints first and then passes on the output of the earlier ones, so lanes run at the same
time, need no temporary file, and never mix their output. A command that cannot be killed (a dead network file
system) costs only its own lane: the last lane reports that the answer is complete, while the shell still
waits for the first.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from doctor.api import Ask, Fact, Group, Read, Run, grouped
from doctor.model import Host
from doctor.probe.frames import (
    FILES,
    FILES_SECONDS,
    FRAME,
    LAST,
    NEEDS_ROOT,
    NOT_HERE,
    QUICK_SECONDS,
    SLOW_LANE_SECONDS,
)
from doctor.probe.shell import CALL, PRELUDE, QUICK, TIMEOUT, TOOLS
from doctor.transport import Script
from doctor.transport.containers.command import entered, entered_with_image
from doctor.transport.question import ProbeQuestion

MOST_OF_ROOT = 8 << 20
"""Bytes that sudo may print: the shell keeps them in memory until it ends."""


def script(facts: Sequence[Fact[Any]], ask: Ask, token: str, *, sudo: bool = False) -> Script:
    """The whole probe of one host."""
    reads = sorted({path for fact in facts if isinstance(fact.command, Read) for path in fact.command.paths})
    names = sorted({path for fact in facts if isinstance(fact.command, Read) for path in fact.command.there})
    runs = [fact for fact in facts if isinstance(fact.command, Run)]
    texts = {fact.name: fact.command.text(ask) for fact in runs if isinstance(fact.command, Run)}
    asked = [fact for fact in runs if texts[fact.name]]
    alone = [fact for fact in asked if not fact.group]
    quick = [fact for fact in alone if not fact.cap or fact.ends]
    late = (fact.command for fact in alone if fact.cap and not fact.ends)
    if any(isinstance(run, Run) and not run.only_if for run in late):
        quick = [fact for fact in quick if fact.name != LAST]  # the clock is read again when all else was
    given = {fact.name: texts[fact.name] for fact in quick if not _PLAIN.fullmatch(texts[fact.name])}
    given |= {FILES: f"exec grep -sH '' {' '.join(reads)}"} if reads else {}
    lines = [
        "{",
        f"T={token[:FRAME]}",
        PRELUDE,
        *(f"{_variable(name)}={shlex.quote(text)}" for name, text in given.items()),
        f"q={shlex.quote(_in_one_shell(quick, texts, with_files=bool(reads)))}",
        f"export U q {' '.join(map(_variable, given))}",
        f"there {' '.join(names)}",
        *(
            f'any {fact.command.only_if} || {{ say 0 {fact.name}; a="${{a}}{fact.name} "; }}'
            for fact in alone
            if isinstance(fact.command, Run) and fact.command.only_if
        ),
        "export a",
        "! command -v timeout >/dev/null 2>&1 ||",
        f"  a=$a$(exec timeout -s KILL {QUICK_SECONDS} $N sh -c 'eval \"$q\"' 2>/dev/null)",
        *_known_answers(runs, texts, sudo),
        f"for n in {' '.join([*([FILES] if reads else []), *(fact.name for fact in alone)])}; do",
        '  case " $a" in (*" $n "*) ;; (*) left=1; esac',
        "done",
        '[ -z "$left" ] || {',
        *_lanes(asked, texts, given, token, sudo),
        "exit 0; }",
        "{ kill -USR1 $W; wait $W; } 2>/dev/null",
        f"printf '\\n%s done\\n' {token}",
        "exit 0; }",
        "",
    ]
    question = ProbeQuestion(token, tuple(fact.name for fact in facts), ask)
    return Script("exec sh -s", "\n".join(lines).encode(), f"{token} done".encode(), question)


_PLAIN = re.compile(r"[\w./+%:=, -]+")
"""A command that needs no shell of its own."""


def _variable(name: str) -> str:
    return "c_" + name.replace("-", "_")


def _in_one_shell(facts: Sequence[Fact[Any]], texts: Mapping[str, str], *, with_files: bool) -> str:
    """The quick commands for one shell. Slow ones come last, because nothing runs after one that hangs."""

    def call(fact: Fact[Any]) -> str:
        text = texts[fact.name]
        return f"f {fact.name} {fact.cap or 0} " + (
            shlex.quote(f"exec {text}") if _PLAIN.fullmatch(text) else f'"${_variable(fact.name)}"'
        )

    root = [call(fact) for fact in facts if fact.needs_root]
    lines = [
        QUICK,
        *([f'f {FILES} 0 "${_variable(FILES)}"'] if with_files else []),
        *(call(fact) for fact in facts if not (fact.slow or fact.needs_root or fact.name == LAST)),
        *(['if [ "$U" = 0 ]; then', *root, "fi"] if root else []),
        *map(call, sorted((f for f in facts if f.slow and not f.needs_root), key=lambda f: f.timeout)),
        *(call(fact) for fact in facts if fact.name == LAST),
    ]
    return "\n".join(lines)


def _known_answers(runs: Sequence[Fact[Any]], texts: Mapping[str, str], sudo: bool) -> list[str]:
    """The answers that are known without running anything: there is nothing to look at, or it needs root."""
    lines = []
    if nothing := [fact.name for fact in runs if not fact.group and not texts[fact.name]]:
        lines.append(f"say 0 {' '.join(nothing)}")
    root = [fact.name for fact in runs if fact.needs_root and not fact.group and texts[fact.name]]
    if root and not sudo:
        listed = " ".join(root)
        lines.append(f'[ "$U" = 0 ] || {{ say {NEEDS_ROOT} {listed}; a="${{a}}{listed} "; }}')
    for group, facts in _by_group(runs).items():
        lines.append(f"if any {' '.join(group.where)}; then")
        lacking = [fact.name for fact in facts if fact.needs_root and not sudo]
        if lacking:
            lines.append(f'  [ "$U" = 0 ] || say {NEEDS_ROOT} {" ".join(lacking)}')
        lines += ["  left=1", f"else say {NOT_HERE} {' '.join(fact.name for fact in facts)}; fi"]
    return lines


def _lanes(
    runs: Sequence[Fact[Any]], texts: Mapping[str, str], given: Mapping[str, str], token: str, sudo: bool
) -> list[str]:
    """The commands of the lanes, each with its limit; lanes run at the same time."""

    def calls(facts: Iterable[Fact[Any]]) -> list[str]:
        return [_call(fact, texts[fact.name], given) for fact in facts]

    tools = _groups([f for f in runs if f.group and not f.needs_root], texts)
    slow = sorted((f for f in runs if f.slow and not f.needs_root and not f.group), key=lambda f: -f.timeout)
    return [
        "exec 5>&-; unset q",
        TIMEOUT,
        CALL,
        f"P=$$ w={SLOW_LANE_SECONDS}; export P",
        *(f"any {' '.join(group.where)} && w=$((w+{group.seconds}))" for group in _by_group(runs)),
        "{",
        *_lane([*calls(slow[:1]), *tools]),
        "} | {",
        *_lane([*calls(slow[1:]), "cat"]),
        "} | {",
        *_lane([*_as_root([f for f in runs if f.needs_root], texts, given, token, sudo), "cat"]),
        "} | {",
        *_lane(
            [
                f'f {FILES} 0 {FILES_SECONDS} sh -c "${_variable(FILES)}"' if FILES in given else ":",
                *calls([f for f in runs if not (f.slow or f.needs_root or f.group or f.name == LAST)]),
                "timeout $w cat && all=1",
                *calls(f for f in runs if f.name == LAST),
                # Stdin ends after the last line; then the watcher ends any lane that hangs.
                '[ -z "$all" ] || kill -USR1 $W',
            ]
        ),
        f"printf '\\n%s done\\n' {token}; }}",
        # Wait for the watcher: PID 1 of a container is often the job itself, which reaps no children.
        "{ kill -USR1 $W; wait $W; } 2>/dev/null",
    ]


def _lane(lines: Sequence[str]) -> list[str]:
    """A lane prints its frames at once, and then what the commands printed on stderr, by fact."""
    return ["{ e=$( {", *lines, ":; } 2>&1 >&5 ); } 5>&1", "printf '\\n%s e %s\\n%s\\n' $T ${#e} \"$e\""]


def _call(fact: Fact[Any], text: str, given: Mapping[str, str]) -> str:
    """One command with its limit. A plain command runs without a shell: one process fewer on the host."""
    if fact.name in given:
        run = f'sh -c "${_variable(fact.name)}"'
    else:
        quoted = '"$D"'.join(map(shlex.quote, text.split(TOOLS)))  # what many have in common is sent once
        run = text if _PLAIN.fullmatch(text) else f"sh -c {quoted}"
    return f"f {fact.name} {fact.cap or 0} {fact.timeout} {run}"


def _by_group(runs: Iterable[Fact[Any]]) -> dict[Group, list[Fact[Any]]]:
    return grouped((fact.group, fact) for fact in runs if fact.group)


def _groups(runs: Iterable[Fact[Any]], texts: Mapping[str, str]) -> list[str]:
    """The commands of each group. They run only if there is anything for its tool to look at."""
    lines: list[str] = []
    for group, facts in _by_group(runs).items():
        first, *rest = [f"g{_call(fact, texts[fact.name], {})[1:]}" for fact in facts]
        if group.together:  # each passes on whole what those before it in the pipe have printed
            rest = [" | ".join([*rest[:1], *(f"{{ {call}; cat; }}" for call in rest[1:])])] if rest else []
        calls = [first, *rest]
        lines += [f"if any {' '.join(group.where)}; then now; E=$((u+{group.seconds})) H=", *calls, "fi"]
    return lines


def _as_root(
    facts: Sequence[Fact[Any]], texts: Mapping[str, str], given: Mapping[str, str], token: str, sudo: bool
) -> list[str]:
    """The commands for root's facts: run directly as root, or through one `sudo -n` if requested."""
    if not facts:
        return []

    def calls(given: Mapping[str, str]) -> list[str]:
        plain = [_call(fact, texts[fact.name], given) for fact in facts if not fact.group]
        return [*plain, *_groups(facts, texts)]

    lines = ['if [ "$U" = 0 ]; then :', *calls(given)]
    if sudo:
        # One call: the marker is printed inside sudo, so its absence means a refusal.
        # $1 is the probe: processes that only root can end check whether it still runs.
        start = [
            f"T={token[:FRAME]} P=$1 N=$2 LC_ALL=C; export P LC_ALL",
            TIMEOUT,
            CALL,
            "printf '\\n%s sudo ok\\n' $T",
        ]
        inner = "\n".join(["{", *start, *_lane(calls({})), "exit; }"])
        lines += [
            "else",
            f"  s=$(printf '%s\\n' {shlex.quote(inner)} | sudo -n sh -s $P \"$N\" 2>&1 |",
            f"    head -c {MOST_OF_ROOT})",
            '  case $s in (*"$T sudo ok"*) printf \'%s\\n\' "$s";;',
            "  (*) printf '\\n%s sudo refused\\n' $T",
            f"  say {NEEDS_ROOT} {' '.join(fact.name for fact in facts if not fact.group)}",
            *(
                f"  ! any {' '.join(group.where)} || say {NEEDS_ROOT} {' '.join(f.name for f in listed)}"
                for group, listed in _by_group(facts).items()
            ),
            "  esac",
        ]
    return [*lines, "fi"]


def through(script: Script, host: Host) -> Script:
    """The same script run inside what `--enter` enters (a container); the host's shell only passes it on."""
    if not host.enter:
        return script
    of_image = isinstance(script.question, ProbeQuestion) and "image" in script.question.facts
    entry = entered_with_image(host) if of_image else entered(host)
    return Script(f"exec {entry} {script.command.removeprefix('exec ')}", script.stdin, script.last_line)

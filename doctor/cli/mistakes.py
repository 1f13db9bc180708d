"""The message for a command line that is not understood, with what was probably meant."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from doctor.cli.help import below
from doctor.cli.otherwords import COMMANDS, LOGS, OPTIONS, SAID
from doctor.errors import UsageError, suggest
from doctor.exam.request import Request
from doctor.report.out.formats import FORMATS

_TO_STDOUT = {form.option for form in FORMATS if form.stdout}
HOST = re.compile(r"[A-Za-z0-9@][\w.,@\[\]-]*", re.ASCII)


class WrongValue(typer.BadParameter):
    """A value that an option does not take, and what was probably meant."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def mistake(error: Any, arguments: Sequence[str]) -> UsageError:
    """The message for an error of typer's own parser."""
    context, message = getattr(error, "ctx", None), str(error.format_message())
    named = f"doctor {arguments[0]}" if arguments and arguments[0].isalpha() else "doctor"
    hint = f"Try '{context.command_path if context else named} -h' for help."
    param = getattr(error, "param", None)
    if param and error.message:
        option = max(param.opts, key=len)
        said = error.message.removeprefix("Value error, ")
        message = f"{option if option.startswith('-') else param.metavar or option}: {said}"
        hint = getattr(error, "hint", "") or hint
    elif context and hasattr(error, "possibilities"):
        typed = _Typed.find(error.option_name, arguments)
        message = f"No such option: {typed.name}"
        hint = _of_option(typed, context) or hint
    elif (option := getattr(error, "option_name", "")) in _TO_STDOUT and "requires an argument" in message:
        hint = f"Type: {option} FILE, or {option} - for stdout."
    elif found := re.search(r"extra argument\(s\) \((.*)\)", message, re.DOTALL):
        message = f"Unexpected: {found[1]}"
    elif context and (found := re.match(r"(No such command '(.*)')\.", message, re.DOTALL)):
        message, word = found.groups()
        hint = suggest(word, _visible(context.command)) or _as_other(word, context) or hint
    return UsageError(message if message.endswith(".") else f"{message}.", hint)


def _as_other(word: str, context: Any) -> str:
    """What to type for a word in the place of a command."""
    meant, inner = COMMANDS.get(word.lower()), _visible(context.command)
    if context.parent:
        of_file = f"check {shlex.quote(word)}" if os.path.isfile(word) and "check" in inner else ""
        meant = meant if meant in inner else of_file
        return f"Type: {context.command_path} {meant}" if meant else ""
    if meant:
        return f"Type: doctor {meant}"
    from doctor.targets.hostwords import file_word

    if (found := file_word(word)) and found.command:
        return f"Type: {found.command}"
    if said := SAID.get(f"--{word}", ""):
        return said
    is_host = HOST.fullmatch(word) and re.search(r"[\d.,@\[]", word)
    return f"Hosts go after a command: doctor check {shlex.quote(word)}" if is_host else ""


@dataclass(frozen=True, slots=True)
class _Typed:
    """An option as it was typed, and the value behind it, if there is one."""

    name: str
    value: str

    @classmethod
    def find(cls, name: str, arguments: Sequence[str]) -> _Typed:
        """`name` is what typer reports: for `-format` it is -f."""
        for at, word in enumerate(arguments):
            head, equals, value = word.partition("=")
            if attached := re.fullmatch(rf"({re.escape(name)})([0-9]+)", head):
                return cls(attached[1], attached[2])
            single = len(name) == 2 and word.startswith("-") and not word.startswith("--")
            if head == name or (single and name[1] in head):
                follows = arguments[at + 1] if at + 1 < len(arguments) else ""
                return cls(head, value if equals else "" if follows.startswith("-") else follows)
        return cls(name, "")


def _of_option(typed: _Typed, context: Any) -> str:
    """What was probably meant: an option under the name that other programs use, an option of another
    command, or a similar option of this command.
    """
    own = [name for param in _shown(context.command) for name in param.opts if name.startswith("--")]
    doubled = f"--{typed.name.strip('-').replace('_', '-')}"
    if doubled in own:
        return f"Did you mean '{doubled}'?"
    names = (typed.name.replace("_", "-"), doubled)
    if said := next((SAID[name] for name in names if name in SAID), ""):
        return said
    ours = next((OPTIONS[name] for name in names if name in OPTIONS), "")
    if ours and (said := _as_ours(ours, typed, context, own)):
        return said
    if names[0] in LOGS and _names_something(context.command, "WHAT"):
        value = shlex.quote(typed.value or "FILE")
        return f"Logs are named without an option: {context.command_path} {value}"
    if takers := _takers(typed.name, context):
        where = "It is an option of" if context.parent else "Options go after a command: it is one of"
        more = f"; {context.command_path} -h lists its own" if context.parent else ""
        return f"{where} {', '.join(takers)}{more}."
    if ours and (takers := _takers(ours, context)):
        return f"Here it is {ours}, an option of {', '.join(takers)}."
    return suggest(typed.name, own)


def refuse_places_of_no_pods(request: Request, context: Any) -> None:
    """Raises UsageError for options that say where pods are, if --pods does not say which."""
    who = request.who
    if who.pods is not None or not request.typed & {"--namespace", "--container", "--context"}:
        return
    hint = "Such as --pods app=train."
    if "--namespace" in request.typed:
        own = [name for param in _shown(context.command) for name in param.opts]
        hint = _as_ours("HOSTS", _Typed("-n", who.namespace or ""), context, own) or hint
    elif who.container:
        hint = f"A container on hosts: --enter {shlex.quote(f'docker exec -i {shlex.quote(who.container)}')}."
    raise UsageError("-n, --container and --context say where pods are, and --pods which.", hint)


def _names_something(command: Any, what: str) -> bool:
    """Whether the command has an argument with this metavar."""
    return any(param.metavar == what for param in _shown(command))


def _as_ours(ours: str, typed: _Typed, context: Any, own: Sequence[str]) -> str:
    """What to type instead of another program's option, if this command has it."""
    value = typed.value
    if ours == "HOSTS" and _names_something(context.command, ours):
        if not value.isdigit():
            host = shlex.quote(value) if HOST.fullmatch(value) else "'node[1-4]'"
            return f"Hosts are named without an option: {context.command_path} {host}"
        ranks = typed.name.startswith("-n") and "--ranks-per-host" in own
        more = f" Ranks: --ranks-per-host {value}." if ranks else ""
        return f"Hosts are named, not counted: {context.command_path} 'node[1-4]'.{more}"
    name, _, suffix = value.rpartition(".")
    if ours in ("--json", "--html") and f"--{suffix}" in own:
        ours, value = f"--{suffix}", value if name else ""
    if ours == "--html" not in own and "--output" in own:
        ours = "--output"
    if ours not in own:
        return ""
    takes = next(param for param in _shown(context.command) if ours in param.opts)
    if takes.is_flag:
        value = ""
    elif not HOST.fullmatch(value):
        value = "-" if ours == "--json" else takes.metavar or ""
    return f"Did you mean {' '.join(filter(None, (ours, shlex.quote(value) if value else '')))!r}?"


def _takers(option: str, context: Any) -> list[str]:
    """The other commands that have this option."""
    every = below(context.find_root())
    return [e.command_path for e in every if any(option in param.opts for param in _shown(e.command))]


def _shown(command: Any) -> Iterator[Any]:
    yield from (param for param in command.params if not getattr(param, "hidden", False))


def _visible(group: Any) -> list[str]:
    return [name for name, command in group.commands.items() if not command.hidden]

"""The message for a command line that is not understood, with what was probably meant."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from doctor.cli.help import below
from doctor.cli.otherwords import COMMANDS, OPTIONS, SAID
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
        typed = _as_typed(error.option_name, arguments)
        message = f"No such option: {typed}"
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


def _of_option(typed: str, context: Any) -> str:
    """What was probably meant: an option under the name that other programs use, an option of another
    command, or a similar option of this command.
    """
    own = [name for param in _shown(context.command) for name in param.opts if name.startswith("--")]
    doubled = f"--{typed.strip('-').replace('_', '-')}"
    if doubled in own:
        return f"Did you mean {doubled!r}?"
    names = (typed.replace("_", "-"), doubled)
    if said := next((SAID[name] for name in names if name in SAID), ""):
        return said
    ours = next((OPTIONS[name] for name in names if name in OPTIONS), "")
    if ours == "HOSTS" and any(param.metavar == ours for param in _shown(context.command)):
        return f"Hosts are named without an option: {context.command_path} 'node[1-4]'"
    if ours in own:
        return f"Did you mean {ours!r}?"
    if takers := _takers(typed, context):
        where = "It is an option of" if context.parent else "Options go after a command: it is one of"
        more = f"; {context.command_path} -h lists its own" if context.parent else ""
        return f"{where} {', '.join(takers)}{more}."
    if ours and (takers := _takers(ours, context)):
        return f"Here it is {ours}, an option of {', '.join(takers)}."
    return suggest(typed, own)


def _as_typed(name: str, arguments: Sequence[str]) -> str:
    """The option as it was typed: for `-format`, typer's parser reports -f."""
    words = (word.partition("=")[0] for word in arguments)
    return next((w for w in words if w == name or (w[:1] == "-" != w[1:2] and name[1] in w)), name)


def refuse_places_of_no_pods(request: Request) -> None:
    """Raises UsageError for options that say where pods are, if nothing says which."""
    who = request.who
    if who.of_cluster or not request.typed & {"--namespace", "--container", "--context"}:
        return
    hint = "Such as --pods app=train."
    if who.container:
        hint = f"A container on hosts: --enter {shlex.quote(f'docker exec -i {shlex.quote(who.container)}')}."
    raise UsageError(
        "-n, --container and --context say where pods are, and --pods or --on-nodes which.", hint
    )


def _takers(option: str, context: Any) -> list[str]:
    """The other commands that have this option."""
    every = below(context.find_root())
    return [e.command_path for e in every if any(option in param.opts for param in _shown(e.command))]


def _shown(command: Any) -> Iterator[Any]:
    yield from (param for param in command.params if not getattr(param, "hidden", False))


def _visible(group: Any) -> list[str]:
    return [name for name, command in group.commands.items() if not command.hidden]

"""Turns the options of a request into parameters of a command, and the typed values into the request."""

import inspect
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import cache, partial
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from doctor.cli.help import CliCommand, CliCommands
from doctor.cli.mistakes import WrongValue, refuse_places_of_no_pods
from doctor.cli.whichlanguage import LanguageWish
from doctor.errors import suggest
from doctor.exam.request import Request
from doctor.text.durations import seconds_of
from doctor.text.option import KEY, Option, identifier

T = TypeVar("T")
Run = TypeVar("Run", bound=Callable[..., Any])


_SECONDS = {"s": 1, "m": 60, "h": 3600}


class CommandGroup(typer.Typer):
    """A command that only has subcommands; their help has the same layout."""

    def command(self, name: str | None = None, **more: Any) -> Callable[[Run], Run]:
        return super().command(name, **{"cls": CliCommand, **more})


def group(help: str | None = None, examples: str | None = None) -> CommandGroup:
    return CommandGroup(
        cls=CliCommands,
        help=help,
        epilog=examples,
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def takes(*names: str, without: Collection[str] = ()) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Decorates a command whose parameters are groups of options. It takes the named options of Request (or
    all except those in `without`) and every option of other groups. A parameter `context` is typer's own.
    """

    def command(run: Callable[..., int]) -> Callable[..., int]:
        signature = inspect.signature(run, eval_str=True)
        groups = {name: each.annotation for name, each in signature.parameters.items() if name != "context"}
        chosen = {
            name: [
                (option, parameter)
                for option, parameter in _parameters(kind)
                if kind is not Request or ((option.name in names or not names) and option.name not in without)
            ]
            for name, kind in groups.items()
        }

        def filled(caller: typer.Context, **values: Any) -> int:
            given: dict[str, Any] = {"context": caller} if "context" in signature.parameters else {}
            for name, kind in groups.items():
                of_it = {each.name: values[each.name] for _, each in chosen[name]}
                given[name] = _fill(
                    kind, of_it, **_typed_fields(caller, chosen[name]) if kind is Request else {}
                )
                if kind is Request:
                    refuse_places_of_no_pods(given[name])
            return run(**given)

        own = sorted((each for some in chosen.values() for _, each in some), key=_place)
        own += [each for _, each in _parameters(LanguageWish)]
        caller = inspect.Parameter("caller", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        filled.__signature__ = inspect.Signature([caller, *own])  # type: ignore[attr-defined]
        filled.__annotations__ = {each.name: each.annotation for each in (caller, *own)}
        return filled

    return command


def _typed_fields(
    context: typer.Context, chosen: Sequence[tuple[Option, inspect.Parameter]]
) -> dict[str, Any]:
    """The fields of a request about the command line: the command, and the options that were typed."""
    source = context.get_parameter_source
    typed = {o.name for o, each in chosen if getattr(source(each.name), "name", "") == "COMMANDLINE"}
    return {"command": context.info_name, "typed": frozenset(typed)}


def _place(parameter: inspect.Parameter) -> int:
    """A sort key: groups of --help are in the order of Request; groups that it does not have come first."""
    panels, found = list(dict.fromkeys(_panel(each) for _, each in _parameters(Request))), _panel(parameter)
    return panels.index(found) if found in panels else -1


def _panel(parameter: inspect.Parameter) -> str | None:
    return get_args(parameter.annotation)[1].rich_help_panel  # type: ignore[no-any-return]


@cache
def _parameters(kind: type) -> list[tuple[Option, inspect.Parameter]]:
    """The parameters of each option of a group and of its subgroups; made once for all commands."""
    types = get_type_hints(kind)
    found = []
    for each in fields(kind):
        if KEY in each.metadata:
            option, panel = each.metadata[KEY], getattr(kind, "PANEL", "")
            found.append((option, _parameter(each, types[each.name], panel)))
            found += [(option, _parameter(each, types[each.name], panel, alias)) for alias in option.aliases]
        elif each.default_factory is not MISSING:
            found += _parameters(types[each.name])
    return found


def _parameter(each: Field[Any], kind: Any, panel: str, alias: str = "") -> inspect.Parameter:
    """With `alias`, the hidden parameter for an older name of the option."""
    option: Option = each.metadata[KEY]
    several = get_origin(kind) is tuple
    accepted: Any = GenericAlias(list, get_args(kind)[:1]) if several else kind
    optional = bool(alias) or (several and each.default is not MISSING)
    shown = (typer.Option if option.names else typer.Argument)(
        *((alias,) if alias else option.names),
        metavar=option.metavar,
        help=option.help,
        parser=_parser(option, kind),
        rich_help_panel=option.panel or panel or None,
        hidden=bool(alias),
    )
    return inspect.Parameter(
        identifier(alias) if alias else option.parameter,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if optional else (inspect.Parameter.empty if each.default is MISSING else each.default),
        annotation=Annotated[accepted | None if optional else accepted, shown],
    )


def _parser(option: Option, kind: Any) -> Callable[[str], Any] | None:
    """The function that reads the option's value; None for a switch and for free text."""
    if option.values:
        return partial(one_of, option.values)
    if option.takes_path:
        return partial(a_path, Path if Path in get_args(kind) else str, option.name != "--python")
    number = next((each for each in (int, float) if each in (kind, *get_args(kind))), None)
    return partial(a_number, number, option) if number else None


def one_of(values: tuple[str, ...], typed: str) -> str:
    """The value of an option with a few allowed words."""
    if typed not in values:
        raise WrongValue(
            f"there is no {typed[:60]!r}; there are {', '.join(values)}", _value_meant(typed, values)
        )
    return values[values.index(typed)]  # the member, if they are an enumeration


def _value_meant(typed: str, values: tuple[str, ...]) -> str:
    word = typed.rpartition("/")[2].lower()  # /bin/bash
    return f"did you mean {word!r}?" if word in values else suggest(typed, values)


def a_number(kind: type[float], option: Option, typed: str) -> float:
    low, high = option.min, option.max
    try:
        seconds = seconds_of(typed) if option.metavar == "TIME" else None
        number = kind(typed if seconds is None else seconds)
    except ValueError:
        what = "time, such as 30m" if option.metavar == "TIME" else f"{'whole ' * (kind is int)}number"
        said = f"{typed[:60]!r} is not a {what}"
        raise WrongValue(said, _in_seconds(typed) if option.metavar == "S" else "") from None
    if not option.allows(number):
        limits = f"at least {low:g}" if high is None else f"between {low or 0:g} and {high:g}"
        limits = "a time from 1s to 30d" if option.metavar == "TIME" else limits
        raise typer.BadParameter(f"{typed[:60]} is not {limits}")
    return number


def _in_seconds(typed: str) -> str:
    """The suggestion for a duration such as `5m`: all options take plain seconds."""
    found = re.fullmatch(r"([0-9]{1,6}) ?([smh])\w*", typed.strip())
    return f"did you mean {int(found[1]) * _SECONDS[found[2]]} (seconds)?" if found else ""


def a_path(kind: Callable[[str], T], is_here: bool, typed: str) -> T:
    """The value of an option for a file. The next option is not a file: `--json -q` lacks its file.

    `is_here`: it is a file of this machine, not of the hosts.
    """
    if typed.startswith("-") and typed != "-":
        raise typer.BadParameter(f"{typed} is an option, not a file; a file of that name is ./{typed}")
    if "\0" in typed:
        raise typer.BadParameter("the name of a file cannot contain NUL")
    if (
        is_here and typed.startswith("~") and not os.path.lexists(typed)
    ):  # a shell leaves it in --hostfile=~/hosts
        typed = os.path.expanduser(typed)
    return kind(typed)


def _fill(kind: Callable[..., T], values: Mapping[str, Any], **known: Any) -> T:
    """A group filled with the given values."""
    for each in fields(kind):  # type: ignore[arg-type]
        if KEY not in each.metadata:
            if each.default_factory is not MISSING:
                known[each.name] = _fill(each.default_factory, values)
        elif (value := _value(each.metadata[KEY], values)) is not None:
            option: Option = each.metadata[KEY]
            if option.commas:
                value = split(value, blanks="GLOB" in option.usage)
            known[each.name] = tuple(value) if isinstance(value, list) else value
    return kind(**known)


def _value(option: Option, values: Mapping[str, Any]) -> Any:
    """The value that was given under any of the option's names."""
    names = (*map(identifier, option.aliases), option.parameter)
    return next((values[name] for name in names if values.get(name) is not None), None)


def split(texts: Collection[str], *, blanks: bool = False) -> tuple[str, ...]:
    """The values of an option that was given several times, or once with commas, or also with blanks."""
    between = r"[,\s]" if blanks else ","
    return tuple(word.strip() for text in texts for word in re.split(between, text) if word.strip())

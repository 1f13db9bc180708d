"""Options of a request -> the parameters of a command, and what was typed -> the request."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields, replace
from functools import cache, partial
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from doctor.cli.help import Command, Commands
from doctor.cli.mistakes import NotOneOf
from doctor.run.request import Request
from doctor.text.option import KEY, Option

T = TypeVar("T")
Run = TypeVar("Run", bound=Callable[..., Any])


class Group(typer.Typer):
    """A command that only has commands of its own; all of them are helped with alike."""

    def command(self, name: str | None = None, **more: Any) -> Callable[[Run], Run]:
        return super().command(name, **{"cls": Command, **more})


def group(help: str | None = None, examples: str | None = None) -> Group:
    return Group(
        cls=Commands,
        help=help,
        epilog=examples,
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def takes(*names: str, without: Collection[str] = ()) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A command with these options, or with all but some, in the place of its parameter `request`."""

    chosen = [
        parameter
        for option, parameter in _parameters(Request)
        if (option.name in names or not names) and option.name not in without
    ]

    def command(run: Callable[..., int]) -> Callable[..., int]:
        def filled(context: typer.Context, **values: Any) -> int:
            own = {name: values.pop(name) for name in kept}
            request = _filled(Request, values, command=context.info_name)
            return run(request=replace(request, typed=_typed(context)), **own)

        signature = inspect.signature(run, eval_str=True)
        kept = [name for name in signature.parameters if name != "request"]
        parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
        for name, own in signature.parameters.items():
            parameters += chosen if name == "request" else [own.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
        filled.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        filled.__annotations__ = {each.name: each.annotation for each in parameters}
        return filled

    return command


def _typed(context: typer.Context) -> frozenset[str]:
    """The options on the command line, by name."""
    source = context.get_parameter_source
    return frozenset(
        option.name
        for option, parameter in _parameters(Request)
        if getattr(source(parameter.name), "name", "") == "COMMANDLINE"
    )


@cache
def _parameters(kind: type) -> list[tuple[Option, inspect.Parameter]]:
    """The parameter of each option of a group and of the groups in it; made once for all commands."""
    types = get_type_hints(kind)
    found = []
    for each in fields(kind):
        if KEY in each.metadata:
            found.append((each.metadata[KEY], _parameter(each, types[each.name], getattr(kind, "PANEL", ""))))
        elif each.default_factory is not MISSING:
            found += _parameters(types[each.name])
    return found


def _parameter(each: Field[Any], kind: Any, panel: str) -> inspect.Parameter:
    option: Option = each.metadata[KEY]
    several = get_origin(kind) is tuple
    accepted: Any = GenericAlias(list, get_args(kind)[:1]) | None if several else kind
    if option.names:
        shown = typer.Option(
            *option.names,
            metavar=option.metavar,
            help=option.help,
            parser=_parser(option, kind),
            rich_help_panel=option.panel or panel or None,
        )
    else:
        shown = typer.Argument(metavar=option.metavar, help=option.help, rich_help_panel=panel or None)
    return inspect.Parameter(
        option.parameter,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if several else each.default,
        annotation=Annotated[accepted, shown],
    )


def _parser(option: Option, kind: Any) -> Callable[[str], Any] | None:
    """What reads its value; none for a word that may be any, and for a switch."""
    if option.values:
        return partial(one_of, option.values)
    if option.takes_path:
        return partial(a_path, Path if Path in get_args(kind) else str)
    number = next((each for each in (int, float) if each in (kind, *get_args(kind))), None)
    return partial(a_number, number, option) if number else None


def one_of(values: tuple[str, ...], typed: str) -> str:
    """The value of an option for which there are a few words."""
    if typed not in values:
        raise NotOneOf(typed, values)
    return typed


def a_number(kind: type[float], option: Option, typed: str) -> float:
    low, high = option.min, option.max
    try:
        number = kind(typed)
    except ValueError:
        raise typer.BadParameter(f"{typed[:60]!r} is not a {'whole ' * (kind is int)}number") from None
    inside = (low is None or number >= low) and (high is None or number <= high)  # NaN is in no limits
    if not inside:
        limits = f"at least {low:g}" if high is None else f"between {low or 0:g} and {high:g}"
        raise typer.BadParameter(f"{typed[:60]} is not {limits}")
    return number


def a_path(kind: Callable[[str], T], typed: str) -> T:
    """The value of an option for files, which is never the option behind it: `--json -q` lacks its file."""
    if typed.startswith("-") and typed != "-":
        raise typer.BadParameter(f"{typed} is an option, not a file; a file of that name is ./{typed}")
    if "\0" in typed:
        raise typer.BadParameter("no file has a name with a NUL in it")
    return kind(typed)


def _filled(kind: Callable[..., T], values: Mapping[str, Any], **known: Any) -> T:
    """A group with the values that were given."""
    for each in fields(kind):  # type: ignore[arg-type]
        if KEY not in each.metadata:
            if each.default_factory is not MISSING:
                known[each.name] = _filled(each.default_factory, values)
        elif (value := values.get(each.metadata[KEY].parameter)) is not None:
            commas = each.metadata[KEY].commas
            known[each.name] = split(value) if commas else tuple(value) if isinstance(value, list) else value
    return kind(**known)


def split(texts: Collection[str]) -> tuple[str, ...]:
    """An option given several times, or once with commas."""
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())

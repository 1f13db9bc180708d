"""Options of a request -> the parameters of a command, and what was typed -> the request."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from doctor.run.request import Request
from doctor.text.option import KEY, Option

T = TypeVar("T")


def group(help: str | None = None) -> typer.Typer:
    """A command that only has commands of its own."""
    return typer.Typer(
        help=help,
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
            return run(request=_filled(Request, values, command=context.info_name), **own)

        signature = inspect.signature(run, eval_str=True)
        kept = [name for name in signature.parameters if name != "request"]
        parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
        for name, own in signature.parameters.items():
            parameters += chosen if name == "request" else [own.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
        filled.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        filled.__annotations__ = {each.name: each.annotation for each in parameters}
        return filled

    return command


@cache
def _parameters(kind: type) -> list[tuple[Option, inspect.Parameter]]:
    """The parameter of each option of a group and of the groups in it; made once for all commands."""
    types = get_type_hints(kind)
    found = []
    for each in fields(kind):
        if KEY in each.metadata:
            found.append((each.metadata[KEY], _parameter(each, types[each.name])))
        elif each.default_factory is not MISSING:
            found += _parameters(types[each.name])
    return found


def _parameter(each: Field[Any], kind: Any) -> inspect.Parameter:
    option: Option = each.metadata[KEY]
    several = get_origin(kind) is tuple
    accepted: Any = GenericAlias(list, get_args(kind)[:1]) | None if several else kind
    if option.names:
        shown = typer.Option(
            *option.names, metavar=option.metavar, help=option.help, min=option.min, max=option.max
        )
    else:
        shown = typer.Argument(metavar=option.metavar, help=option.help)
    return inspect.Parameter(
        option.parameter,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if several else each.default,
        annotation=Annotated[accepted, shown],
    )


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

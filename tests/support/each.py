"""A rule about many things is one test, which names all things that break it.

A case of its own for each thing would cost more in collecting than the rule costs in running.
"""

import functools
import inspect
from collections.abc import Callable, Iterable

import pytest

Rule = Callable[..., None]


def each(argument: str, things: Iterable[object]) -> Callable[[Rule], Rule]:
    """Like `pytest.mark.parametrize`, but as one case: `argument` takes each of the things in turn.

    Other arguments are fixtures, or come from `parametrize`.
    """
    named = [(f"{getattr(thing, 'id', thing)!s:.100}", thing) for thing in things]

    def of_all(rule: Rule) -> Rule:
        @functools.wraps(rule)
        def test(**fixtures: object) -> None:
            assert named, "a rule for nothing proves nothing"
            broken = [
                (name, why) for name, thing in named if (why := _why(rule, fixtures | {argument: thing}))
            ]
            if broken:
                told = "\n\n".join(f"{name}: {type(why).__name__}: {why}" for name, why in broken)
                raise AssertionError(f"{len(broken)} of {len(named)} break it\n{told}") from broken[0][1]

        signature = inspect.signature(rule)
        others = [parameter for name, parameter in signature.parameters.items() if name != argument]
        vars(test)["__signature__"] = signature.replace(parameters=others)
        return test

    return of_all


def _why(rule: Rule, arguments: dict[str, object]) -> BaseException | None:
    try:
        rule(**arguments)
    except (Exception, pytest.fail.Exception) as why:
        return why
    return None

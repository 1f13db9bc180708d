"""Captures of facts as tests write them: the output of a command, or the contents of files."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from doctor.api import Capture, Fact, OptionalNeed
from doctor.judge.examine import ALWAYS
from doctor.judge.registry import find_checks
from tests.support.paths import ROOT

T = TypeVar("T")
SAMPLES = ROOT / "tests" / "samples"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def printed(fact: Fact[T], text: str) -> T:
    """What the fact's parser returns for a command's output."""
    return fact.parse(Capture(fact.name, 0, text))


def held(fact: Fact[T], contents: Mapping[str, str]) -> T:
    """What the fact's parser returns for files, given as `grep -sH ''` prints them."""
    return printed(fact, as_read(contents))


def as_read(contents: Mapping[str, str]) -> str:
    """The files as a probe reads them; a path without text only exists."""
    return "\n".join(
        f"{path}:{line}" for path, text in contents.items() for line in text.splitlines() or [""]
    )


def every_fact() -> dict[str, Fact[Any]]:
    """All facts that a check or the report asks for, by name."""
    return {fact.name: fact for fact in _facts()}


def _facts() -> Iterator[Fact[Any]]:
    yield from ALWAYS
    for check in find_checks().checks:
        for need in check.needs:
            fact = need.need if isinstance(need, OptionalNeed) else need
            if isinstance(fact, Fact):
                yield fact

"""The one runner of all trials: it selects kinds, goes on where it was cut short, keeps and counts runs."""

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.lab import missing
from tests.lab.errors import LabError
from tests.trials.outcome import Outcome, append, load
from tests.trials.table import table

Args = argparse.Namespace
Key = tuple[str, int]
"""A row of the table, and the number of the trial."""


class NoTrial(Exception):
    """It could not be made, which says nothing about doctor."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is set up once, and looked at for each of its keys that was not made before."""

    keys: Sequence[Key]
    make: Callable[[Sequence[Key]], Iterable[Outcome]]


Cases = Generator[Case, None, None]


def no_options(_: argparse.ArgumentParser) -> None: ...


def is_fault(name: str) -> bool:
    return not name.startswith("healthy")


@dataclass(frozen=True, slots=True)
class Series:
    """What one series of trials tells the runner."""

    program: str
    """As `python -m` starts it."""
    out: str
    """The file that keeps the outcomes, if nothing else is said."""
    kinds: Sequence[str]
    cases: Callable[[Args], Cases]
    """Of `args.kinds`, in turn, so that a series that is cut short has some of each."""
    options: Callable[[argparse.ArgumentParser], None] = no_options
    trials: int = 20
    """So many of each, if nothing else is said."""
    lacks: Callable[[Args], str | None] = lambda _: missing()
    """Why these trials cannot be made."""
    usual: Callable[[Args], Collection[str]] | None = None
    """The kinds that are tried if none is named; otherwise all."""
    order: Sequence[str] = ()
    """The rows of the table, if they are not the kinds."""
    is_fault: Callable[[str], bool] = is_fault
    """Whether something is wrong in the trials of a row of the table."""
    part: Callable[[str], str] = lambda _: ""
    """Rows of one part are counted together; this is added to the names of their sums."""
    head: Callable[[Args], str] = lambda _: ""
    """The conditions, above the table."""
    page: Callable[[Sequence[Outcome]], str] | None = None
    """Another page than the table."""


def main(series: Series, about: str | None) -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts with &
    args = _arguments(series, about)
    outcomes = load(args.out)
    if not args.table:
        if reason := series.lacks(args):
            print(f"No trials: {reason}.", file=sys.stderr)
            return 2
        with closing(series.cases(args)) as cases:
            for case in cases:
                outcomes += _made(case, {(each.fault, each.number) for each in outcomes}, args.out)
    print(series.page(outcomes) if series.page else _page(series, args, outcomes))
    return 0 if all(outcome.right for outcome in outcomes) else 1


def chosen(kinds: Sequence[str], words: Collection[str]) -> list[str]:
    """The kinds that have one of these names or first words; or that contain a word which is neither."""
    known = {*kinds, *map(_first, kinds)}
    parts = {*words} - known
    return [kind for kind in kinds if {kind, _first(kind)} & {*words} or any(part in kind for part in parts)]


def _first(kind: str) -> str:
    return kind.partition(" ")[0]


def _arguments(series: Series, about: str | None) -> Args:
    parser = argparse.ArgumentParser(
        prog=f"python -m {series.program}", description=about, allow_abbrev=False
    )
    known = (
        f"all, none, or some of: {', '.join(series.kinds)}; the first word is enough, or any part of a name"
    )
    parser.add_argument("--faults", "--kinds", dest="kinds", default="", metavar="KIND,...", help=known)
    parser.add_argument(
        "--trials", type=int, default=series.trials, help="so many of each, earlier ones included"
    )
    parser.add_argument("--out", type=Path, default=Path(series.out), help="outcomes, added to line by line")
    parser.add_argument("--table", action="store_true", help="no trials, only the table of those there are")
    series.options(parser)
    args = parser.parse_args()
    words = [word for word in args.kinds.split(",") if word not in ("", "all", "none")]
    if unknown := [word for word in words if not chosen(series.kinds, [word])]:
        parser.error(f"no such kind: {', '.join(unknown)}; there are {', '.join(series.kinds)}")
    usual = series.usual(args) if series.usual else series.kinds
    args.kinds = chosen(series.kinds, words) if words else [] if args.kinds == "none" else [*usual]
    return args


def _made(case: Case, done: Collection[Key], out: Path) -> Iterator[Outcome]:
    left = [key for key in case.keys if key not in done]
    began = time.monotonic()
    try:
        for outcome in case.make(left) if left else ():
            yield _kept(outcome, out)
    except (NoTrial, LabError) as why:
        print(f"No trial of {left[0][0]}: {why}", file=sys.stderr, flush=True)
    except subprocess.TimeoutExpired:
        yield _kept(Outcome.silent(*left[0], "", time.monotonic() - began, -1, "it did not end"), out)


def _kept(outcome: Outcome, out: Path) -> Outcome:
    append(out, outcome)
    told = (outcome.verdict, outcome.fault, str(outcome.number), outcome.place, f"{outcome.seconds:.1f} s")
    print(*told, f"code {outcome.code}", *outcome.said, sep="  ", file=sys.stderr, flush=True)
    return outcome


def _page(series: Series, args: Args, outcomes: Sequence[Outcome]) -> str:
    def total(name: str) -> str:
        return ("every fault" if series.is_fault(name) else "all that is sound") + series.part(name)

    rows = table(outcomes, series.order or series.kinds, total)
    return f"{series.head(args)}{len(outcomes)} trials were made.\n\n{rows}"

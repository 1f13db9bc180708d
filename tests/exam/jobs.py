"""The cases of `doctor hang` and `doctor slow`: what was recorded of a job, and whom it waits for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from doctor.errors import EXIT_INCONCLUSIVE
from tests.exam.answers import WIDTH, Answer
from tests.exam.cases import Half, halves

if TYPE_CHECKING:
    from doctor.live.evidence import LiveEvidence

FOLDER = Path(__file__).parent / "live"
Worth = Literal["right", "partly", "silent", "wrong", "false"]


@dataclass(frozen=True, slots=True)
class JobCase:
    name: str
    half: Half
    want: Mapping[str, Any]
    """Its row of `want.json`, as INDEX.md explains it."""

    @property
    def kind(self) -> str:
        """The command that recorded it, and is asked: `hang` or `slow`."""
        return str(self.want["command"])

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.json.gz"

    def worth(self, code: int, said: str) -> Worth:
        """`false`: a job without a fault is accused; `wrong`: another rank is; `partly`: the right rank is
        named with another, or for another cause; `silent`: it is not decided, or nobody is named or shown
        apart.
        """
        accused, named, apart = (_ranks(how, said) for how in ("accused", "named", "apart"))
        causes, right = self.want["causes"], code in self.want["exit"]
        if self.want["rank"] is None:
            return "false" if accused else "right" if right else "silent"
        ranks = {self.want["rank"], *self.want.get("either", ())}
        if accused:
            if not {*accused} <= ranks:
                return "wrong"
            why = " ".join(line for line in said.splitlines() if line.startswith("accused"))
            return "right" if not causes or any(cause in why for cause in causes) else "partly"
        if code == EXIT_INCONCLUSIVE and right and not ranks.isdisjoint(apart):
            return "right"
        if ranks.isdisjoint(named) or len(named) > 2:
            return "silent"
        return "right" if len(named) == 1 or right else "partly"


def _ranks(how: str, said: str) -> list[int]:
    return [int(each) for each in re.findall(rf"(?m)^{how} rank (\d+|-1):", said)]


def job_cases() -> list[JobCase]:
    rows: Mapping[str, Mapping[str, Any]] = json.loads((FOLDER / "want.json").read_text())
    drawn = halves(rows)
    return [JobCase(name, drawn[name], row) for name, row in rows.items()]


def read_jobs(cases: Iterable[JobCase]) -> dict[str, LiveEvidence]:
    """The evidence as it was recorded. No module of a judge is imported for that."""
    from doctor.live.evidence_file import load as load_hang
    from doctor.slow.evidence_file import load as load_slow

    loads = {"hang": load_hang, "slow": load_slow}
    return {case.name: loads[case.kind](case.file) for case in cases}


def job_answerer() -> Callable[[Any], Answer]:
    """Judges evidence: a line for each rank that is accused or named, then the page, indented."""
    from functools import partial

    from doctor.hang.judge import judged
    from doctor.hang.report import page_of as page_of_hang
    from doctor.report.page.card import Page
    from doctor.report.terminal.cards import print_page
    from doctor.slow.evidence import SlowEvidence
    from doctor.slow.judge import judge as judge_slow
    from doctor.slow.report import page_of as page_of_slow
    from doctor.text.console import drawn

    def slow(seen: SlowEvidence) -> tuple[int, str, list[str], Page]:
        found = judge_slow(seen)
        said = [(each, "; ".join((each.sentence, *each.why))) for each in found.late]
        lines = [_line("accused", rank, words) for each, words in said for rank in each.ranks]
        return found.exit_code, found.sentence, lines, page_of_slow(found)

    def hang(seen: LiveEvidence) -> tuple[int, str, list[str], Page]:
        found = judged(seen)
        lines = [_line("accused", each.rank, each.sentence) for each in found.culprits]
        lines += [_line("named", each.rank, each.sentence) for each in found.suspects]
        if found.finding.meets and not found.named and found.job:
            lines += [_line("named", rank, found.sentence) for rank in found.job.missing]
        for group in found.stands.groups[1:]:
            lines += [_line("apart", rank, group.place) for rank in group.ranks]
        return found.exit_code, found.sentence, lines, page_of_hang(found)

    def answer(seen: Any) -> Answer:
        code, sentence, lines, page = slow(seen) if isinstance(seen, SlowEvidence) else hang(seen)
        shown = drawn(partial(print_page, page, verbose=True, quiet=False), WIDTH, colour=False)
        return Answer(code, "\n".join(("", sentence, *lines, *_indented(shown))))

    return answer


def _line(how: str, rank: int | None, sentence: str) -> str:
    return f"{how} rank {-1 if rank is None else rank}: {sentence}"


def _indented(text: str) -> Iterator[str]:
    return (f" {line}" for line in text.splitlines())

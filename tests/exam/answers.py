"""What `doctor explain` answers to a log, without its terminal and its command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.exam.cases import Case

if TYPE_CHECKING:
    from doctor.logs.model import Logs

WIDTH = 110


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    text: str

    @property
    def headline(self) -> str:
        """All that says whom it accuses, of what, and how sure it is."""
        return "\n".join(line for line in self.text.splitlines()[1:] if line[:1].strip())


def read_all(cases: Iterable[Case]) -> dict[str, Logs]:
    """The logs as they are read. No module of the judge is imported for that."""
    from doctor.logs.loss.collect import LossCollector
    from doctor.logs.read import read
    from doctor.logs.symptoms.match import matcher_of

    matcher = matcher_of((), ())
    return {case.name: read([case.log], matcher, loss=LossCollector) for case in cases}


def answerer() -> Callable[[Logs], Answer]:
    """Judges logs, and shows the page as the terminal does. It imports the judge."""
    from functools import lru_cache, partial

    from doctor.logs.explanation import Explanation
    from doctor.logs.judge import known_of
    from doctor.logs.judge.jobs import conclude_all
    from doctor.logs.loss.judge import judge_curves
    from doctor.logs.naming import common_folder, renamed, without_folder
    from doctor.logs.report import page_of
    from doctor.logs.symptoms.match import matcher_of
    from doctor.report.terminal.cards import print_page
    from doctor.text.console import drawn
    from doctor.text.redact import redact

    matcher, known = matcher_of((), ()), known_of()
    clean = lru_cache(maxsize=None)(redact)

    def answer(read: Logs) -> Answer:
        folder = common_folder(read)
        logs = renamed(without_folder(read, folder), clean)
        conclusion = conclude_all(logs, known, lambda job: judge_curves(job.curves, matcher.symptoms))
        explained = Explanation(conclusion, logs, folder=redact(folder))
        show = partial(print_page, page_of(explained), verbose=False, quiet=False)
        return Answer(explained.exit_code, drawn(show, WIDTH, colour=False))

    return answer

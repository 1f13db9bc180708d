"""The page, in Markdown: the machine, and a line for each attempt."""

from collections.abc import Sequence

from doctor import __version__
from tests.gpu_proof.attempts import Attempt
from tests.gpu_proof.machine import Machine

HEAD = ("what was tried", "expected", "found", "as expected", "exit code", "seconds")
VERDICTS = {True: "yes", False: "**no**", None: ""}


def page(machine: Machine, backend: str, attempts: Sequence[Attempt], date: str) -> str:
    tried = [attempt.right for attempt in attempts if attempt.right is not None]
    has = {name: machine.gpus.count(name) for name in dict.fromkeys(machine.gpus)}
    versions = {
        "GPUs": ", ".join(f"{count} × {name}" for name, count in has.items()) or "none",
        **machine.versions,
        "cluster-doctor": __version__,
    }
    return "\n".join(
        [
            f"# The smoke run over {backend}, on one machine",
            "",
            f"{date}. As expected: {sum(tried)} of {len(tried)} that were tried.",
            "",
            *_rows(tuple(versions), [tuple(versions.values())]),
            "",
            *_rows(HEAD, [_cells(attempt) for attempt in attempts]),
            "",
        ]
    )


def _cells(attempt: Attempt) -> tuple[str, ...]:
    return (
        attempt.tried,
        attempt.expected,
        attempt.found,
        VERDICTS[attempt.right],
        "" if attempt.code is None else str(attempt.code),
        "" if attempt.seconds is None else f"{attempt.seconds:.1f}",
    )


def _rows(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(map(_cell, cells))} |"

    return [row(head), row(["---"] * len(head)), *map(row, lines)]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")

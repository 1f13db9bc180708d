"""Conclusions of every kind, written by hand, and their text."""

from doctor.logs.explanation import Explanation, Proof, ProofState
from doctor.logs.model import Conclusion, LogFile, LogOutcome, Logs
from doctor.logs.report import page_of
from doctor.report.terminal.cards import print_page
from doctor.text.console import drawn
from tests.support.cases import from_cases

NOON = 1_790_000_000.0
UNKNOWN = from_cases(__file__, "UNKNOWN", Conclusion)
CLEAN = from_cases(__file__, "CLEAN", Conclusion)
READ = from_cases(__file__, "READ", Logs)


def oom() -> Conclusion:
    return from_cases(__file__, "OOM", Conclusion)


def no_host() -> Conclusion:
    """A rank from which nothing was heard, without a host name; beside it, a second cause."""
    return from_cases(__file__, "NO_HOST", Conclusion)


def explaineds() -> dict[str, Explanation]:
    return {
        "oom": Explanation(oom(), started="2026-11-21T10:05:00Z", seconds=0.2),
        "oom-proved": Explanation(
            oom(), proofs=(Proof(0, ProofState.PROVED, "memory-low fails on node3: 1 GB of 64 GB is free"),)
        ),
        "oom-gone": Explanation(oom(), proofs=(Proof(0, ProofState.GONE, "kernel-log passes on node3"),)),
        "no-host": Explanation(no_host()),
        "unknown": Explanation(UNKNOWN, READ),
        "clean": Explanation(CLEAN, Logs((LogFile("train.log", 900, 20),))),
        "nothing": Explanation(
            Conclusion(LogOutcome.UNKNOWN, read="1 file"), Logs((LogFile("empty.log", problem="empty"),))
        ),
        "silent": Explanation(CLEAN, silent={"node2": "connection refused on port 22"}, command="logs"),
    }


def text(explained: Explanation, columns: int, *, verbose: bool = False, quiet: bool = False) -> str:
    return drawn(
        lambda console: print_page(page_of(explained), console, verbose=verbose, quiet=quiet),
        columns,
        colour=False,
    )

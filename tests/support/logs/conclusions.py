"""Conclusions of every kind, written by hand, and their text."""

from doctor.logs.explanation import Explanation, Proof, ProofState
from doctor.logs.model import Conclusion, Form, LogCause, LogFile, LogLine, LogOutcome, Logs, Party, Role
from doctor.logs.report import page_of
from doctor.model import Confidence, Remedy
from doctor.report.terminal.cards import print_page
from doctor.text.console import drawn

NOON = 1_790_000_000.0
TWO = Party(rank=2, host="node3", pid=4711)
KILLED = LogLine(
    "node3/messages",
    812,
    "Nov 21 10:02:11 node3 kernel: Out of memory: Killed process 4711 (python) total-vm:80123456kB, "
    "anon-rss:63211234kB, file-rss:0kB, shmem-rss:8kB, UID:1000 pgtables:132456kB oom_score_adj:0",
    Form.KERNEL,
    TWO,
    NOON,
)
LOST = [
    LogLine(
        f"rank{rank}.log",
        90 + rank,
        "[E1121 10:02:12 pair.cc:553] Connection closed by peer [10.0.0.3]:41022",
        Form.TORCH,
        Party(rank=rank, host=f"node{rank + 1}"),
        NOON + 1,
    )
    for rank in (0, 1, 3)
]
ODD = LogLine(
    "train.log", 17, "frobnicator: ERROR: the flux of bank 3 is negative", Form.PLAIN, level="ERROR"
)
STEP = LogLine("train.log", 16, "step 194 loss 1.997", who=Party(rank=0))


def oom() -> Conclusion:
    charges = (
        LogCause(
            "kernel-oom",
            "rank 2 on node3 was killed by the kernel for lack of memory",
            (TWO,),
            how=("the kernel of node3 says that it killed pid 4711", "pid 4711 is rank 2 in rank2.log"),
            lines=(KILLED,),
            causes=(
                "the ranks and the workers of their data loaders need more memory than the host or the "
                "container has",
                "another process uses it",
            ),
            checks=("memory-low", "kernel-log"),
            remedy=Remedy(
                "by-hand",
                (
                    "# Recreate the container with --memory=64g, or without a limit. "
                    "/dev/shm counts against it.",
                    "free -g",
                ),
            ),
            confidence=Confidence.CERTAIN,
        ),
        LogCause(
            "gloo-closed-by-peer",
            "ranks 0-1 and 3 lost their connection to it",
            tuple(line.who for line in LOST),
            Role.CONSEQUENCE,
            because=0,
            lines=tuple(LOST),
            count=12,
        ),
        LogCause("elastic-child-failed", "torchrun on node1 ended the job", role=Role.CONFIRMS, because=1),
    )
    return Conclusion(
        LogOutcome.NAMED,
        charges,
        story=(
            (NOON, "rank 2 on node3 was killed by the kernel for lack of memory"),
            (NOON + 1, "ranks 0-1 and 3 lost their connection"),
            (NOON + 3, "torchrun on node1 ended the job"),
        ),
        hosts=("node3",),
        checks=("memory-low", "kernel-log"),
        read="5 files of 4 ranks on node[1-4], torchrun, 1,204,331 lines",
    )


def no_host() -> Conclusion:
    """A rank from which nothing was heard, without a host name; beside it, a second cause."""
    return Conclusion(
        LogOutcome.NAMED,
        (
            LogCause(
                None,
                "rank 3 is missing: it never said that it began",
                (Party(rank=3),),
                how=("ranks 0-2 wait for it in the rendezvous",),
                causes=("it was never started",),
                checks=("launch-ranks", "smoke-not-started"),
                confidence=Confidence.SUSPECT,
            ),
            LogCause("disk-full", "rank 1 had no space left on its device", (Party(rank=1),)),
        ),
        open=("no log of rank 3 was given",),
        checks=("launch-ranks", "smoke-not-started"),
        read="3 files of 3 ranks, 31 lines",
    )


UNKNOWN = Conclusion(
    LogOutcome.UNKNOWN,
    odd=(ODD,),
    open=("no line says which host it is of",),
    read="1 file, 20 lines",
)
CLEAN = Conclusion(LogOutcome.CLEAN, read="1 file of 1 rank, torchrun, 20 lines")
READ = Logs((LogFile("train.log", 900, 20, progress=(STEP,), problem="more than 4 GB"),))


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

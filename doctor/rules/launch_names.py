"""The processes of a launch as findings name them: host, rank, label."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from doctor.job.launch.directory import Directory
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.rank_env import rank_of, role_of
from doctor.job.launch.ranks import counted
from doctor.model import Evidence, Place, Problem

MOST_PLACES = 64
MOST_EVIDENCE = 6


@dataclass(frozen=True, slots=True)
class LaunchNames:
    """`directory` finds the hosts of the run by the names that processes use for them."""

    launch: Launch
    directory: Directory

    def host(self, process: ProcessEnv) -> str | None:
        return self.directory.host(process.host)

    def hosts(self, processes: Iterable[ProcessEnv]) -> tuple[str, ...]:
        """The hosts of these processes, each once, as the run names them, without hosts outside the run."""
        return tuple(dict.fromkeys(host for each in processes if (host := self.host(each)) is not None))

    def places(self, processes: Sequence[ProcessEnv]) -> tuple[Place, ...]:
        places = (Place(host=self.host(each), rank=number(each)) for each in processes[:MOST_PLACES])
        return tuple(dict.fromkeys(place for place in places if place != Place()))

    def label(self, process: ProcessEnv) -> str:
        """ "rank 3 on node1", "process 4711 on node1", "env3.log" """
        rank, host = number(process), self.host(process) or process.host
        what = process.source if rank is None else f"rank {rank}"
        return f"{what} on {host}" if host else f"{what} ({process.source})" if rank is not None else what

    def labels(self, processes: Sequence[ProcessEnv]) -> str:
        """The same for several processes: their ranks if all have one."""
        if len(processes) == 1:
            return self.label(processes[0])
        ranks = [rank for each in processes if (rank := number(each)) is not None]
        if len(ranks) == len(processes):
            return counted(ranks)
        return some([self.label(each) for each in processes])

    def evidence(self, processes: Sequence[ProcessEnv], name: str) -> tuple[Evidence, ...]:
        """The value of a variable in each of these processes."""
        return tuple(
            Evidence(
                f"{each.source}{f' on {each.host}' if each.host else ''}",
                f"{name}={each.env[name]}" if name in each.env else f"{name} is not set",
            )
            for each in processes[:MOST_EVIDENCE]
        )

    def command_lines(self, processes: Iterable[ProcessEnv]) -> tuple[Evidence, ...]:
        return tuple(Evidence(self.label(each), " ".join(each.command)[:300]) for each in processes)

    def said(self, processes: Sequence[ProcessEnv], name: str) -> tuple[Evidence, ...]:
        """Where these processes got a value: from a variable, or from their command lines."""
        if name in processes[0].env:
            return self.evidence(processes, name)
        return self.command_lines(processes[:MOST_EVIDENCE])

    def subject(self, what: str) -> str:
        return f"{self.launch.name}: {what}"

    def problem(
        self,
        processes: Sequence[ProcessEnv],
        name: str,
        summary: str,
        expected: str,
        actual: str,
        **more: Any,
    ) -> Problem:
        """A fault of a variable of these processes; `more` is as in Problem, and overrides."""
        about = {
            "subject": self.subject(name),
            "hosts": self.hosts(processes),
            "where": self.places(processes),
            "evidence": self.evidence(processes, name),
        }
        return Problem(summary, expected, actual, **about | more)


def number(process: ProcessEnv) -> int | None:
    """The numeric rank of a process; None for a scheduler, which may have inherited the rank of a worker."""
    rank = rank_of(process) if role_of(process) == "rank" else None
    return rank.value if rank is not None else None


def some(texts: Sequence[str], most: int = 4) -> str:
    """ "a, b, c, d and 2 more" """
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def remark(text: str) -> str:
    """Advice that is not a command, as a comment on one line, whatever it quotes."""
    return "# " + "".join(char if char.isprintable() else " " for char in text)

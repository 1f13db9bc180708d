"""How to reach the hosts of a job again, as a line to type."""

import shlex
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from doctor.live.evidence import LiveEvidence
from doctor.text.nodeset import fold, is_host, unfold
from doctor.transport.way import Way


@dataclass(frozen=True, slots=True)
class Reach:
    way: Way = field(default_factory=Way)
    local: bool = False
    """Whether the only host is this machine."""
    nodes: tuple[str, ...] = ()
    """All hosts that were asked."""
    chosen: tuple[tuple[str, str], ...] = ()
    """The options that chose the job."""

    def check(self, hosts: Collection[str], only: str = "") -> str:
        in_order = unfold(fold(hosts)) if all(map(is_host, hosts)) else list(hosts)
        return self.way.typed("check", in_order, (("--only", only),) if only else ())

    def again(self, pid: int, *more: tuple[str, ...]) -> str:
        """The command that looks once more at the job of this process."""
        return self.way.typed("hang", self.nodes, (("--pid", str(pid)), *more))

    def other(self, command: str) -> str:
        """The command that asks the same hosts another question about the job."""
        return self.way.typed(command, self.nodes, self.chosen)

    def on(self, host: str, command: str) -> str:
        way = replace(self.way, reached=(*self.way.reached, ("--local",))) if self.local else self.way
        return way.login(host, shlex.split(command))


def reach_of(evidence: LiveEvidence) -> Reach:
    options = zip(("--pid", "--master-port", "--job", "--rank-user"), evidence.choice.of_job, strict=True)
    chosen = tuple((option, str(value)) for option, value in options if value is not None)
    return Reach(evidence.way or Way(), evidence.local, evidence.asked, chosen)

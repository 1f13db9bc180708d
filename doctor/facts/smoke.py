"""What the smoke runs of this examination showed and charge, and what that means for one check."""

from collections.abc import Mapping
from dataclasses import dataclass

from doctor.api import RunValue
from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.onhost.page import PHASES
from doctor.smoke.result import RankOutcome, SmokePlan, SmokeResult
from doctor.smoke.soak import Soak as Soak


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """One run and what it proves."""

    result: SmokeResult
    charges: tuple[SmokeCharge, ...]

    @property
    def plan(self) -> SmokePlan:
        return self.result.plan

    @property
    def named(self) -> tuple[str, ...]:
        """The hosts that a fault of the run names, including suspects."""
        faults = (charge for charge in self.charges if charge.is_fault)
        return tuple(dict.fromkeys(host for charge in faults for host in charge.culprit_hosts(self.plan)))

    @property
    def passed(self) -> bool:
        """Whether every rank finished and no fault is charged."""
        whole = self.result.end.kind == "done" and all(seen.done for seen in self.result.ranks)
        return whole and not any(charge.is_fault for charge in self.charges)

    def got_past(self, host: str, phase: str) -> bool:
        """Whether every rank of the host, and every rank that trains with them, got past that phase."""
        ranks, end = self._ranks(host), PHASES.index(phase)
        return bool(ranks) and all(seen.done or PHASES.index(seen.phase) > end for seen in ranks)

    def ending(self, host: str) -> str:
        """Where the run ended for this host, in words."""
        if self.result.end.kind == "interrupted":
            return "the smoke run was interrupted"
        if self.result.end.kind == "deadline":
            return "the smoke run ran out of time"
        phases = (seen.phase for seen in self._ranks(host) if not seen.done)
        first = min(phases, key=PHASES.index, default="done")
        return f"the smoke run ended in the {PHASE_NAMES.get(first, first)} phase"

    def _ranks(self, host: str) -> list[RankOutcome]:
        """The ranks of a host, and all ranks that train with them."""
        cells = {seat.cell for seat in self.plan.on(host)}
        return [seen for cell in cells for seen in self.result.cell_ranks(cell)]


PHASE_NAMES = {"spawned": "start", "ready": "start"}
"""Names in the report for phases that are part of another."""


@dataclass(frozen=True, slots=True)
class SmokeRounds:
    """All runs: the first one, and its repetitions without the hosts that it named."""

    runs: tuple[JudgedRun, ...]
    unheard: frozenset[str] = frozenset()
    """Hosts that could not be asked at all, so no smoke run needs to report them again."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that took part in a run."""
        return tuple(dict.fromkeys(host for run in self.runs for host in run.plan.hosts))

    @property
    def left_out(self) -> Mapping[str, str]:
        """Host -> why it took part in none of the runs."""
        reasons = {left.host: left.reason for run in self.runs for left in run.result.left_out}
        return {host: why for host, why in reasons.items() if host not in {*self.hosts, *self.unheard}}


SMOKE: RunValue[SmokeRounds] = RunValue("smoke")
"""Missing if no smoke run was requested (then there is nothing to check) or it could not run."""

SOAK: RunValue[Soak] = RunValue("soak")
"""Missing if none was asked for."""

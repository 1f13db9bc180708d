"""The numbers of the smoke runs that a report shows."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median
from typing import Literal

from doctor.facts.smoke import JudgedRun
from doctor.job.framework import FRAMEWORKS
from doctor.rules.smoke import together
from doctor.smoke.judge.cells import cells, tolerance, wavering
from doctor.smoke.judge.curve import REPLICAS, expected, least_of
from doctor.smoke.judge.link_charges import MANY_SEGMENTS
from doctor.smoke.judge.link_stages import sent_again, transfers
from doctor.smoke.judge.loss import LARGEST, LossSummary, loss_summary
from doctor.smoke.onhost.corpus import LENGTH, SEQUENCES
from doctor.smoke.onhost.page import PHASES
from doctor.smoke.onhost.shape import ORDER
from doctor.text.nodeset import fold
from doctor.text.ranks import ranks_text

Outcome = Literal["pass", "fail", "skipped"]
SHOWN = ("start", "join", "collectives", "train", "audit", "bandwidth")
MANY_RESENT = 0.01
"""The least share of resent TCP segments that is shown: on a busy machine, links without losses resent up to
0.4 %, and links that lost 2 % resent 2 %.
"""
_PART_OF = {"spawned": "start", "ready": "start", "done": "bandwidth"}


@dataclass(frozen=True, slots=True)
class PhaseLine:
    """One phase of a smoke run."""

    name: str
    status: Outcome
    seconds: float


@dataclass(frozen=True, slots=True)
class LinkRates:
    """How fast two hosts exchanged data: bytes per second each way, or those of the slower way if each was
    measured alone, and a round trip in seconds. `resent` is the share of TCP segments that the worse end had
    to send again.
    """

    hosts: tuple[str, str]
    rate: float
    round_trip: float
    resent: float = 0.0


@dataclass(frozen=True)
class RunNumbers:
    """What a report shows of one run."""

    run: JudgedRun
    net: float | None = None
    """How long the mesh before the run took."""

    @property
    def outcome(self) -> Outcome:
        if self.run.passed:
            return "pass"
        blamed = any(charge.is_fault for charge in self.run.charges)
        return "skipped" if self.run.result.end.kind == "interrupted" and not blamed else "fail"

    @property
    def last_phase(self) -> str:
        """The phase of the rank that got least far."""
        reached = [PHASES.index(seen.phase) for seen in self.run.result.ranks if not seen.done]
        name = PHASES[min(reached)] if reached else "done"
        return _PART_OF.get(name, name)

    @property
    def phases(self) -> tuple[PhaseLine, ...]:
        """The phases in order. Without two hosts in a cell there is no bandwidth phase."""
        ended = self.run.result.end.kind
        here = None if ended == "done" else self.last_phase
        wrong = {_PART_OF.get(charge.phase, charge.phase) for charge in self.run.charges if charge.is_fault}
        wrong |= set() if here is None or ended == "interrupted" else {here}
        net: Outcome = "fail" if "net" in wrong else "pass"
        rows = [] if self.net is None else [PhaseLine("net", net, round(self.net, 3))]
        order = SHOWN if together(self.run.plan) > 1 or self.run.plan.sweep else SHOWN[:-1]
        reached = len(order) if here is None else order.index(here) if here in order else len(order) - 1
        for number, name in enumerate(order):
            status: Outcome = "fail" if name in wrong else "pass" if number < reached else "skipped"
            rows.append(PhaseLine(name, status, _seconds(self.run, name) if number <= reached else 0.0))
        return tuple(rows)

    @cached_property
    def loss(self) -> LossSummary | None:
        """The loss of the cell that learned the least."""
        return _losses(self.run).get(worst_cell(self.run))

    @property
    def loss_charged(self) -> bool:
        return any(charge.check.startswith("smoke-loss-") for charge in self.run.charges)

    @cached_property
    def links(self) -> tuple[LinkRates, ...]:
        """Each pair of hosts that met, the slowest first."""
        run = self.run
        rates: dict[tuple[str, str], dict[str, list[float]]] = {}
        trips: dict[tuple[str, str], list[float]] = {}
        for cell in cells(run.result):
            for here, there, said in transfers(run.plan, cell):
                hosts = (min(here, there), max(here, there))
                sender = {"both": "", "out": here, "in": there}[said.way]
                rates.setdefault(hosts, {}).setdefault(sender, []).append(said.bytes / said.seconds)
                trips.setdefault(hosts, []).append(said.rtt)
        again = {frozenset(way): 0.0 for way in rates}
        for way, (sent, repeats) in sent_again(run.result).items():
            if sent >= MANY_SEGMENTS:
                again[frozenset(way)] = max(again.get(frozenset(way), 0.0), repeats / sent)
        met = (
            LinkRates(hosts, min(map(median, found.values())), median(trips[hosts]), again[frozenset(hosts)])
            for hosts, found in rates.items()
        )
        return tuple(sorted(met, key=lambda link: (link.rate, link.hosts)))

    @cached_property
    def step_seconds(self) -> float | None:
        """The duration of a typical training step."""
        spent = [step.compute + step.wait for seen in self.run.result.ranks for step in seen.steps]
        return median(spent) if spent and max(spent) > 0 else None

    @property
    def tokens(self) -> float | None:
        """The tokens a second over all replicas; None if the training did not finish."""
        plan = self.run.plan
        if not self.step_seconds or not all(self.run.got_past(host, "train") for host in plan.hosts):
            return None
        return len(plan.seats) / plan.parts * SEQUENCES * LENGTH / self.step_seconds

    @property
    def idle(self) -> str:
        """How much of the time stages waited for each other, and how much 1F1B needs; "" without stages."""
        layout, steps = self.run.plan.layout, [step for seen in self.run.result.ranks for step in seen.steps]
        micro, spent = layout.get("micro"), sum(step.compute + step.wait for step in steps)
        if not micro or not spent:
            return ""
        least = 1 - micro / (micro + (layout.get("pp", 1) - 1) / layout.get("vpp", 1))
        said = f"{100 * sum(step.idle for step in steps) / spent:.0f} % of the time"
        return f"stages waited for each other {said} (1F1B alone: {100 * least:.0f} %)"

    @property
    def ranks(self) -> str:
        """ "8 ranks" """
        number = len(self.run.plan.seats)
        return f"{number} rank{'' if number == 1 else 's'}"

    @property
    def replicas(self) -> int:
        plan = self.run.plan
        return len(plan.cells[0]) // plan.parts if plan.cells else 0

    @property
    def layout(self) -> str:
        """ "2 cells of pp 2 × dp 2 × tp 2, 1F1B with 4 micro-batches, in 34 groups" """
        plan = self.run.plan
        cells = f"{len(plan.cells)} cells of " if len(plan.cells) > 1 else ""
        zero = plan.layout.get("zero")
        of_job = {name: size for name, size in plan.layout.items() if size > 1 and name != "zero"}
        stages = parts = ""
        if micro := of_job.pop("micro", 0):
            stages, parts = f"pp {of_job.pop('pp', 1)} × ", f", 1F1B with {micro} micro-batches"
            parts += f", {vpp} stages a rank" if (vpp := of_job.pop("vpp", 1)) > 1 else ""
        parts += f", ZeRO {zero}" if zero else ", a parameter server" * plan.layout.get("ps", 0)
        groups = " × ".join(f"{name} {size}" for name, size in of_job.items())
        groups = f", with the groups of {groups}" if groups else ""
        groups += f", order {plan.order}" if plan.order != ORDER else ""
        if plan.layout:
            groups += f", in {sum(plan.shape(cell).formed for cell in range(len(plan.cells)))} groups"
            said = (seen.collectives for seen in self.run.result.ranks)
            spent = max((each.forming for each in said if each), default=0.0)
            groups += f", made in {spent:.1f} s" if spent else ""
        return f"{cells}{stages}dp {self.replicas} × tp {plan.tp}{parts}{groups}"

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """Name -> version; if ranks differ, each version with its hosts."""
        said: dict[str, dict[str, dict[str, None]]] = {}
        for seat, seen in zip(self.run.plan.seats, self.run.result.ranks, strict=True):
            started = seen.started
            for name, version in ({"device": started.product} | started.versions if started else {}).items():
                if version:
                    said.setdefault(name, {}).setdefault(version, {})[seat.host] = None
        return {name: _alike(found) for name, found in said.items()}

    @property
    def trained_with(self) -> str:
        """The framework, its version and the backend, in words."""
        plan = self.run.plan
        version = self.versions.get(plan.framework) or ""
        name = f"{FRAMEWORKS[plan.framework]} {version}".strip()
        return f"{name} over {plan.backend}" if version or plan.framework != "torch" else plan.backend

    @property
    def comparison(self) -> str:
        """How results were compared; empty if bit by bit."""
        within = tolerance(self.run.result.ranks)
        if within is None:
            return ""
        ranks = wavering(self.run.result)
        return (
            f"{ranks_text(ranks)} {'does' if len(ranks) == 1 else 'do'} not compute the same bits each time: "
            f"gradients, losses and parameters were compared within {within:.0e}"
        )

    @property
    def left_out(self) -> Mapping[str, str]:
        """Host -> why it took no part."""
        return {left.host: left.reason for left in self.run.result.left_out}

    @property
    def injected(self) -> str:
        """The injected faults, in the syntax of --inject."""
        return ",".join(map(str, self.run.plan.injected))

    @property
    def slow(self) -> bool:
        return any(charge.check in SLOW for charge in self.run.charges)

    @cached_property
    def slow_hosts(self) -> Set[str]:
        """The hosts at the ends of slow links."""
        charges = (charge for charge in self.run.charges if charge.check == "smoke-slow-link")
        return {host for charge in charges for host in charge.culprit_hosts(self.run.plan)}


def is_enough(learned: LossSummary | None) -> bool | None:
    """Whether that much was learned as was needed; None after too few steps to decide."""
    if learned is None or learned.drop is None or learned.limit is None:
        return None
    return learned.drop >= learned.limit


def _seconds(run: JudgedRun, name: str) -> float:
    """The duration on the slowest rank; `start` includes importing torch on the slowest host."""
    spent = run.result.seconds
    if name != "start":
        return round(spent.get(name, 0.0), 3)
    imported = max((host.imported or 0.0 for host in run.result.hosts), default=0.0)
    return round(imported + spent.get("spawned", 0.0) + spent.get("start", 0.0), 3)


def worst_cell(run: JudgedRun) -> int:
    """The cell that learned the least."""
    drops = {cell: 1.0 if said.drop is None else said.drop for cell, said in _losses(run).items()}
    return min(drops, key=lambda cell: drops[cell], default=0)


def _losses(run: JudgedRun) -> dict[int, LossSummary]:
    """The losses of the cells that reached a first step."""
    found = {cell: loss_summary(run.result, cell) for cell in range(len(run.plan.cells))}
    return {cell: summary for cell, summary in found.items() if summary.curve}


def healthy_curve(run: JudgedRun, cell: int) -> list[float]:
    """The loss of each step in a healthy run, as the mean of the replicas."""
    shape = run.plan.shape(cell)
    replicas = range(min(shape.dp, REPLICAS))
    return [
        fmean(least_of(shape, step, dp) for dp in replicas) + expected(shape.dp, range(step, step + 1))
        for step in range(shape.steps)
    ]


def _alike(found: Mapping[str, Iterable[str]]) -> str:
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{version} on {fold(hosts)}" for version, hosts in found.items())


def rate_text(rate: float) -> str:
    """The text for a rate in bytes per second."""
    return f"{rate / 1e9:.2f} GB/s" if rate >= 1e9 else f"{number_text(rate / 1e6)} MB/s"


def number_text(value: float) -> str:
    """The number with three significant figures."""
    if value >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


SLOW = ("smoke-straggler", "smoke-contention", "smoke-slow-link")
LAST_LOSSES = 10
"""The number of last steps over which a rank's loss is averaged."""


@dataclass(frozen=True, slots=True)
class RankPace:
    """A rank's median step and last losses, compared with those of the others: it computes `late` seconds
    longer, and its loss is `loss_share` of the mean. `check` is the first check that names it.
    """

    rank: int
    host: str
    step: float
    late: float
    wait: float
    loss: float | None
    loss_share: float
    check: str


def rank_paces(run: JudgedRun) -> tuple[RankPace, ...]:
    """The paces of the ranks that measured at least one step."""
    told = {seen.rank: seen for seen in run.result.ranks if any(step.compute for step in seen.steps)}
    computes = {rank: median(step.compute for step in seen.steps) for rank, seen in told.items()}
    losses = {}
    for rank, seen in told.items():
        last = [
            step.loss
            for step in seen.steps[-LAST_LOSSES:]
            if step.loss is not None and abs(step.loss) < LARGEST
        ]
        if last:
            losses[rank] = fmean(last)
    stages = {rank: run.plan.stage_of(rank) for rank in computes}
    usual = {
        each: median(computes[rank] for rank in told if stages[rank] == each) for each in stages.values()
    }
    mean = fmean(losses.values()) if losses else 0.0
    named = _first_checks(run)
    return tuple(
        RankPace(
            rank,
            run.plan.seat(rank).host,
            step=computes[rank] + (wait := median(step.wait for step in seen.steps)),
            late=computes[rank] - usual[stages[rank]],
            wait=wait,
            loss=losses.get(rank),
            loss_share=losses.get(rank, mean) / mean if mean else 1.0,
            check=named.get(rank, ""),
        )
        for rank, seen in told.items()
    )


def worst_paces(paces: Sequence[RankPace], most: int) -> list[RankPace]:
    """So many ranks, in their order: those that a check names, and then those that compute longest."""
    worst = sorted(paces, key=lambda pace: (pace.check == "", -pace.late, -pace.loss_share))[:most]
    return [pace for pace in paces if pace in worst]


def _first_checks(run: JudgedRun) -> dict[int, str]:
    """Rank -> the first check that names it or its host, faults before warnings."""
    named: dict[int, str] = {}
    for charge in sorted(run.charges, key=lambda charge: not charge.is_fault):
        hosts = set(charge.culprit_hosts(run.plan)) if not charge.ranks else set()
        for rank in (*charge.ranks, *(seat.rank for seat in run.plan.seats if seat.host in hosts)):
            named.setdefault(rank, charge.check)
    return named

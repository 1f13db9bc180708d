"""How far a smoke run has come, in words for the progress line."""

from dataclasses import replace

from doctor.job.framework import FRAMEWORKS
from doctor.smoke.events import TrainStep
from doctor.smoke.live import LiveRank
from doctor.smoke.onhost.page import PHASES
from doctor.smoke.result import SmokePlan
from doctor.smoke.watch import Watch
from doctor.stage import Stage
from doctor.text.nodeset import fold

SMOKE = "smoke"
STARTING = ("spawned", "start", "ready")


def headway(watch: Watch) -> Stage:
    """The phase of the rank furthest behind, with the number of ranks that passed it or the training step."""
    ranks, plan = watch.ranks, watch.plan
    where = _where(plan)
    late = [name for name, host in watch.hosts.items() if host.imported_at is None]
    if late:
        done, of = len(plan.hosts) - len(late), len(plan.hosts)
        doing = f"starting Python and {FRAMEWORKS[plan.framework]} on {done}/{of} hosts"
        ready = sum(host.ready for host in watch.hosts.values())
        return Stage(SMOKE, doing, done, of, ready, "import", waiting=late)
    phase = min((rank.phase for rank in ranks), key=PHASES.index)
    moves = sum(rank.sample.version for rank in ranks if rank.sample)
    if phase in STARTING:
        done = sum(rank.phase not in STARTING[:2] for rank in ranks)
        doing = f"starting {done}/{len(ranks)} ranks  {where}"
        return Stage(SMOKE, doing, done, len(ranks), moves, "start")
    if phase == "train":
        steps = [rank.sample.step for rank in ranks if rank.sample and rank.sample.phase == "train"]
        last = ranks[0].reports[TrainStep][-1:]
        loss = last[0].loss if last and isinstance(last[0], TrainStep) else None
        return training(plan, min(steps, default=0), loss, moves)
    return Stage(SMOKE, f"{phase}  {where}", moves=moves, part=phase)


def training(plan: SmokePlan, done: int, loss: float | None, moves: int = 0) -> Stage:
    """The stage while ranks train. `loss` is rank 0's: None before its first step, or if it is not finite."""
    said = f"  loss {loss:.2f}" if loss is not None else ""
    return Stage(SMOKE, f"train {done}/{plan.steps}{said}  {_where(plan)}", done, plan.steps, moves, "train")


def with_those_behind(stage: Stage, watch: Watch) -> Stage:
    """The stage with the limit for a standstill and the ranks that the others wait for."""
    if stage.waiting:
        return replace(stage, limit=watch.patience.imports)
    limit = max(watch.limit(cell) for cell in range(len(watch.plan.cells)))
    behind = _behind([rank for rank in watch.ranks if not rank.done])
    hosts = dict.fromkeys(rank.seat.host for rank in behind)
    return replace(stage, limit=limit, waiting=tuple(hosts), ranks=[rank.seat.rank for rank in behind])


def _behind(ranks: list[LiveRank]) -> list[LiveRank]:
    """The ranks that have come least far; none if all are equally far."""
    places = {rank.seat.rank: _place(rank) for rank in ranks}
    least = min(places.values(), default=(0, 0, 0))
    last = [rank for rank in ranks if places[rank.seat.rank] == least]
    return last if len(last) < len(ranks) else []


def _place(rank: LiveRank) -> tuple[int, int, int]:
    seen = rank.sample
    return (PHASES.index(rank.phase), seen.position if seen else 0, int(bool(seen and not seen.inside)))


def _where(plan: SmokePlan) -> str:
    number = len(plan.seats)
    return f"{number} rank{'' if number == 1 else 's'} on {fold(plan.hosts)}"

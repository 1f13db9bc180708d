"""MindSpore's roles: one scheduler, and as many workers as all were told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from doctor.launch.crew import Crew
from doctor.launch.ranks import world_of_launch
from doctor.launch.seats import MINDSPORE_ROLES, master_of, role_of
from doctor.launch.told import Told
from doctor.model import Confidence, Problem


def wrong_roles(crew: Crew) -> Iterator[Problem]:
    launch = crew.launch
    wrong: dict[str, list[Told]] = {}
    for told in launch.told:
        role = told.env.get("MS_ROLE")
        if role is not None and role not in MINDSPORE_ROLES:
            wrong.setdefault(role, []).append(told)
    for role, told_so in wrong.items():
        yield Problem(
            "MS_ROLE is none that MindSpore knows: it stops with `Role name is invalid`",
            expected=", ".join(MINDSPORE_ROLES),
            actual=f"MS_ROLE={role[:100] or 'nothing'}, for {crew.labels(told_so)}",
            subject=crew.subject("MS_ROLE"),
            hosts=crew.hosts(told_so),
            where=crew.places(told_so),
            evidence=crew.evidence(told_so, "MS_ROLE"),
            commands=("export MS_ROLE=MS_WORKER",),
        )
    schedulers = [told for told in launch.told if role_of(told) == "scheduler"]
    workers = [told for told in launch.told if role_of(told) == "rank" and told.env.get("MS_ROLE")]
    if len(schedulers) > 1:
        yield Problem(
            "there are several schedulers, and MindSpore takes exactly one",
            expected="one process with MS_ROLE=MS_SCHED",
            actual=f"{len(schedulers)}: {', '.join(crew.label(told) for told in schedulers[:6])}",
            subject=crew.subject("MS_ROLE"),
            hosts=crew.hosts(schedulers),
            where=crew.places(schedulers),
            evidence=crew.evidence(schedulers, "MS_ROLE"),
            commands=("export MS_ROLE=MS_WORKER",),
        )
    yield from _workers(crew, workers, bool(schedulers))


def _workers(crew: Crew, workers: Sequence[Told], scheduled: bool) -> Iterator[Problem]:
    """More workers than MS_WORKER_NUM says, or all of them and no scheduler."""
    world = world_of_launch(crew.launch)
    if world is None or world.value is None or any(told.loop for told in workers):
        return
    if len(workers) > world.value:
        yield Problem(
            f"there are more workers than {world.said} says: the surplus cannot register",
            expected=f"{world.value} ({world.said})",
            actual=f"{len(workers)} with MS_ROLE=MS_WORKER",
            subject=crew.subject(world.said),
            where=crew.places(workers),
            evidence=crew.evidence(workers[:2], world.said),
            commands=(f"export {world.said}={len(workers)}",),
        )
    elif crew.launch.live and len(workers) == world.value and not scheduled:
        master = master_of(workers[0])
        yield Problem(
            "all workers run and no scheduler does: they wait until they give up",
            expected="one process with MS_ROLE=MS_SCHED",
            actual="none among the processes that run",
            subject=crew.subject("MS_ROLE"),
            where=crew.places(workers),
            confidence=Confidence.STRONG,
            evidence=crew.evidence(workers[:2], master.said if master else "MS_ROLE"),
            commands=("export MS_ROLE=MS_SCHED",),
        )

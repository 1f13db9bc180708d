"""Which rank tables the processes that run were told of, where only their hosts know the paths. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from doctor.facts.job import PROCESSES_OF_JOBS
from doctor.job.launch import is_by_device, launch_of_processes, told_tables
from doctor.job.plan import JobPlan
from doctor.judge.engine import Facts


def plan_table_round(facts: Facts, plan: JobPlan) -> Mapping[str, tuple[str, ...]]:
    """By host, with those of the plan; only where a process is known by its device alone."""
    wanted: dict[str, list[str]] = {}
    for launch in launch_of_processes(facts.all(PROCESSES_OF_JOBS)):
        for process in filter(is_by_device, launch.told):
            paths = [table.path for table in told_tables([process]) if table.path]
            wanted.setdefault(process.host or "", []).extend(paths)
    return {
        host: tuple(dict.fromkeys([*plan.table_paths, *paths]))
        for host, paths in wanted.items()
        if not {*paths} <= {*plan.table_paths}
    }

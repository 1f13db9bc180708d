"""A judgement as JSON, schema 1: a contract that scripts depend on."""

from __future__ import annotations

from typing import Any

from doctor import __version__
from doctor.hang.evidence import Frame
from doctor.hang.judge.judgement import Culprit, Group, Heard, Job, Judgement, Standing, Straggler

SCHEMA = 1


def report_json(judgement: Judgement) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "tool": {"name": "cluster-doctor", "version": __version__},
        "run": {"command": "hang", "started": judgement.started},
        "verdict": judgement.verdict.value,
        "exit_code": judgement.exit_code,
        "confidence": judgement.confidence.value,
        "summary": judgement.sentence,
        "standing_still_seconds": judgement.still,
        "standing_still_at_least": judgement.at_least,
        "limit_seconds": judgement.limit,
        "job": _job(judgement.job) if judgement.job else None,
        "jobs": _jobs(judgement),
        "culprits": [_culprit(each) for each in judgement.culprits],
        "suspects": [_culprit(each) for each in judgement.suspects],
        "waiting": [_group(each) for each in judgement.groups],
        "chain": [
            {"rank": each.rank, "waits_for": each.on, "operation": each.operation, "place": each.place}
            for each in judgement.chain
        ],
        "ranks": [_rank(each) for each in judgement.ranks],
        "straggler": _straggler(judgement.straggler) if judgement.straggler else None,
        "unreached": [{"host": host, "reason": why} for host, why in judgement.unreached],
        "rights": _rights(judgement),
        "libraries": [_library(each) for each in judgement.heard],
        "notes": list(judgement.notes),
        "do": list(judgement.do),
        "commands": list(judgement.commands),
        "next_time": list(judgement.next_time),
    }


def _jobs(judgement: Judgement) -> list[dict[str, Any]]:
    """Where none was chosen, with what is so of each."""
    jobs = [_job(job) for job in judgement.jobs]
    for job, one in zip(jobs, judgement.each, strict=False):
        job |= {"verdict": one.verdict.value, "summary": one.sentence}
        job["culprits"] = [_culprit(culprit) for culprit in one.culprits]
    return jobs


def _job(job: Job) -> dict[str, Any]:
    first = job.ranks[0]
    return {
        "name": job.name,
        "launcher": job.launcher or None,
        "ranks": job.expected,
        "found": len(job.ranks),
        "missing": list(job.missing),
        "gone": [{"rank": rank, "host": host} for rank, host in job.gone],
        "hosts": list(job.hosts),
        "started": job.started,
        "master": first.master or None,
        "user": first.user or None,
        "command": first.command or None,
        "pids": [rank.pid for rank in job.ranks],
    }


def _straggler(each: Straggler) -> dict[str, Any]:
    return {
        "rank": each.rank,
        "host": each.host,
        "pid": each.pid,
        "outside": each.outside,
        "looks": each.looks,
    }


def _culprit(each: Culprit) -> dict[str, Any]:
    return {
        "rank": each.rank,
        "host": each.host,
        "pid": each.pid,
        "cause": each.cause.value,
        "summary": each.sentence,
        "place": each.place or None,
        "stack": [_frame(frame) for frame in each.frames],
    }


def _frame(frame: Frame) -> dict[str, Any]:
    return {
        "function": frame.name,
        "file": frame.file,
        "line": frame.line,
        "source": frame.source or None,
    }


def _group(each: Group) -> dict[str, Any]:
    return {
        "ranks": list(each.ranks),
        "number": each.number,
        "operation": each.operation or None,
        "place": each.place or None,
        "function": each.function or None,
        "at_device": each.noticed,
    }


def _rank(each: Standing) -> dict[str, Any]:
    look = each.member.b or each.member.a
    return {
        "rank": each.rank,
        "host": each.member.host,
        "pid": each.member.pid,
        "state": look.state if look else None,
        "in_collective": each.inside,
        "known_by": each.by or None,
        "operation": each.operation or None,
        "place": each.place or None,
        "step": each.step,
        "does": each.doing.words if each.doing else None,
    }


def _library(heard: Heard) -> dict[str, Any]:
    said = heard.opinion
    return {
        "source": said.source.value,
        "trust": said.trust.value,
        "kind": said.kind.value,
        "says": said.words,
        "ranks": sorted(said.ranks),
        "confirms": heard.confirms,
        "against": list(heard.against),
        "evidence": list(said.evidence),
    }


def _rights(judgement: Judgement) -> dict[str, Any] | None:
    rights = judgement.rights
    if rights is None:
        return None
    return {
        "level": rights.level,
        "stacks": rights.stacks,
        "connections": rights.connections,
        "unread": list(rights.unread),
        "more": list(rights.raises),
    }

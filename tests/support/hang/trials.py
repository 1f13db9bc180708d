"""Recorded trials of a job that goes wrong on demand: what was seen, and who was guilty of what."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache

import msgspec
from msgspec.structs import replace

from doctor.hang.evidence import Evidence, Look, Member
from tests.support.paths import ROOT

TRIALS = ROOT / "tests" / "samples" / "hang" / "trials.json.gz"


@dataclass(frozen=True, slots=True)
class Trial:
    mode: str
    """ddp, or tp: tensor and data parallel groups of two"""
    fault: str
    victim: tuple[int, ...]
    evidence: Evidence


@cache
def trials() -> tuple[Trial, ...]:
    return msgspec.json.decode(gzip.decompress(TRIALS.read_bytes()), type=tuple[Trial, ...])


def of(fault: str, mode: str | None = None) -> list[Trial]:
    return [trial for trial in trials() if trial.fault == fault and mode in (None, trial.mode)]


def without_stacks(evidence: Evidence) -> Evidence:
    """As where py-spy is not there."""
    return _looks(evidence, lambda look: replace(look, python=(), unread=("stack: py-spy not found",)))


def of_another_user(evidence: Evidence) -> Evidence:
    """As who owns none of the processes and is not root: states, names, CPU time and connections."""

    def seen(look: Look) -> Look:
        bare = tuple(replace(thread, waits="", syscall=()) for thread in look.threads)
        return replace(look, python=(), threads=bare, kernel=(), files=(), bytes_moved=0)

    return _hosts(_looks(evidence, seen), lambda host: replace(host, root=False, stacks=""))


def _looks(evidence: Evidence, change: object) -> Evidence:
    def member(each: Member) -> Member:
        return replace(each, a=each.a and change(each.a), b=each.b and change(each.b))  # type: ignore[operator]

    return _hosts(evidence, lambda host: replace(host, members=tuple(map(member, host.members))))


def _hosts(evidence: Evidence, change: object) -> Evidence:
    return replace(evidence, hosts=tuple(map(change, evidence.hosts)))  # type: ignore[call-overload]

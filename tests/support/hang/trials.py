"""Recorded trials of a job that fails on demand: the evidence, and the guilty rank."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import msgspec
from msgspec.structs import replace

from doctor.live.evidence import HostEvidence, JobMember, LiveEvidence, Look
from tests.support.paths import ROOT

TRIALS = ROOT / "tests" / "samples" / "hang" / "trials.json.gz"


@dataclass(frozen=True, slots=True)
class Trial:
    mode: str
    """ddp, or tp: tensor and data parallel groups of two"""
    fault: str
    victim: tuple[int, ...]
    evidence: LiveEvidence


@cache
def trials() -> tuple[Trial, ...]:
    return msgspec.json.decode(gzip.decompress(TRIALS.read_bytes()), type=tuple[Trial, ...])


def of(fault: str, mode: str | None = None) -> list[Trial]:
    return [trial for trial in trials() if trial.fault == fault and mode in (None, trial.mode)]


def without_stacks(evidence: LiveEvidence) -> LiveEvidence:
    """The evidence as on hosts without py-spy."""
    return _looks(evidence, lambda look: replace(look, python=(), unread=("stack: py-spy not found",)))


def of_another_user(evidence: LiveEvidence) -> LiveEvidence:
    """The evidence as another user without root sees it: states, names, CPU time and connections."""

    def seen(look: Look) -> Look:
        bare = tuple(replace(thread, waits="", syscall=()) for thread in look.threads)
        return replace(look, python=(), threads=bare, kernel=(), files=(), bytes_moved=0)

    return _hosts(_looks(evidence, seen), lambda host: replace(host, root=False, stacks=""))


def over_two_hosts(evidence: LiveEvidence, later: int = 300) -> LiveEvidence:
    """The last ranks moved to a second host, which was looked at `later` milliseconds after the first."""
    (only,) = evidence.hosts
    half = max(each.world or 0 for each in only.members) // 2
    second = {each.pid for each in only.members if (each.rank or 0) >= half}
    second |= {each.pid for each in only.members if each.helps in second}
    ends = {
        each.local: member.pid in second
        for member in only.members
        for look in (member.a, member.b)
        for each in (look.connections if look else ())
    }

    def address(end: str) -> str:
        return end.replace("127.0.0.1", "10.0.0.2" if ends.get(end) else "10.0.0.1")

    def moved(look: Look | None, by: int) -> Look | None:
        return look and replace(
            look,
            connections=tuple(
                replace(
                    each,
                    local=address(each.local),
                    peer=address(each.peer),
                    last_sent=each.last_sent + by,
                    last_received=each.last_received + by,
                )
                for each in look.connections
            ),
        )

    def member(each: JobMember) -> JobMember:
        there = each.pid in second
        by = later if there else 0
        name = "node2" if there else "node1"
        return replace(each, host=name, master=address(each.master), a=moved(each.a, by), b=moved(each.b, by))

    members = [member(each) for each in only.members]
    hosts = tuple(
        replace(only, host=name, members=tuple(each for each in members if each.host == name))
        for name in ("node1", "node2")
    )
    return replace(evidence, hosts=hosts, asked=("node1", "node2"))


def _looks(evidence: LiveEvidence, change: Callable[[Look], Look]) -> LiveEvidence:
    def member(each: JobMember) -> JobMember:
        return replace(each, a=each.a and change(each.a), b=each.b and change(each.b))

    return _hosts(evidence, lambda host: replace(host, members=tuple(map(member, host.members))))


def _hosts(evidence: LiveEvidence, change: Callable[[HostEvidence], HostEvidence]) -> LiveEvidence:
    return replace(evidence, hosts=tuple(map(change, evidence.hosts)))

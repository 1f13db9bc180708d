"""torch_npu's status files: the last collective of each group that a rank's device has begun or finished.

torch_hccl_status-1_10.0.0.1_1_8_4711_1795284713000.log: rank, master, device, ranks, process, milliseconds
{"last_comm_op": [{"comm_ids": "all", "op_type": "ALLREDUCE", "pg_id": "0", "seq": 57, "status": "start"}],
 "is_master": false, "exception_message": "", "global_pg_end_time": 0}
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from doctor.live.evidence import Count, Word
from doctor.live.libraries.groups import GroupStanding, culprits, named
from doctor.live.libraries.opinions import (
    Opinion,
    OpinionKind,
    Source,
    Subject,
    SubjectState,
    Trust,
    decoded,
    silent,
)
from doctor.live.libraries.rank_finder import HostText, RankFinder, pairs

FILE = re.compile(
    r"(?:.*/)?torch_hccl_status-(\d{1,7})_[^/]{1,256}_\d{1,5}_(\d{1,7})_(\d{1,7})_\d{1,20}\.log\Z"
)
"""The groups match the rank, the number of ranks and the PID."""


class _Operation(msgspec.Struct, frozen=True):
    seq: Count
    pg_id: Word
    op_type: Word = ""
    comm_ids: str = ""
    status: Word = ""


class NpuStatus(msgspec.Struct, frozen=True):
    last_comm_op: tuple[_Operation, ...] = ()


@dataclass(frozen=True, slots=True)
class _Position:
    subject: Subject
    operation: _Operation


def opinion(who: RankFinder) -> Opinion | None:
    said = list(who.said(Source.TORCH_NPU))
    problem = next((f"{each.host}: {each.about.problem}" for each in said if each.about.problem), "")
    groups: dict[tuple[str, str], list[_Position]] = {}
    moved = False
    for first, second in pairs(each for each in said if not each.about.problem):
        a, b = decoded(first.about.text, NpuStatus), decoded(second.about.text, NpuStatus)
        if isinstance(a, str) or isinstance(b, str):
            problem = f"{second.about.name}: {a if isinstance(a, str) else b}"
            continue
        moved |= a.last_comm_op != b.last_comm_op and _numbers(a) != _numbers(b)
        for operation in b.last_comm_op:
            position = _Position(_subject(who, second), operation)
            groups.setdefault((operation.pg_id, operation.comm_ids), []).append(position)
    if moved:
        return _opinion(OpinionKind.MOVES, (), (), "collectives still begin and end")
    standing = [
        each
        for (name, members), positions in groups.items()
        if (each := _standing(who, name, members, positions)) is not None
    ]
    kind, behind, words = culprits(standing)
    if kind is not OpinionKind.SILENT:
        text = {
            OpinionKind.BLAMES: f"{named(behind)} {'has' if len(behind) == 1 else 'have'} not begun the "
            "collective in which the others are",
            OpinionKind.MISMATCH: f"{named(behind)} wait for each other in different groups",
            OpinionKind.LAUNCHED: "every rank has begun the same collective; no device ends it",
        }[kind]
        return _opinion(kind, behind, words or tuple(each.words for each in standing), text)
    if not said:
        return None
    why = problem or "in no group do they show who waits for whom"
    return silent(Source.TORCH_NPU, f"torch_npu's status files are not used: {why}.")


def _numbers(status: NpuStatus) -> dict[tuple[str, str], tuple[int, str]]:
    return {(each.pg_id, each.comm_ids): (each.seq, each.status) for each in status.last_comm_op}


def _subject(who: RankFinder, said: HostText) -> Subject:
    """The rank that a file belongs to: by its process if that is known, else by the rank in its name."""
    if said.about.pid is not None:
        return who.of_text(said, SubjectState.BEHIND)
    match = FILE.match(said.about.name)
    return who.rank(int(match[1]), SubjectState.BEHIND) if match else Subject(host=said.host)


def _standing(
    who: RankFinder, name: str, members: str, positions: Sequence[_Position]
) -> GroupStanding | None:
    """None if no rank is seen to wait in this group."""
    furthest = max(each.operation.seq for each in positions)
    ahead = [p for p in positions if p.operation.seq == furthest and p.operation.status == "start"]
    behind = [p for p in positions if p.operation.seq < furthest]
    if not ahead:
        return None
    late = ", ".join(f"{each.subject} at {each.operation.seq}" for each in behind[:4]) or "nobody is behind"
    kind = ahead[0].operation.op_type
    return GroupStanding(
        name=name,
        behind=tuple(each.subject for each in behind),
        waiting=frozenset(each.subject.key for each in ahead),
        words=f"group {name} ({members.strip()[:200]}): {len(ahead)} in number {furthest} ({kind}); {late}",
        whole=len(ahead) + len(behind) == (who.world if members == "all" else len(members.split())),
    )


def _opinion(
    kind: OpinionKind, subjects: tuple[Subject, ...], evidence: tuple[str, ...], text: str
) -> Opinion:
    words = f"torch_npu's status files: {text}."
    return Opinion(
        source=Source.TORCH_NPU,
        trust=Trust.STRONG,
        kind=kind,
        words=words,
        subjects=subjects,
        evidence=evidence,
    )

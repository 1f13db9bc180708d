"""torch_npu's status files: the last collective of each group that a rank's device has begun or finished.

torch_hccl_status-1_10.0.0.1_1_8_4711_1795284713000.log: rank, master, device, ranks, process, milliseconds
{"last_comm_op": [{"comm_ids": "all", "op_type": "ALLREDUCE", "pg_id": "0", "seq": 57, "status": "start"}],
 "is_master": false, "exception_message": "", "global_pg_end_time": 0}
"""

import re
from collections.abc import Sequence

import msgspec

from doctor.live.evidence import Count, Word
from doctor.live.libraries.groups import GroupStanding, opinion_of, standing
from doctor.live.libraries.opinions import Opinion, OpinionKind, Source, Subject, Trust, decoded, silent
from doctor.live.libraries.rank_finder import HostText, RankFinder, pairs

FILE = re.compile(
    r"(?:.*/)?torch_hccl_status-(\d{1,7})_[^/]{1,256}_\d{1,5}_(\d{1,7})_(\d{1,7})_\d{1,20}\.log\Z"
)
"""The groups match the rank, the number of ranks and the PID."""
_TITLE = "torch_npu's status files"


class _Operation(msgspec.Struct, frozen=True):
    seq: Count
    pg_id: Word
    op_type: Word = ""
    comm_ids: str = ""
    status: Word = ""


class NpuStatus(msgspec.Struct, frozen=True):
    last_comm_op: tuple[_Operation, ...] = ()


_Position = tuple[Subject, _Operation]


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
            at = groups.setdefault((operation.pg_id, operation.comm_ids), [])
            at.append((_subject(who, second), operation))
    if moved:
        words = f"{_TITLE}: collectives still begin and end."
        return Opinion(source=Source.TORCH_NPU, trust=Trust.STRONG, kind=OpinionKind.MOVES, words=words)
    standings = [
        each
        for (name, members), positions in groups.items()
        if (each := _standing(who, name, members, positions)) is not None
    ]
    launched = "every rank has begun the same collective; no device ends it"
    found = opinion_of(Source.TORCH_NPU, _TITLE, standings, entered="begun", launched=launched)
    if found or not said:
        return found
    why = problem or "in no group do they show who waits for whom"
    return silent(Source.TORCH_NPU, f"{_TITLE} are not used: {why}.")


def _numbers(status: NpuStatus) -> dict[tuple[str, str], tuple[int, str]]:
    return {(each.pg_id, each.comm_ids): (each.seq, each.status) for each in status.last_comm_op}


def _subject(who: RankFinder, said: HostText) -> Subject:
    """The rank that a file belongs to: by its process if that is known, else by the rank in its name."""
    if said.about.pid is not None:
        return who.of_text(said)
    match = FILE.match(said.about.name)
    return who.rank(int(match[1])) if match else Subject(host=said.host)


def _standing(
    who: RankFinder, name: str, members: str, positions: Sequence[_Position]
) -> GroupStanding | None:
    """None if no rank is seen to wait in this group."""
    furthest = max(did.seq for _, did in positions)
    ahead = [(each, did) for each, did in positions if did.seq == furthest and did.status == "start"]
    if not ahead:
        return None
    late = [(each, did.seq) for each, did in positions if did.seq < furthest]
    size = who.world if members == "all" else len(members.split())
    named = f"{name} ({members.strip()[:200]})"
    waiting = [each for each, _ in ahead]
    return standing(named, furthest, ahead[0][1].op_type, waiting, late, size)

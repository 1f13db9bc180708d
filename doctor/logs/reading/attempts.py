"""Finds the attempts in one file: torchrun restarted the job, or two starts wrote to the file in turn.

A file is cut where a launcher gives up a start, and where its first lines come again. Whether another start
follows is known only later, so parts of one attempt are joined again.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from doctor.logs.model import Form, Role
from doctor.logs.reading.file_scan import CUT_OFF, Scan
from doctor.logs.reading.mark import PartEnd
from doctor.logs.reading.starts import places
from doctor.logs.reading.window import AROUND, Window
from doctor.logs.sentence import sentence
from doctor.text.hostprogram import table

MOST = 100
"""The most parts of one file; the rest of the file is the last part."""


_MARKED, WORDS, GAVE_UP = ([row.encode() for row in rows] for _, *rows in table(__file__, "attempts.txt"))
_MARKS, _TABLE = re.compile(b"|".join(_MARKED)), re.compile(rb"={50,90}\r?\n?")
_TABLE_HOST = re.compile(rb"(?:^|:) ? ? ?host {6}: (\S{1,255})\r?$", re.MULTILINE)
_LAUNCHER = re.compile(rb" (\d{1,9}) (?:site-packages/)?torch/distributed/(?:elastic/|launcher/|run\.py)")
_TELLING = 24
"""The least letters of lines that are known again."""
_OF_ONE_START = 10.0
"""The most seconds between the first lines of two ranks of one start."""
_UNITED = ("shared", "ranks", "tasks", "launchers", "tables", "over", "progress", "gave_up")
_COUNTED = ("forms", "hosts", "pids")


def head_of(text: bytes) -> bytes:
    """The second to fourth line of a file, with which a program begins to write; the first may be a time.
    It is empty if these lines say too little, are alike, as steps are, or go on with others.
    """
    lines = text.split(b"\n", 4)[1:4]
    words = {sentence(line) for line in lines if line[:1] not in (b" ", b"\t")}
    telling = len(lines) == len(words) == 3 and sum(map(len, words)) >= _TELLING
    return b"\n".join([b"", *lines, b""]) if telling else b""


def cut(window: Window, head: bytes, begins: Sequence[int] = ()) -> Iterator[tuple[Window, PartEnd | None]]:
    """The parts of a window in their order, and how each ends."""
    at, number = window.start, window.number
    ends = [*((place, PartEnd.BEGUN) for place in begins), *_ends(window, head)]
    for end, mark in sorted(ends, key=lambda found: found[0])[:MOST]:
        if end <= at:
            continue
        other = mark in (PartEnd.AGAIN, PartEnd.BEGUN)
        data = window.data[:end] if other else window.data  # what follows is another job's
        yield Window(data, at, end, number), mark
        number += data.count(b"\n", at, end)
        at = end
    if at < window.end:
        yield Window(window.data, at, window.end, number), None


def _ends(window: Window, head: bytes) -> Iterator[tuple[int, PartEnd]]:
    """Where parts end, and how."""
    data = window.data
    for found in _marks(data, max(0, window.start - AROUND // 4), window.end):
        end = data.find(b"\n", found.end(), window.end) + 1
        mark = PartEnd(found.lastgroup) if found.lastgroup != "table" else PartEnd.OVER
        if found["table"]:
            closing = _TABLE.search(data, found.end(), min(window.end, found.end() + AROUND // 4))
            end = closing.end() if closing else 0
        yield end, mark
    for place in islice(places(data[: window.end], head, window.start), MOST) if head else ():
        yield data.rfind(b"\n", window.start, place) + 1, PartEnd.AGAIN


def _marks(data: bytes, start: int, end: int) -> Iterator[re.Match[bytes]]:
    """The marks at which a part ends, in their order."""
    for at in sorted(place for word in WORDS for place in places(data, word, start)):
        if found := _MARKS.match(data, at, end):
            yield found


def note(found: Scan, lines: bytes) -> None:
    """Note what the launchers say in these lines."""
    found.launchers |= set(map(int, _LAUNCHER.findall(lines)))
    found.tables |= set(_TABLE_HOST.findall(lines))
    found.gave_up |= any(word in lines for word in GAVE_UP)


def attempts_of(parts: Sequence[Scan]) -> list[Scan]:
    """The attempts of one file: parts that belong together are joined. Each host of a start ends a part."""
    found = [parts[0]]
    for place, part in enumerate(parts[1:], 1):
        tables = next((each.tables for each in parts[place:] if each.tables), set())
        other_host = bool(found[-1].tables and tables) and not found[-1].tables & tables
        if not other_host and _begins(found[-1], part):
            found.append(part)
        else:
            found[-1] = joined(found[-1], part)
    return found


def _begins(before: Scan, part: Scan) -> bool:
    """Whether a part belongs to another start than the part before it; False if unknown."""
    calm = not part.fold.seen and not part.odd and bool(part.progress)
    if before.mark is PartEnd.ENDED:
        return calm and bool(part.over)
    if before.mark in (PartEnd.AGAIN, PartEnd.BEGUN):
        told = {symptom.partition("-")[0] for symptom, _, _ in before.fold.seen}
        same = before.launchers != part.launchers or _causes(before) == _causes(part) or not _causes(part)
        ended = "slurm" in told or ((before.mark is PartEnd.BEGUN or before.gave_up) and (calm or not same))
        judged = calm or part.odd or part.fold.seen or part.named.of_one
        return (_later(before, part) or ended) and bool(before.fold.seen or before.odd) and bool(judged)
    if before.mark is PartEnd.OVER:
        if before.last_at is None or part.first_at is None or part.first_at <= before.last_at:
            return False
        again = bool(ranks_of(before) & ranks_of(part))
        return calm or (again and bool(part.progress or part.launchers - before.launchers))
    if len(before.launchers | part.launchers) > 1:
        return False
    if before.mark is PartEnd.FAILED and part.mark is PartEnd.RESTART:
        return False  # torchrun writes both messages about one failure
    if before.mark is PartEnd.RESTART or part.mark is PartEnd.FAILED:
        return True
    if part.odd and all(name.startswith(CUT_OFF) for name in part.odd):
        return False  # the traceback of the launcher itself
    return not part.gave_up and part.forms[Form.PLAIN] > 0


def _later(before: Scan, part: Scan) -> bool:
    times = _not_none(before.first_at, part.first_at)
    return len(times) == 2 and times[1] - times[0] > _OF_ONE_START


def _causes(part: Scan) -> set[str]:
    """What can have ended a part, without what its ranks say if they lose another one."""
    roots = (each.first.text for each in part.fold.seen.values() if each.symptom.role is Role.ROOT)
    return {*part.odd, *(sentence(text.encode()).decode() for text in roots)}


def ranks_of(part: Scan) -> set[int]:
    """The ranks that are known to have written in it, or that are in the table of its launcher."""
    local = {rank for rank in part.learned.rank_of_local.values() if rank is not None}
    return part.ranks | part.learned.ranks | local


def joined(one: Scan, other: Scan) -> Scan:
    """Two parts of one file as one; `other` is the later one."""
    for key, each in other.fold.seen.items():
        known = one.fold.seen.get(key)
        if known is None:
            one.fold.seen[key] = each
        else:
            known.count += each.count
            known.last = each.last
    one.learned.add(other.learned)
    final = not (one.mark is PartEnd.BEGUN and _later(one, other))  # else the program has begun again
    odd = {
        wording: (who, replace(line, final=line.final and final)) for wording, (who, line) in one.odd.items()
    }
    return replace(
        one,
        **{name: getattr(one, name) | getattr(other, name) for name in _UNITED},
        **{name: getattr(one, name) + getattr(other, name) for name in _COUNTED},
        size=max(one.size, other.size),
        lines=max(one.lines, other.lines),
        first_at=min(_not_none(one.first_at, other.first_at), default=None),
        last_at=max(_not_none(one.last_at, other.last_at), default=None),
        last=other.last or one.last,
        faint=other.faint or one.faint,
        odd={**other.odd, **odd} if final else {**odd, **other.odd},
        curves=other.curves or one.curves,
        problem=one.problem or other.problem,
        mark=other.mark,
    )


def _not_none(*times: float | None) -> list[float]:
    return [each for each in times if each is not None]


def by_attempt(files: Mapping[str, Sequence[Scan]]) -> list[list[Scan]]:
    """The scans of each attempt of the job, in order. A file that belongs to no attempt is in each."""
    most = max((len(each) for each in files.values()), default=0)
    numbered = [each for each in [each[0].named.attempt for each in files.values()] if each is not None]
    total = max(most, *(number + 1 for number in numbered)) if numbered else most
    if total < 2 or not _agree(files, total, bool(numbered)):
        return [[whole(each) for each in files.values()]]
    found: list[list[Scan]] = [[] for _ in range(total)]
    begun = [each.first_at for each in max(files.values(), key=len)]
    for scans in files.values():
        number = scans[0].named.attempt
        if number is not None:
            found[number].append(whole(scans))
        elif len(scans) > 1 or scans[0].mark is PartEnd.FAILED or scans[0].named.of_one:
            end = _last(scans[-1].last_at, begun) if len(scans) < total else total - 1
            more = max(0, len(scans) - end - 1)
            mine = [whole(scans[: more + 1]), *scans[more + 1 :]]
            for place, each in enumerate(mine, end + 1 - len(mine)):
                found[place].append(each)
        else:
            for several in found:
                several.append(scans[0])
    return [each for each in found if each]


def _last(ended: float | None, begun: Sequence[float | None]) -> int:
    """The last attempt that had begun before a rank's file ended; the last of all if no times tell."""
    before = [place for place, at in enumerate(begun) if at is not None and ended is not None and at <= ended]
    return max(before, default=len(begun) - 1)


def _agree(files: Mapping[str, Sequence[Scan]], total: int, folders: bool) -> bool:
    """Whether each file shows the same number of them, or is of one rank, which may be in some alone."""
    if folders or all(each[0].named.of_one for each in files.values()):
        return True
    tell = [each for each in files.values() if len(each) > 1 or each[0].launchers or each[0].ranks]
    return all(len(each) == total for each in tell)


def whole(scans: Sequence[Scan]) -> Scan:
    """All attempts of a file as one."""
    made = scans[0]
    for each in scans[1:]:
        made = joined(made, each)
    return made

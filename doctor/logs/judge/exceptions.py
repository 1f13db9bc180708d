"""The exception that a program ended with, if that is all that is known."""

import re

from doctor.logs.judge.blame import LogBlame
from doctor.logs.judge.case import LogCase
from doctor.logs.judge.deaths import OF_OTHERS, PLACE, raised
from doctor.logs.judge.event import LAST_WORDS
from doctor.logs.judge.kinds import SuspectKind
from doctor.logs.judge.line_ranking import NEAR_END
from doctor.logs.judge.parties import apart, key
from doctor.logs.judge.recovery import NO_SPEED
from doctor.logs.judge.words import who
from doctor.logs.model import CUT, LogFile, LogLine, Party
from doctor.logs.steps import says_success
from doctor.model import Confidence
from doctor.text.hostprogram import table

ECHOES = ("paddle-terminated", "process-ended-by-term", "lsf-exited")
"""Consequences that tell of an end, and not why."""
FEW = 3
"""The most lines of a file that is nothing but an exception."""
_CUT_AT = re.compile(rf"{re.escape(CUT)}.* \((.+):(\d+)\)$")
_UNCAUGHT, _LAUNCHER, _COMMAND, _PASSES = (re.compile(each) for _, each in table(__file__, "exceptions.txt"))


def own_exception(case: LogCase) -> LogBlame | None:
    """Only the last words of a file count: a program goes on after an exception that it caught."""
    files = {file.name: file for file in case.logs.files}
    for party, line in case.odd:
        place, said = PLACE.search(line.text), raised(line)
        command = len(case.odd) == 1 and said is not None and _COMMAND.match(said)
        if said is None or (OF_OTHERS.match(said) and not command):
            continue
        last = files[line.file].last if len(files) == 1 and files[line.file].lines <= FEW else None
        if not (place or _UNCAUGHT.search(line.text[:200]) or (last and last.number == line.number)):
            continue
        if place and not command and _LAUNCHER.search(place["file"]):
            continue
        told = any(
            each.sighting.last.file == line.file and each.sighting.last.number > line.number
            for each in case.events
            if each.id in ECHOES  # or a server, of its engine
            or (each.kind is SuspectKind.CONFIRMS and each.sighting.symptom.family == "serving")
        )
        below = (other for _, other in case.odd if other.file == line.file and other.number > line.number)
        later = [(other.number, end) for other in below if (end := raised(other))]
        if later:  # which may only pass it on
            near = later[0][0] - line.number <= 2 * NEAR_END
            told = near and all(_PASSES.match(end) for _, end in later)
        cut = (other.number for _, other in case.odd if other.file == line.file and _again(line, other))
        over = min([files[line.file].lines, *(number - 1 for number in cut if number > line.number)])
        if not _ends(party, line, files[line.file], told, over - line.number):
            continue
        named = (party,) if key(party)[0] != "file" else ()
        says = f"{who(named)} ended with an exception of the program: {said}"
        says = says if named else f"the program ended with an exception: {said}"
        return LogBlame(
            says, named, (), Confidence.SUSPECT, (), (line,), nameless=True, brief="exception of the program"
        )
    return None


def _again(line: LogLine, other: LogLine) -> bool:
    """Whether the traceback of the other, which the end cuts off, is that of this line."""
    place = _CUT_AT.search(other.text)
    return place is not None and any(f'"{place[1]}", line {place[2]},' in frame for frame in line.frames)


def _ends(party: Party, line: LogLine, file: LogFile, told: bool, below: int) -> bool:
    """Whether it is the last that its writer says, or others say below it that a process failed (`told`).
    `below`: how many lines follow until the file ends, or a traceback that its end cuts off begins.
    """
    if line.final:  # below it, at most a bar is printed again
        return True
    steps = (step for step in file.progress if step.number > line.number and not apart(party, step.who))
    if any(not step.text.endswith(NO_SPEED) for step in steps):
        return False
    if party.rank is not None or file.last is None or told:  # torch marks what nobody caught with the rank
        return True
    end = raised(file.last)
    same = (end is not None and end in line.text) or file.last.text in line.rest
    return not says_success(file.last.text) and (same or below < LAST_WORDS)

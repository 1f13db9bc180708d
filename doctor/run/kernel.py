"""The kernel's log of a host, as far as it is about the job: a kernel reports on all programs, for weeks."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from doctor.agents.onhost.kernel_kills import JobMarks, announces, kills, named_numbers
from doctor.agents.onhost.kernel_words import own_words
from doctor.logs.explanation import Explanation, Proof, ProofState
from doctor.logs.model import Form
from doctor.model import Confidence

_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d")
_LOST = re.compile(
    r"(?i)\bsigkill\b|\bsignal:? ?9\b|(?<![\w-])killed\s*$|(?:code|status)\W{0,9}(?:-9|137)(?!\d)"
    r"|\d killed\b|\bkilled by signal|已杀死"
)
"""What launchers and shells print of a process that KILL ended."""
JOB_IDS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
LAST = 120.0
"""Seconds before the end of the job in which a process that nobody names may be the one that it lost."""
_DOUBT = "the job does not name the process that the kernel killed, which may be another program's"
_NO_PROOF = "the kernel's log does not say whose process it was"


def marks_of(said: bytes, environ: Mapping[str, str]) -> tuple[JobMarks, bool]:
    """The marks of the processes of a job that printed this, and whether it says that KILL ended one."""
    lines = said.decode(errors="replace").splitlines()
    pids = {int(number) for line in lines for number in named_numbers(line)}
    ids = [value for name in JOB_IDS if (value := environ.get(name, ""))]
    return JobMarks(pids, ids), any(map(_LOST.search, lines))


def of_job(
    text: bytes, begin: float, until: float, marks: JobMarks, *, lost: bool
) -> tuple[bytes, frozenset[int]]:
    """The lines from the time of the job, without processes of others that were killed for lack of memory;
    with the PIDs of those that only may be the job's. `lost`: KILL ended one of its processes.
    """
    lines = [*_between(text.splitlines(keepends=True), begin, until)]
    said = [_said(line) for line in lines]
    found = kills(zip(map(_time, lines), said, strict=True))
    ours = [each for each in found if marks.have(each)]
    last = max(begin, until - LAST)
    maybe = [each for each in found if lost and (each.at or 0.0) >= last] if not ours else []
    gone = {place for each in found if each not in ours and each not in maybe for place in each.messages}
    stays = (
        line
        for place, line in enumerate(lines)
        if place not in gone and not announces(said[place])  # another line names the process
    )
    return b"".join(stays), frozenset(each.pid for each in maybe)


def _said(line: bytes) -> str:
    begin = _TIME.match(line)
    return own_words(line[begin.end() if begin else 0 :].strip().decode(errors="replace"))


def _between(lines: Iterable[bytes], begin: float, until: float) -> Iterator[bytes]:
    """What came before or later did not end the job, and what has no time may be weeks old."""
    keeps = False
    for line in lines:
        if at := _time(line):
            keeps = begin <= at <= until
        if keeps:
            yield line


def _time(line: bytes) -> float | None:
    """In seconds since 1970; None if the line goes on with what another began."""
    said = _TIME.match(line)
    return datetime.fromisoformat(said[0].decode().replace(",", ".")).timestamp() if said else None


def with_doubts(explanation: Explanation, maybe: Collection[int]) -> Explanation:
    """The explanation, with a cause only suspected if it rests on a kill of one of these processes: the
    kernel names it, but the job does not.
    """
    found, proofs = explanation.conclusion, list(explanation.proofs)
    charges = list(found.charges)
    for place, charge in enumerate(charges):
        logged = ((None, line.text) for line in charge.lines if line.form is Form.KERNEL)
        killed = {each.pid for each in kills(logged)}
        if killed and killed <= {*maybe}:
            charges[place] = replace(charge, confidence=Confidence.SUSPECT, how=(_DOUBT,))
            proofs = [
                Proof(place, ProofState.OPEN, _NO_PROOF) if each.charge == place else each for each in proofs
            ]
    return replace(explanation, conclusion=replace(found, charges=tuple(charges)), proofs=tuple(proofs))

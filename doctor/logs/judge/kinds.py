"""The kind of a sighting: whether somebody died, waits, was left alone, or is named by others.

The role of a message says whether it can be the cause; its kind says which rule of the judge uses it. The
kind follows from words in the message, so that symptoms that users add have one too.
"""

import re
from enum import Enum

from doctor.agents.onhost import kernel_kills
from doctor.logs.model import Form, Role, Sighting
from doctor.text.hostprogram import table
from doctor.text.signalname import SAID, signal_number


class SuspectKind(Enum):
    DIED = "died"
    """Its process was ended by a signal, as its launcher or the kernel reports."""
    LEFT = "left"
    """Its process ended with an exit code that does not show the cause."""
    STOPPED = "stopped"
    """Its launcher ended it, because another had ended."""
    NAMES = "names"
    ABSENT = "absent"
    """Some ranks never came to the rendezvous."""
    LINK = "link"
    """A connection could not be made, or was lost although nobody at its other end had died."""
    ROOT = "root"
    WAITS = "waits"
    """It waited for others until it timed out."""
    CLOSED = "closed"
    """The other end closed the connection."""
    AFTER = "after"
    """Any other consequence."""
    CONFIRMS = "confirms"
    SCHEDULER = "scheduler"
    """The scheduler ended the job."""


_MEANS = {kind: tuple(words) for kind, *words in table(__file__, "kinds.txt")}
LAUNCHERS = _MEANS["launchers"]
_NAMES_HOST = ("ssh: connect to host",)
_SCHEDULER = ("DUE TO TIME LIMIT", "DUE TO PREEMPTION", "DUE TO NODE FAILURE", "DUE TO JOB REQUEUE")
_BATCH_SYSTEMS = "schedulers"
"""The family of symptoms of other schedulers: those that only confirm say that it ended the job."""
_CANCELLED = re.compile(r"\*\*\* JOB \d{1,12} (?:ON \S{1,80} )?CANCELLED AT (?!.{0,40}TASK FAILURE)")
"""A job is cancelled on request; a step also by srun, after one of its tasks failed."""
_WAITING = {"wait", "waits", "timeout", "watchdog"}
"""Words in the ids of symptoms of ranks that wait."""
_LAUNCHERS = {Form.ELASTIC, Form.MPI, Form.SLURM}
_SUPERVISORS = ("msrun-worker-ended", "supervisor-", "kubernetes-exit-code", "kubernetes-container-ended")
"""What supervisors say of those they watch, in lines that any program may write."""
_BY_SIGNAL = {
    **dict.fromkeys((4, 7, 8, 9, 11), SuspectKind.DIED),
    **dict.fromkeys((1, 2, 15), SuspectKind.STOPPED),
}
"""Signals that end a process through its own fault or kill it from outside, and those that launchers send."""
_EXIT = re.compile(r"(?i)exit ?code *[:=]? *(-?\d{1,10})|exited with exit code (\d{1,10})")
_SIGNAL = re.compile(r"(?i)signal[: ] *(\d{1,3})\b")
_BY_SLURM = re.compile(r"srun: error: \S{1,80}: tasks? [\d,-]{1,100}: (Killed|Terminated|Aborted)\b")


def kind_of(sighting: Sighting) -> SuspectKind | None:
    """The kind of a sighting; None if it is not evidence."""
    role, text, form = sighting.symptom.role, sighting.first.text, sighting.first.form
    if role in (Role.ADVICE, Role.STATES) or _ended_well(sighting):
        return None
    if any(each in text for each in _SCHEDULER) or (form is Form.SLURM and _CANCELLED.search(text)):
        return SuspectKind.SCHEDULER
    if sighting.symptom.family == _BATCH_SYSTEMS and role is Role.CONFIRMS:
        return SuspectKind.SCHEDULER
    if any(each in text for each in _MEANS["absent"]):
        return SuspectKind.ABSENT
    if by := _by_end(sighting, form):
        return by
    pair = any(name.startswith("peer_") for name in sighting.taken)
    if any(each in text for each in _NAMES_HOST) and not {"host", "guilty_host"}.isdisjoint(sighting.taken):
        return SuspectKind.NAMES
    if role is Role.NAMES:
        return SuspectKind.LINK if pair else SuspectKind.NAMES
    if role is Role.CONFIRMS:
        return SuspectKind.CONFIRMS
    if role is Role.CONSEQUENCE:
        waits = any(each in text for each in _MEANS["waits"]) or not _WAITING.isdisjoint(
            sighting.symptom.id.split("-")
        )
        closed = any(each in text for each in _MEANS["closed"])
        return SuspectKind.WAITS if waits else SuspectKind.CLOSED if closed else SuspectKind.AFTER
    pair = pair or any(each in text for each in _MEANS["link"])
    if "local" in sighting.symptom.id.split("-"):  # the line says that its own end is at fault
        return SuspectKind.ROOT
    return SuspectKind.LINK if pair and form is not Form.KERNEL else SuspectKind.ROOT


def _ended_well(sighting: Sighting) -> bool:
    """Whether a supervisor speaks of an end that was none of an error, or does not say which."""
    id, code = sighting.symptom.id, exit_of(sighting)
    return id.startswith(_SUPERVISORS) and (
        code == 0 or (id == "kubernetes-exit-code" and code is None and "signal" not in sighting.taken)
    )


def _by_end(sighting: Sighting, form: Form) -> SuspectKind | None:
    text = sighting.first.text
    if lacks_memory(sighting):
        return SuspectKind.DIED
    number = signal_of(sighting)
    if number is not None and (form in _LAUNCHERS or sighting.symptom.role is not Role.CONSEQUENCE):
        return _BY_SIGNAL.get(number, SuspectKind.LEFT)
    if "closing signal SIGTERM" in text or "Job step aborted" in text:
        return SuspectKind.STOPPED
    by_launcher = form in _LAUNCHERS or sighting.symptom.id.startswith(_SUPERVISORS)
    if by_launcher and sighting.symptom.role is not Role.ROOT and exit_of(sighting) not in (None, 0):
        return SuspectKind.LEFT
    return None


def lacks_memory(sighting: Sighting) -> bool:
    """Whether the kernel or the scheduler reports that the kernel killed a process for lack of memory."""
    by = sighting.first.form in (Form.KERNEL, Form.SLURM)
    return by and any(each in sighting.first.text for each in kernel_kills.WORDS)


def killed_pid(sighting: Sighting) -> int | None:
    """The process that the kernel killed; the first or the last line names it."""
    first, last = (kernel_kills.killed_pid(line.text) for line in (sighting.first, sighting.last))
    return last if first is None else first


def exit_of(sighting: Sighting) -> int | None:
    found = _EXIT.search(sighting.first.text)
    said = sighting.taken.get("exitcode") or (next(filter(None, found.groups())) if found else "")
    return int(said) if re.fullmatch(r"-?\d{1,10}", said) else None


def signal_of(sighting: Sighting) -> int | None:
    """The signal that ended a process; exit codes -9 and 137 are signal 9 as well."""
    if (number := signal_number(sighting.taken.get("signal", ""))) is not None:
        return number
    code = exit_of(sighting)
    if code is not None and -65 < code < 0:
        return -code
    if code is not None and 128 < code < 160:
        return code - 128
    if sighting.first.form not in _LAUNCHERS and "signal" not in sighting.symptom.id:
        return None
    if found := _SIGNAL.search(sighting.first.text):
        return int(found[1])
    word = _BY_SLURM.search(sighting.first.text) if sighting.first.form is Form.SLURM else None
    return SAID[word[1]] if word else None

"""The lines of launchers and of the kernel: Open MPI, MPICH, Slurm, dmesg, syslog, journalctl."""

import re

from doctor.agents.onhost.kernel_kills import BEGINS
from doctor.job.launch.launchers.mpirun import MPIRUN
from doctor.logs.forms.line_facts import LineFacts, level_of
from doctor.logs.forms.times import DATED, NAMED, Clock
from doctor.logs.model import Form
from doctor.text.hostprogram import table
from doctor.text.late import late

_HOST = r"[A-Za-z0-9][\w.-]{0,250}"
_NODE = r"[\w.-]{1,250}"
_MPIRUN = "|".join(map(re.escape, MPIRUN.commands))
_SLURMD = late(rf"\[{DATED}\] (?:\[[\d.]{{1,30}}\w{{0,10}}\] )?(?P<level>error|fatal|debug\d?): ")
_ON = late(rf"\*\*\* (?:STEP|JOB) \S{{1,40}} ON (?P<host>{_HOST}) CANCELLED AT {DATED}")
*_LINES, (_, *_ROWS) = table(__file__, "system.txt")
_PART, _TEXTS, _MESSAGES, _NAMES = ("|".join(rows) for _, *rows in _LINES)
_DATES = {"@DATED@": DATED, "@NAMED@": NAMED}
_SLURM, _OWN_ERROR, _DMESG, _CLOCKED, _MONITOR, _UCX, _UCX_FATAL = (
    late(re.sub("@[A-Z]+@", lambda found: _DATES[found[0]], row.partition(": ")[2])) for row in _ROWS
)
_MPI = late(
    rf"\[(?!(?:{_PART}):)(?P<host>{_HOST}):(?P<pid>\d{{1,9}})\] "
    rf"|\[proxy:\d{{1,4}}:\d{{1,4}}@(?P<proxy>{_NODE})\] |\[(?:{_MPIRUN})@(?P<main>{_NODE})\] "
    rf"|\[(?P<named>{_HOST})\]\[\[\d{{1,9}},\d{{1,9}}\],(?P<own>\d{{1,6}})\]\[\w{{1,60}}\.c:\d"
    r"|Abort\(-?\d{1,12}\) on node (?P<rank>\d{1,6}) "
    rf"|(?:{_MPIRUN})(?:\.real)?(?:: | noticed | detected | was | has )"
    rf"|{_MESSAGES}"
)
_KERNEL_TIME = r"\[? {0,8}\+?\d{1,9}\.\d{1,6}\]"
_TAG = r"(?P<tag>[\w./@-]{1,60})(?:\[(?P<pid>[\d-]{0,9})\])?: "
_SYSLOG = late(rf"{NAMED} (?P<words>(?:{_HOST} ){{1,2}}|(?=kernel: \[ |\S{{1,60}}\[\d{{1,9}}\]: )){_TAG}")
_JOURNAL = late(rf"{DATED} (?P<words>{_HOST} ){_TAG}")
_BARS = late(rf"{DATED}\|(?P<level>\w{{3,8}})\|kernel\[-?\]\|")
_FACILITY = r"(?:kern|user|daemon) {0,4}:(?P<level>\w{3,6}) {0,4}: "
_DECODED = late(rf"{_FACILITY}(?:\[?{DATED}\]? |{_KERNEL_TIME} |(?=VFS: |NVRM: ))")
_DECODED_NAMED = late(rf"{_FACILITY}\[{NAMED}\] ")
_TALOS = late(rf"(?:(?P<host>{_HOST}): )?kern: {{1,8}}(?P<level>\w{{3,8}}): \[{DATED}\]: ")
_DMESG_ISO = late(rf"{DATED} (?=NVRM: |{BEGINS}|\[ascend\]|\w{{1,20}}\[\d{{1,9}}\]: segfault)")
_ISO = late(rf"{DATED} ")
_KERNEL_TEXT = late(
    r"(?:kernel: ?| {8,20}(?=NVRM: )|\d\d:\d\d:\d\d(?:\.\d{1,6})? )?"
    rf"(?:{_TEXTS}|{BEGINS})"
)
_XID = late(r"(?<!\]: )NVRM: Xid \(PCI:")
"""A line with this text is the kernel's, whichever program of the job repeats it."""
SERVICES = late(rf"(?:{_NAMES})\b")
"""Services whose complaints do not concern the job."""
_PRIORITIES = ("FATAL", "FATAL", "FATAL", "ERROR", "WARN", "INFO", "INFO", "DEBUG")


def system(text: str, facts: LineFacts, clock: Clock) -> bool:
    """Whether the line is one of these; if so, `facts` is filled in."""
    return _slurm(text, facts, clock) or _kernel(text, facts, clock) or _mpi(text, facts) or _ucx(text, facts)


def _ucx(text: str, facts: LineFacts) -> bool:
    found = _UCX.match(text, facts.start)
    if found:
        facts.at, facts.zoned, facts.level = float(found["at"]), True, level_of(found["level"])
    else:
        found = _UCX_FATAL.match(text, facts.start)
        if not found:
            return False
        facts.level = "FATAL"
    facts.host, facts.pid, facts.headed = found["host"], int(found["pid"]), True
    facts.start = found.end()
    return True


def _slurm(text: str, facts: LineFacts, clock: Clock) -> bool:
    found = _SLURM.match(text, facts.start) or _SLURMD.match(text, facts.start)
    if not found:
        return False
    facts.head(found, Form.SLURM, clock)
    facts.level = level_of((found["level"] or "").rstrip("0123456789"))
    named = found.groupdict()
    facts.host = named.get("host") or named.get("step") or named.get("on") or facts.host
    if named.get("host") and not named["more"]:
        facts.rank = int(named["task"])
    ended = _ON.match(text, facts.start)
    if ended:
        facts.host = ended["host"]
        if facts.at is None:
            facts.at, facts.zoned = clock.at(ended)
    return True


def _mpi(text: str, facts: LineFacts) -> bool:
    found = _MPI.match(text, facts.start)
    if not found:
        return False
    facts.form, facts.headed = Form.MPI, True
    facts.host = found["host"] or found["named"] or found["proxy"] or found["main"] or facts.host
    if found["pid"]:
        facts.pid = int(found["pid"]) or None  # Open MPI writes 00000 if it does not know the process
    if rank := found["rank"] or found["own"]:
        facts.rank = int(rank)
    if found["host"]:
        facts.start = found.end()
    if _OWN_ERROR.match(text, facts.start):
        facts.level = "ERROR"
    return True


def _kernel(text: str, facts: LineFacts, clock: Clock) -> bool:
    found = _SYSLOG.match(text, facts.start) or _JOURNAL.match(text, facts.start)
    host = "".join(found["words"].split()[-1:]) if found else ""
    if found and (found["tag"] == "kernel" or (not level_of(host) and found["pid"])):
        facts.at, facts.zoned = clock.at(found)
        facts.host = host or None
        facts.headed = True
        facts.start = found.end()
        if found["tag"] == "kernel":
            facts.form, facts.pid = Form.KERNEL, None
        elif SERVICES.match(found["tag"]):
            facts.level = "INFO"
        return True
    for pattern in (_BARS, _MONITOR, _TALOS, _DECODED, _DECODED_NAMED, _DMESG, _DMESG_ISO, _CLOCKED):
        found = pattern.match(text, facts.start)
        if found:
            break
    else:
        if _KERNEL_TEXT.match(text, facts.start) or _XID.search(text):
            facts.form, facts.headed = Form.KERNEL, True
            dated = _ISO.match(text, facts.start)
            facts.start = dated.end() if dated else facts.start
            return True
        return False
    facts.head(found, Form.KERNEL, clock)
    if priority := found.groupdict().get("priority") or found.groupdict().get("kmsg"):
        facts.level = _PRIORITIES[int(priority) % 8]
    return True

"""A Slurm job by its number, as squeue and scontrol show it: its nodes, its owner, where its script writes.

Names and paths of a job are chosen by its owner and may hold anything, even lines that look like those of
Slurm. So a field is known by its width, never by what stands around it.
"""

import os
import posixpath
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from doctor.errors import UsageError
from doctor.text.nodeset import fold, unfold
from doctor.transport.errors import quoted
from doctor.transport.slurm.step import own_environment

SECONDS = 20.0
NUMBER = re.compile(r"[1-9][0-9]{0,9}(_[0-9]{1,9})?")
FORMAT = "%A|%F|%K|%T|%U|%N"
_ALIVE = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
WIDTHS = {
    **dict.fromkeys(("JobID", "ArrayJobID", "ArrayTaskID", "BatchFlag", "NumNodes", "UserID"), 20),
    **dict.fromkeys(("BatchHost", "UserName"), 256),
    "Name": 1024,
    **dict.fromkeys(("WorkDir", "StdOut", "StdErr"), 4096),
}
"""Fields of `squeue --Format`, and the bytes that it prints of each."""
_NO_FILE = ("", "N/A", "n/a", "(null)")
_NO_TASK = "4294967294"
"""What Slurm writes for %a outside of an array."""
NAME_THEM = "Name its nodes: HOSTS."


@dataclass(frozen=True, slots=True)
class SlurmJob:
    numbers: tuple[str, ...]
    """Its SLURM_JOB_ID; for a heterogeneous job, those of all its parts."""
    uid: int | None
    """The owner's user number."""
    nodes: tuple[str, ...]

    def environ(self, environ: Mapping[str, str]) -> dict[str, str] | None:
        """The variables of a step of this job, without those of another, if this user may start one in it."""
        if len(self.numbers) != 1 or self.uid != os.getuid():
            return None
        return {
            **(environ if environ.get("SLURM_JOB_ID") == self.numbers[0] else own_environment(environ)),
            "SLURM_JOB_ID": self.numbers[0],
            "SLURM_JOBID": self.numbers[0],
            "SLURM_JOB_NODELIST": fold(self.nodes),
        }


@dataclass(frozen=True, slots=True)
class JobOutput:
    """Where the script of a job writes, and all steps that it starts if they do not say otherwise."""

    number: str = ""
    files: tuple[str, ...] = ()
    host: str = ""
    """The node that runs the script."""
    nodes: int = 1
    """How many nodes may write there."""
    uid: int = 0
    """The owner's user number: who chose these names."""


def check_number(number: str) -> None:
    """Raises UsageError if it is not the number of a job."""
    if not NUMBER.fullmatch(number):
        raise UsageError("--job is the number of a Slurm job.", "Such as 4711, or 4711_3 of an array.")


def slurm_job(number: str, environ: Mapping[str, str] = os.environ) -> SlurmJob:
    """The job with this number. Raises UsageError if it does not run, or squeue cannot be asked."""
    check_number(number)
    try:
        return read_squeue(number, _asked(number, f"--format={FORMAT}", environ).decode("utf-8", "replace"))
    except SqueueRefusal as error:
        hint = "squeue lists those that run." if error.unknown else NAME_THEM
        raise UsageError(f"--job {number}: {error}.", hint) from None


def job_output(number: str, environ: Mapping[str, str] = os.environ) -> JobOutput | None:
    """Where the script of a batch job writes; None if there is no script. Raises SqueueRefusal."""
    form = ",".join(f"{name}:{width}" for name, width in WIDTHS.items())
    return read_output(number, _asked(number, f"--Format={form}", environ))


class SqueueRefusal(Exception):
    """Why squeue says nothing of a job."""

    def __init__(self, why: str, *, unknown: bool = False) -> None:
        super().__init__(why)
        self.unknown = unknown
        """Slurm has no such job, or has it no longer."""


def _asked(number: str, form: str, environ: Mapping[str, str]) -> bytes:
    own = {name: value for name, value in own_environment(environ).items() if not name.startswith("SQUEUE_")}
    argv = ["squeue", "--noheader", "--states=all", f"--jobs={number}", form]
    try:
        asked = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, env=own)
    except FileNotFoundError:
        raise SqueueRefusal("there is no squeue on the PATH") from None
    except OSError as error:
        raise SqueueRefusal(f"squeue could not be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise SqueueRefusal(f"squeue did not answer within {SECONDS:g} s") from None
    said = asked.stderr.decode("utf-8", "replace")
    if asked.returncode:
        if "invalid job id" in said.lower():
            raise SqueueRefusal("Slurm knows no such job", unknown=True)
        first = next((line for line in said.splitlines() if line.strip()), f"exit code {asked.returncode}")
        raise SqueueRefusal(f"squeue says: {quoted(first)}")
    return asked.stdout


def scontrol(what: str, names: str, environ: Mapping[str, str], seconds: float) -> str:
    """What Slurm shows of a job or of nodes, each in a line; empty if it cannot say."""
    argv = ["scontrol", "show", what, names, "-o"]
    own = own_environment(environ)
    try:
        asked = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, env=own)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.decode("utf-8", "replace")


def read_output(number: str, text: bytes) -> JobOutput | None:
    """Pure: parses what squeue printed with WIDTHS."""
    for start in range(0, len(text), sum(WIDTHS.values()) + 1):
        fields, at = {}, start
        for name, width in WIDTHS.items():
            fields[name] = os.fsdecode(text[at : at + width]).rstrip(" \n")
            at += width
        if fields["JobID"] != number:  # another task of the array
            continue
        written = [fields[name] for name in ("StdOut", "StdErr")]
        if fields["BatchFlag"] != "1" or not (fields["UserID"].isdigit() and fields["NumNodes"].isdigit()):
            return None
        names = tuple(dict.fromkeys(_place(each, fields) for each in written if each not in _NO_FILE))
        return JobOutput(number, names, fields["BatchHost"], int(fields["NumNodes"]), int(fields["UserID"]))
    raise SqueueRefusal("Slurm knows no such job", unknown=True)


def _place(path: str, fields: Mapping[str, str]) -> str:
    """The file that slurmd opens on the first node for a pattern such as `%x-%j.out`."""
    if "\\" in path:
        return posixpath.join(fields["WorkDir"], path.replace("\\", ""))
    task = fields["ArrayTaskID"]
    means = dict.fromkeys("nt", "0") | dict.fromkeys("jJ", fields["JobID"])
    means |= {"%": "%", "s": "batch", "A": fields["ArrayJobID"], "a": task if task.isdigit() else _NO_TASK}
    means |= {"N": fields["BatchHost"], "u": fields["UserName"], "x": fields["Name"]}
    form = rf"%(\d{{0,2}})([{''.join(means)}])"
    given = re.sub(form, lambda found: means[found[2]].zfill(int(found[1] or 0)), path)
    return posixpath.join(fields["WorkDir"], given)


def read_squeue(number: str, text: str) -> SlurmJob:
    """Pure: parses what squeue printed with FORMAT."""
    rows = [row for line in text.splitlines() if len(row := line.strip().split("|")) == 6]
    if not rows:
        raise UsageError(f"--job {number}: Slurm knows no such job.", "squeue lists those that run.")
    alive = [row for row in rows if row[3] in _ALIVE and row[5]]
    if not alive:
        states = ", ".join(dict.fromkeys(quoted(row[3]) for row in rows))
        raise UsageError(f"--job {number}: it does not run now: {states}.", "squeue lists those that run.")
    tasks = [f"{quoted(row[1])}_{row[2]}" for row in alive if row[2].isdigit()]
    if len(tasks) > 1:
        few = ", ".join(tasks[:8]) + (", …" if len(tasks) > 8 else "")
        raise UsageError(f"--job {number}: {len(tasks)} tasks of this array run.", f"Choose one: {few}")
    nodes = tuple(dict.fromkeys(node for row in alive for node in unfold(row[5])))
    uids = {row[4] for row in alive}
    uid = int(uids.pop()) if len(uids) == 1 and alive[0][4].isdigit() else None
    return SlurmJob(tuple(dict.fromkeys(row[0] for row in alive)), uid, nodes)

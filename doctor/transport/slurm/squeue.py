"""A Slurm job by its number: its nodes and its owner, as squeue shows them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from doctor.errors import UsageError
from doctor.text.nodeset import fold, unfold
from doctor.transport.errors import quoted
from doctor.transport.slurm.step import own_environment

SECONDS = 20.0
FORMAT = "%A|%F|%K|%T|%U|%N"
_ALIVE = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
NAME_THEM = "Name its nodes as well: doctor hang HOSTS --job {}"


@dataclass(frozen=True, slots=True)
class SlurmJob:
    numbers: tuple[str, ...]
    """Its SLURM_JOB_ID; for a heterogeneous job, those of all its parts."""
    uid: int | None
    """The owner's user number."""
    nodes: tuple[str, ...]

    def environ(self, environ: Mapping[str, str]) -> dict[str, str] | None:
        """The variables of a step of this job, if this user may start one in it."""
        if len(self.numbers) != 1 or self.uid != os.getuid():
            return None
        return {
            **environ,
            "SLURM_JOB_ID": self.numbers[0],
            "SLURM_JOBID": self.numbers[0],
            "SLURM_JOB_NODELIST": fold(self.nodes),
        }


def slurm_job(number: str, environ: Mapping[str, str] = os.environ) -> SlurmJob:
    """The job with this number. Raises UsageError if it does not run, or squeue cannot be asked."""
    own = {name: value for name, value in own_environment(environ).items() if not name.startswith("SQUEUE_")}
    argv = ["squeue", "--noheader", "--states=all", f"--jobs={number}", f"--format={FORMAT}"]
    hint = NAME_THEM.format(number)
    try:
        asked = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, env=own, check=False
        )
    except FileNotFoundError:
        raise UsageError(
            f"--job {number}: there is no squeue on the PATH to ask for its nodes.", hint
        ) from None
    except OSError as error:
        raise UsageError(f"--job {number}: squeue could not be started: {error.strerror}.", hint) from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"--job {number}: squeue did not answer within {SECONDS:g} s.", hint) from None
    said = asked.stderr.decode("utf-8", "replace")
    if asked.returncode:
        if "invalid job id" in said.lower():
            raise UsageError(f"--job {number}: Slurm knows no such job.", "squeue lists those that run.")
        first = next((line for line in said.splitlines() if line.strip()), f"exit code {asked.returncode}")
        raise UsageError(f"--job {number}: squeue says: {quoted(first)}", hint)
    return read_squeue(number, asked.stdout.decode("utf-8", "replace"))


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

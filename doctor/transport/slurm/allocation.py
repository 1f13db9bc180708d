"""Nodes that `salloc` gives to this run alone, and keeps until its stdin ends, which is ours."""

import contextlib
import math
import select
import subprocess
from collections.abc import Mapping, Sequence

from doctor.errors import UsageError
from doctor.text import nodeset
from doctor.text.announce import announce
from doctor.transport.errors import quoted
from doctor.transport.slurm.output import down_nodes
from doctor.transport.slurm.squeue import scontrol
from doctor.transport.slurm.step import own_environment

PATIENCE = 10
"""Seconds that Slurm has to find the nodes free."""
CLOSE_SECONDS = 5.0
LONGEST = 30 * 60
"""Seconds after which Slurm takes the nodes back by itself, without --deadline."""
ANSWER_SECONDS = 60.0
"""Seconds that Slurm has to say something, however busy it is."""
HOLD = 'echo "$SLURM_JOB_ID"; exec cat'


class Allocation:
    """Raises UsageError if Slurm does not give the nodes. Nodes that it reports as down are left out."""

    def __init__(self, names: Sequence[str], seconds: float | None, environ: Mapping[str, str]) -> None:
        down = {node.name for node in down_nodes(scontrol("node", ",".join(names), environ, PATIENCE))}
        wanted = [name for name in names if name not in down]
        if not wanted:
            look = f"Type: sinfo -R -n {nodeset.quoted(names)}"
            raise UsageError("--allocate: Slurm reports all these nodes as down.", look)
        words = (
            *("salloc", f"--nodelist={','.join(wanted)}", f"--nodes={len(wanted)}", "--ntasks-per-node=1"),
            *("--exclusive", "--mem=0", "--no-kill", f"--immediate={PATIENCE}", "--job-name=doctor"),
            *(f"--time={math.ceil((seconds or LONGEST) / 60) + 1}", "sh", "-c", HOLD),
        )
        pipe, own = subprocess.PIPE, own_environment(environ)
        try:
            self._process = subprocess.Popen(
                words, stdin=pipe, stdout=pipe, stderr=pipe, env=own, start_new_session=True
            )
        except OSError:
            missing = "--allocate: there is no salloc on the PATH."
            raise UsageError(missing, "--transport ssh needs none.") from None
        announce(f"waiting for Slurm, which is asked for {nodeset.fold(wanted)}.")
        try:
            self._number = self._granted(wanted, min(seconds or ANSWER_SECONDS, ANSWER_SECONDS))
        except BaseException:
            self.close()
            raise

    def _granted(self, wanted: Sequence[str], seconds: float) -> str:
        """The number of the job that holds the nodes."""
        out, err = self._process.stdout, self._process.stderr
        if out is not None and not select.select([out], [], [], seconds)[0]:
            raise UsageError(f"--allocate: Slurm has not answered within {seconds:.0f} s.", "Type: sdiag")
        if out is not None and (number := out.readline().decode("ascii", "replace").strip()):
            return number
        said = err.read().decode("utf-8", "replace").splitlines() if err is not None else []
        why = next((line.partition("error: ")[2] for line in reversed(said) if "error: " in line), "nothing")
        raise UsageError(
            f"--allocate: Slurm does not give {nodeset.fold(wanted)} now: {quoted(why).rstrip('.')}.",
            f"squeue -w {nodeset.quoted(wanted)} shows who has them. SALLOC_PARTITION, SALLOC_ACCOUNT count.",
        )

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The variables with which srun starts steps on the nodes."""
        return {**own_environment(environ), "SLURM_JOB_ID": self._number, "SLURM_JOBID": self._number}

    def close(self) -> None:
        """Give the nodes back; returns when salloc is gone."""
        with contextlib.suppress(subprocess.TimeoutExpired, ValueError):
            self._process.communicate(timeout=CLOSE_SECONDS)  # it closes stdin
        self._process.terminate()  # salloc gives the nodes back then, too
        self._process.wait()

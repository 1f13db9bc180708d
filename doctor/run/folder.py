"""The folder of a run: made only if there is something to report, and private."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from doctor.report.out.file_names import run_name
from doctor.run.output import Output, Printed
from doctor.run.relay.kept import HEAD, RING
from doctor.text.announce import announce
from doctor.text.outfile import hold_folder, why_not_ours, write_file

DEFAULT = Path("doctor-runs")
PART = "part-"
"""The beginning of the names of files that an instance keeps for the one that leads."""
_CUT = b"\n... %d bytes are left out here ...\n"


class RunFolder:
    """`attempt`: its number, if the command may be started again; each attempt has a folder in that of the
    run.
    """

    def __init__(self, parent: Path | None, started: str, job: str, pid: int, attempt: int = 0) -> None:
        self.parent = (parent or DEFAULT).absolute()
        self._name, self._attempt = run_name(started, job, pid), f"attempt-{attempt}" if attempt else ""
        self.path: Path | None = None
        """Where it is, once something was written."""
        self._held: int | None = None
        self._broken = False

    def write(self, files: Mapping[str, bytes]) -> bool:
        """Write files, and return whether they are there. If not, it is said once, and the job goes on."""
        if self._broken:
            return False
        try:
            if self._held is None:
                self._held = self._hold()
            for name, data in files.items():
                write_file(Path(f"/proc/self/fd/{self._held}/{name}"), data)
        except OSError as error:
            self._broken = True
            announce(f"{self.parent} cannot be written: {error.strerror}.")
        return not self._broken

    def _hold(self) -> int:
        """Hold the folder, so that what is written comes into it, whoever takes its name. If a stranger has
        its name already, it gets another one.
        """
        if why := why_not_ours(self.parent):
            raise OSError(0, why)
        try:
            held = hold_folder(self._name, self.parent)
        except OSError:
            self._name += f"-{secrets.token_hex(4)}"
            held = hold_folder(self._name, self.parent)
        self.path = self.parent / self._name
        if self._attempt:
            run, held = held, hold_folder(self._attempt, held)
            os.close(run)
            self.path /= self._attempt
        return held

    def keep(self, output: Output, before: str = "") -> None:
        """Keep the output, which only doctor holds. `before` comes before the names of the files."""
        self.write({f"{before}{name}.log": both_ends(stream) for name, stream in output.streams.items()})


def both_ends(stream: Printed) -> bytes:
    """What a stream printed; of long output its beginning and its end."""
    first = stream.first()
    begin, end = stream.since(len(first), RING)
    left_out = begin - len(first)
    return first + (_CUT % left_out if left_out > 0 and len(first) >= HEAD else b"") + end

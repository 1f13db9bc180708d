"""What came of a run: its attempts and reports, and whose exit code it ends with."""

import os
import time
from datetime import datetime, timezone

from doctor.errors import DoctorError
from doctor.report.out.file_names import job_id
from doctor.report.out.formats import Outputs
from doctor.run.end import AttemptEnd
from doctor.run.envelope import Whose
from doctor.run.folder import RunFolder
from doctor.text.announce import announce
from doctor.text.durations import duration


class RunRecord:
    """`several`: the command may be started again, so each attempt has a folder of its own."""

    def __init__(self, outputs: Outputs, *, several: bool) -> None:
        self._outputs, self._several = outputs, several
        self._began = time.time()
        self.attempts: list[AttemptEnd] = []
        self.parts: list[bytes] = []
        """The reports of the pre-flight, of looks and of logs, in JSON."""

    def add(self, end: AttemptEnd) -> None:
        self.attempts.append(end)
        self.parts += end.parts

    def next_folder(self) -> RunFolder:
        """That of the next attempt."""
        attempt, parent = len(self.attempts) + 1 if self._several else 0, self._outputs.report_dir
        return RunFolder(parent, _stamp(self._began), job_id(os.environ), os.getpid(), attempt)

    def keep_preflight(self, page: str) -> None:
        """The report of a pre-flight that left hosts out, beside those of the attempts."""
        folder = RunFolder(self._outputs.report_dir, _stamp(self._began), job_id(os.environ), os.getpid())
        if folder.write({"preflight.txt": page.encode()}):
            announce(f"the whole pre-flight is in {folder.path}/preflight.txt")

    def end(self, code: int, whose: Whose, seconds: float | None = None) -> int:
        """Say whose the exit code is, and write the reports that were asked for. The code stays what it is if
        that fails.
        """
        if any(self._outputs.files()):
            self._write_report(code, whose)
        if code or not self._outputs.quiet:
            after = f", after {duration(seconds)}" if seconds is not None else ""
            announce(f"the exit code {code} is {whose.words}{after}.")
            told = self.attempts[-1].attempt.losses if self.attempts and not code else []
            if told:
                announce(f"but {told[-1][:1].lower()}{told[-1][1:]}.")
        return code

    def _write_report(self, code: int, whose: Whose) -> None:
        from doctor.report.files.envelope import EnvelopeRun
        from doctor.report.out.outputs import write_formats
        from doctor.run.report import around_report

        entries = [each.entry() for each in self.attempts]
        run = EnvelopeRun(command="run", started=_stamp(self._began), seconds=time.time() - self._began)
        try:
            write_formats(self._outputs, around_report(run, code, whose, entries, self.parts))
        except DoctorError as error:
            announce(error.message)


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

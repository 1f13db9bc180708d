"""The options of `doctor run`, apart from those of the pre-flight."""

from dataclasses import dataclass
from typing import ClassVar

from doctor.errors import UsageError
from doctor.text.option import any_option

REPORT, END = "report", "end"
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class RunWishes:
    PANEL: ClassVar[str] = "The job"

    no_preflight: bool = any_option("--no-preflight", "Start the command at once.", default=False)
    stall: str = any_option(
        "--stall auto|S", "Look at the ranks after a silence; auto: by the job's own pauses.", default=AUTO
    )
    on_hang: str = any_option(
        "--on-hang report|end", "What to do with a job that hangs.", default=REPORT, values=(REPORT, END)
    )
    on_loss: str = any_option(
        "--on-loss report|end", "The same for a bad loss.", default=REPORT, values=(REPORT, END)
    )
    restarts: int = any_option(
        "--restarts N", "Start it again, without the hosts that ended it.", default=0, min=0, max=100
    )
    notify: str | None = any_option("--notify COMMAND", "Run this with each report on its stdin.")

    @property
    def least(self) -> float | None:
        """The shortest silence that counts, in seconds; None if doctor decides. Raises UsageError."""
        if self.stall == AUTO:
            return None
        try:
            seconds = float(self.stall)
        except ValueError:
            seconds = 0.0
        if not 1 <= seconds <= 86_400:  # false for NaN too
            raise UsageError(f"--stall: {self.stall[:40]!r} is neither auto nor 1 to 86400 seconds.")
        return seconds

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

    no_preflight: bool = any_option("--no-preflight", default=False)
    stall: str = any_option("--stall auto|S", default=AUTO)
    on_hang: str = any_option("--on-hang report|end", default=REPORT, values=(REPORT, END))
    on_loss: str = any_option("--on-loss report|end", default=REPORT, values=(REPORT, END))
    restarts: int = any_option("--restarts N", default=0, min=0, max=100)
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

"""The options of `doctor hang`."""

from dataclasses import dataclass

from doctor.live.options import RunningJobWishes
from doctor.text.option import host_option, live_option


@dataclass(frozen=True, slots=True, kw_only=True)
class HangWishes(RunningJobWishes):
    apart: float = live_option("--for S", default=2.0, min=0.2, max=60)
    watch: bool = host_option("--watch", default=False)
    notify: str | None = live_option(
        "--notify COMMAND", "With --watch: run this if the job hangs or has ended."
    )
    check: bool = live_option("--check", default=False)

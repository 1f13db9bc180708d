"""The options of `doctor slow`."""

from dataclasses import dataclass

from doctor.live.options import RunningJobWishes
from doctor.text.option import live_option


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowWishes(RunningJobWishes):
    seconds: float = live_option(
        "--for S", "Seconds to look; longer (to 50 s) until 30 steps were seen.", default=10.0, min=1, max=600
    )

"""How long a step takes, by the lines of a log: progress bars, rates, and times beside numbers of steps."""

import calendar
import re
import time
from collections.abc import Iterator
from statistics import median

LAST = 20
"""How many of the last steps count."""
LONGEST = 86400.0
_BAR = re.compile(rb"/(\d{1,12}) \[[^\]]{0,60}?, {1,4}(\d{1,6}(?:\.\d{1,6})?)(s/it|it/s)")
_MILLISECONDS = re.compile(rb"elapsed time per iteration \(ms\): (\d{1,9}(?:\.\d{1,6})?)")
_STEP = re.compile(
    rb"(?i)\b(?:global[_ ]?step|step|iteration|iter)\b[\"']?\s{0,4}[:=\[#]?\s{0,8}(\d{1,12})\b"
)
_TIME = re.compile(rb"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")


def step_seconds(text: bytes) -> "float | None":
    """The median of the last steps; None if the log does not show it. Of several bars or counters, the
    shortest counts: an outer one counts epochs.
    """
    found = {}  # type: dict[bytes, list[float]]
    for label, seconds in _lengths(text):
        if 0 < seconds < LONGEST:
            found.setdefault(label, []).append(seconds)
    return min((median(some[-LAST:]) for some in found.values()), default=None)


def _lengths(text: bytes) -> "Iterator[tuple[bytes, float]]":
    for total, number, unit in _BAR.findall(text):
        value = float(number)
        if value:
            yield total, value if unit == b"s/it" else 1 / value
    for number in _MILLISECONDS.findall(text):
        yield b"ms", float(number) / 1000
    last = None  # type: tuple[int, float] | None
    for line in text.split(b"\n"):
        step, at = _STEP.search(line), _TIME.search(line)
        if step and at:
            now = int(step.group(1)), _seconds(at)
            if last and now[0] > last[0]:
                yield b"lines", (now[1] - last[1]) / (now[0] - last[0])
            last = now


def _seconds(at: "re.Match[bytes]") -> float:
    try:
        whole = time.strptime((at.group(1) + b" " + at.group(2)).decode("ascii"), "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return 0.0
    return calendar.timegm(whole) + float(b"0." + (at.group(3) or b"0"))

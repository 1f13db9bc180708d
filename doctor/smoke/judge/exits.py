"""How ranks ended: by a signal, silently, by an exception of their own, or only because a peer was gone."""

import re
import signal
from typing import Literal

from doctor.agents.onhost.kernel_kills import LACK
from doctor.smoke.result import Exit, RankOutcome
from doctor.text.hostprogram import sections, table
from doctor.text.signalname import signal_name

Death = Literal["killed", "left", "exception", "aborted", "connection"]
ORDER: tuple[Death, ...] = ("killed", "left", "exception", "aborted")
"""The surest cause first. Aborts come last: native code also aborts if a peer sends it nonsense."""

_SAID = sections(__file__, "exits.txt")
_SIGNALS = _SAID["signals"]
_CONNECTION, _NO_ROOM = (re.compile(row, re.IGNORECASE) for row in _SAID["patterns"].values())
LOG = "dmesg -T | tail -50"
IN_KERNEL = ("ps -eo pid,stat,wchan:32,args | awk '$2 ~ /^D/'", LOG)
"""Commands for a rank that hung in the kernel: they show what else hangs there."""
SHELL = {
    name: tuple(line.replace("@LACK@", LACK) for line in lines)
    for name, *lines in table(__file__, "commands.txt")
}
"""What to type on a host after the run, by what is looked for, such as the reason for a signal."""


def signal_of(seen: RankOutcome) -> int | None:
    """The signal that ended the rank, also if a shell in between reported it with 128 added."""
    if seen.exit is None or seen.error is not None:
        return None
    if seen.exit.signal is not None:
        return seen.exit.signal
    code = seen.exit.code
    return code - 128 if code is not None and 128 < code < 128 + 65 else None


def ended_badly(exit: Exit | None, done: bool) -> bool:
    return exit is not None and not (done and exit.code == 0)


def way_of(seen: RankOutcome) -> Death:
    """How a rank that ended badly has died."""
    said = f"{seen.error.type}: {seen.error.text}" if seen.error else (seen.exit.words if seen.exit else "")
    number = signal_of(seen)
    if number not in (None, signal.SIGABRT):
        return "killed"
    if _CONNECTION.search(said):
        return "connection"
    if seen.error is not None:
        return "exception"
    return "left" if number is None else "aborted"


def ending_words(seen: RankOutcome) -> str:
    """How its process ended, to follow the words "its process"."""
    number = signal_of(seen)
    if number is not None:
        return _SIGNALS.get(str(number), f"was killed by {signal_name(number)}")
    code = seen.exit.code if seen.exit else None
    return f"ended by itself with exit status {'?' if code is None else code} and no exception"


def commands(seen: RankOutcome) -> tuple[str, ...]:
    """Commands that show on its host, after the run, why its process ended like that."""
    number = signal_of(seen)
    return () if number is None else SHELL.get(f"signal {number}", (LOG,))


def remedy(seen: RankOutcome) -> str | None:
    """The remedy if a rank ended by itself and not for lack of room: its software is suspect; else None."""
    by_itself = way_of(seen) in ("exception", "left")
    return "compare-software" if by_itself and not _NO_ROOM.search(said(seen)) else None


def said(seen: RankOutcome) -> str:
    """All that a rank reported about its end, to look for peers in it."""
    error = f"{seen.error.type}: {seen.error.text}\n" if seen.error else ""
    return error + (seen.exit.words if seen.exit else "")

"""The machine itself: memory that lost data, and a clock that cannot be right."""

import re
from collections.abc import Container, Iterator
from datetime import datetime, timezone

from doctor.api import EXPECT, Damage, Evidence, Expect, Problem, Sphere, Undecided, check, maybe
from doctor.facts.memory import LOST_DATA
from doctor.facts.processes import KERNEL_LOG, KernelLine
from doctor.facts.system import CLOCK
from doctor.rules.kernel_log import read_log

MADE = datetime(2026, 11, 1, tzinfo=timezone.utc)
"""When this version was made: no clock that is right shows an earlier time."""

_COUNTED = re.compile(
    r"EDAC (?:\w{1,20} )?MC\d{1,3}: (\d{1,6}) UE .*? on \S.* ?\((?:channel|csrow|branch|page|slot)"
)
"""The whole of the kernel's own line: other lines begin with a name that a user may choose."""
_PAGE = re.compile(r"Memory failure: (0x[0-9a-f]{1,16}): ")
_INJECTED = re.compile(r"Injecting memory failure (?:for pfn|at pfn) (0x[0-9a-f]{1,16})")
_READ = re.compile(r"mce: Uncorrected hardware memory error in user-access at ([0-9a-f]{1,16})")


@check("clock-impossible", CLOCK, damage=Damage.BLOCKED, remedy="set-clock", sphere=Sphere.HOST)
def clock_impossible(now: float) -> Iterator[Problem]:
    """The clock shows a time before this version of doctor was made.

    Why it matters: certificates are not valid yet, licences and logins by Kerberos are refused, and the logs
    of ranks cannot be put on one time line. It is usual after the battery of a main board has failed.

    What to do: run a time service (chrony, systemd-timesyncd), and write the time to the hardware's clock
    (hwclock --systohc). If it is wrong again after the next restart, have the battery replaced.
    """
    if now < MADE.timestamp():
        shown = datetime.fromtimestamp(now, timezone.utc)
        yield Problem(
            f"its clock shows {shown:%Y-%m-%d %H:%M} UTC",
            expected=f"a time after {MADE:%Y-%m-%d}",
            actual=f"{shown:%Y-%m-%d %H:%M} UTC",
            evidence=(Evidence("date +%s.%N", f"{now:.0f}"),),
        )


@check(
    "memory-errors",
    maybe(LOST_DATA),
    maybe(KERNEL_LOG),
    EXPECT,
    damage=Damage.WRONG,
    remedy="look-at-memory",
    sphere=Sphere.HOST,
)
def memory_errors(
    counts: tuple[int, ...] | None, lines: tuple[KernelLine, ...] | None, expect: Expect
) -> Iterator[Problem]:
    """The host's memory had errors that could not be corrected.

    Why it matters: data was lost. The kernel ends the process that used it, and a rank that ends takes all
    others with it; a module that failed once fails again.

    How it is known: the memory controller counts such errors since the start of the host
    (/sys/devices/system/edac), and the kernel's log of the last 24 hours names them. Errors that were
    corrected do not count here (kernel-log warns of them), and neither do pages that a test took away.

    What to do: have the module replaced that the kernel's log names; the count begins anew with the restart.
    """
    recent = read_log(lines or (), expect).lines
    tested = {found[1] for line in recent if (found := _INJECTED.match(line.message))}
    told = [line for line in recent if not line.is_crash and _lost(line.message, tested)]
    in_log = sum(int(found[1]) for line in told if (found := _COUNTED.match(line.message)))
    in_log = max(in_log, len({found[1] for line in told for found in (_page(line.message),) if found}))
    counted = sum(counts or ())
    count = max(counted, in_log)
    if count:
        yield Problem(
            "its memory had errors that could not be corrected",
            expected="none",
            actual=f"{count} since the host was started" if counted else f"{count} in the kernel's log",
            evidence=(
                *([Evidence("/sys/devices/system/edac/mc/mc*/ue_count", str(counted))] if counted else []),
                *(Evidence("dmesg", line.text[:300]) for line in told[-3:]),
            ),
        )
    elif not counts and lines is None:
        raise Undecided(
            "no memory controller counts errors, and the kernel's log needs root (--sudo uses sudo -n)"
        )


def _page(message: str) -> re.Match[str] | None:
    return _PAGE.match(message) or _READ.match(message)


def _lost(message: str, tested: Container[str]) -> bool:
    """A page that was taken away by a test, or as a precaution, lost nothing."""
    if page := _PAGE.match(message):
        lost = "hardware memory corruption" in message or "recovery action for" in message
        return lost and page[1] not in tested
    return bool(_COUNTED.match(message) or _READ.match(message))

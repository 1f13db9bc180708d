"""What a healthy host must have: the thresholds of all checks, in one place.

The defaults are here; an exam, the inventory and `--expect key=value` may change them, in that order.
"""

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone

from doctor.errors import UsageError


@dataclass(frozen=True, slots=True)
class Expect:
    """A value of 0 means "derive it from the job"."""

    somaxconn: int = 0
    syn_backlog: int = 0
    nofile: int = 0
    nproc: int = 0
    memlock_mb: int = 64
    address_space_mb: int = 4096
    file_size_mb: int = 102_400
    file_size_fail_mb: int = 1024
    cpu_hours: int = 168
    cpu_fail_hours: int = 1
    arp_hosts: int = 0
    shm_mb: int = 0
    shm_mb_per_connection: int = 10
    memory_mb_per_rank: int = 512
    swap_used_mb: int = 64
    disk_free_mb: int = 1024
    disk_fail_mb: int = 64
    clock_skew_s: float = 1.0
    clock_skew_fail_s: float = 30.0
    cpu_governor: str = "performance"
    kernel_log_hours: float = 24.0
    kernel_log_since: str = ""
    """A time as 2026-11-24T20:15:00Z: older lines of a kernel's log do not count either."""
    nic_errors: int = 1000
    leftover_minutes: int = 5
    devices: int = 0
    npu_idle_percent: int = 15
    link_flaps: int = 2
    link_errors: int = 1000
    torch: str = ""
    """A version or its beginning; "any" for any version; empty if the job may do without torch."""
    gpu_idle_mb: int = 1024
    """Memory that may be in use on a GPU that no job uses."""


WRITTEN = "%Y-%m-%dT%H:%M:%SZ"
FIELDS = {field.name: field for field in fields(Expect)}


def amend(expect: Expect, changes: Mapping[str, str], source: str) -> Expect:
    """`expect` with some values replaced; an error names `source`, which asked for the change."""
    if not changes:
        return expect
    try:
        return replace(expect, **{key: read_value(key, text) for key, text in changes.items()})  # type: ignore[arg-type]
    except UsageError as error:
        raise UsageError(f"{source}: {error.message}", error.hint) from None


def moment(text: str) -> datetime | None:
    """A time in UTC as reports write it; None for another text."""
    try:
        return datetime.strptime(text, WRITTEN).replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def with_log_since(expect: Expect, asked: float) -> Expect:
    """`kernel_log_since` as hours before the moment at which the host was asked."""
    begin = moment(expect.kernel_log_since)
    if begin is None:
        return expect
    hours = max(0.0, (asked - begin.timestamp()) / 3600)
    return replace(expect, kernel_log_hours=min(hours, expect.kernel_log_hours))


def read_value(key: str, text: str) -> int | float | str:
    """The value of an expectation, converted to the type of its default."""
    if key not in FIELDS:
        near = difflib.get_close_matches(key, FIELDS, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(sorted(FIELDS))}."
        raise UsageError(f"no expectation is called {key!r}.", hint)
    kind = type(getattr(Expect(), key))
    try:
        value: int | float | str = kind(text)
        finite = isinstance(value, str) or (math.isfinite(value) and value >= 0)
    except OverflowError:
        raise UsageError(f"{key} is too large: it has {len(text)} digits.") from None
    except ValueError:
        wanted = {int: "a whole number", float: "a number"}.get(kind, "a text")
        raise UsageError(f"{key} must be {wanted}, not {text!r}.") from None
    if key == "kernel_log_since" and moment(text) is None:
        raise UsageError(f"{key} must be a time as 2026-11-24T20:15:00Z, not {text!r}.")
    if not finite:
        raise UsageError(f"{key} must be 0 or more, not {text!r}.")
    return value

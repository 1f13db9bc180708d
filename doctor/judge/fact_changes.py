"""Whether a fact of a host changed, and how that is said."""

from collections.abc import Mapping
from typing import Any

from doctor.judge.fact_table import COLUMNS, NEAR
from doctor.judge.fact_values import NOT_INSTALLED, rate, sized

OF_THE_MOMENT = {"memory_free_bytes", "shm_free_bytes", "clock_offset_seconds", "clock_uncertainty_seconds"}
"""Facts that differ from one moment to the next."""
LESS_IS_WORSE = {column.key for column in COLUMNS if column.whole or column.kind == "near"} | {
    *("devices", "speed_mbps", "device_link_mbps", "device_addresses_set")
}
SIZES = {column.key for column in COLUMNS if column.kind == "near"}
TITLES = {column.key: column.title for column in COLUMNS}
NOT_TOLD = "not reported"


def differ(key: str, was: Any, now: Any) -> bool:
    if key in SIZES and isinstance(was, int | float) and isinstance(now, int | float):
        return abs(was - now) > NEAR * max(abs(was), abs(now))
    return bool(was != now)


def is_worse(key: str, was: Any, now: Any) -> bool:
    """Whether the host has less of what it needs. A fact that it no longer reports is only a question."""
    numbers = isinstance(was, int | float) and isinstance(now, int | float)
    return key in LESS_IS_WORSE and numbers and now < was


def shown(key: str, facts: Mapping[str, Any]) -> str:
    """The value in words and units."""
    value = facts.get(key)
    if value is None:
        return NOT_TOLD
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if key.endswith("_bytes") and isinstance(value, int | float):
        return sized(value)[1]
    if key.endswith("_mbps") and isinstance(value, int):
        return rate(value)[1]
    return str(value) or NOT_INSTALLED[1]

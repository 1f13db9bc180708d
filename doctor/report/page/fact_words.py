"""A short text for the values of one fact on several hosts."""

import re
from collections import Counter
from collections.abc import Collection

from doctor.judge.fact_table import FactRow

MOST = 3
"""If there are more different values than this, only their number is shown."""
_UNIT = re.compile(r"(\S+)( \D+)")


def spread(row: FactRow, hosts: Collection[str]) -> str:
    """The value that the hosts share, "11.6-11.8 GB" if numbers differ, else the values; empty if no host
    reported one.
    """
    told = {host: row.values[host] for host in hosts if host in row.values}
    shown = Counter(row.shown[host] for host in told)
    if len(shown) < 2:
        return next(iter(shown), "")
    if all(isinstance(value, int | float) for value in told.values()) and " of " not in next(iter(shown)):
        least, most = min(told, key=lambda host: told[host]), max(told, key=lambda host: told[host])
        return _range(row.shown[least], row.shown[most])
    named = [text for text, _ in shown.most_common(MOST)]
    return " and ".join(named) if len(shown) <= MOST else f"{len(shown)} different"


def _range(least: str, most: str) -> str:
    low, high = _UNIT.fullmatch(least), _UNIT.fullmatch(most)
    signed = any(text[:1] in "+-" for text in (least, most))
    if low and high and low[2] == high[2]:
        return f"{low[1]}{' to ' if signed else '-'}{most}"
    return f"{least} to {most}" if signed or low or high else f"{least}-{most}"

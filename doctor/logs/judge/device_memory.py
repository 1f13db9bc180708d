"""Who holds the memory of a device, by the numbers in the message of an allocator that got none."""

import re

_SIZE = r"\b(\d{1,12}(?:\.\d{1,6})?) (bytes|[KMGT]iB)"
_TOTAL = re.compile(rf"total capacity of {_SIZE}|{_SIZE} total capacity")
_FREE = re.compile(rf"of which {_SIZE} is free|{_SIZE} free")
_OWN = re.compile(rf"this process has {_SIZE}|{_SIZE} reserved in total")
_OTHER = re.compile(rf"Process \d{{1,9}} has {_SIZE} memory in use")
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
BY_OTHERS = "other processes hold most of the memory that is in use, by the numbers in its message"


def held_by_others(text: str) -> bool:
    """Whether more than half of what is in use belongs to others than the process that asked for more."""
    total, free, own = (_bytes(pattern.search(text)) for pattern in (_TOTAL, _FREE, _OWN))
    if total is None or free is None:
        return False
    used, listed = total - free, sum(_bytes(found) or 0 for found in _OTHER.finditer(text))
    return max(listed, used - own if own is not None else 0) > used / 2


def _bytes(found: re.Match[str] | None) -> float | None:
    if found is None:
        return None
    number, unit = (group for group in found.groups() if group)
    return float(number) * 1024.0 ** _UNITS.index(unit)

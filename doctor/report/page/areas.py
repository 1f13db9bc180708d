"""The areas of a report, and which check belongs to which area."""

from fnmatch import fnmatchcase
from functools import cache

from doctor.devices import VENDORS
from doctor.text.hostprogram import table

_CHECKS = {area: " ".join(lines).split() for area, *lines in table(__file__, "areas.txt")}
_GLOBS = {glob: area for area, globs in _CHECKS.items() for glob in globs}
_GLOBS |= {f"{vendor.prefix}*": "devices" for vendor in VENDORS}
AREAS = tuple(_CHECKS)
"""In display order."""
OTHER = "other"
"""The area of checks that are not bundled."""


@cache
def area_of(check_id: str) -> str:
    fitting = (glob for glob in _GLOBS if fnmatchcase(check_id, glob))
    return _GLOBS.get(max(fitting, key=len, default=""), OTHER)

"""Regular expressions that are compiled when first used: compiling a large one takes milliseconds."""

import re
from typing import Any, cast


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Like `re.compile`, later."""
    return cast("re.Pattern[str]", _LatePattern(pattern, flags))


class _LatePattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        """Called once for each method: it is kept."""
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)
        return found

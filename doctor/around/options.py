"""The options of `doctor run`, apart from those of the pre-flight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from doctor.text.option import any_option


@dataclass(frozen=True, slots=True)
class AroundWishes:
    PANEL: ClassVar[str] = "The job"

    no_preflight: bool = any_option("--no-preflight", "Start the command at once.", default=False)

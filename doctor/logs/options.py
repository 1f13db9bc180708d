"""The options of `doctor explain` and `doctor logs`, apart from the hosts."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from doctor.text.option import any_option

PANEL = "The logs"


@dataclass(frozen=True, slots=True)
class LogWishes:
    """Options that help to understand logs, wherever the logs come from."""

    PANEL: ClassVar[str] = PANEL

    symptoms: tuple[Path, ...] = any_option("--symptoms DIR", default=())
    recording: Path | None = any_option("--recording FILE")


@dataclass(frozen=True, slots=True)
class ExplainWishes:
    PANEL: ClassVar[str] = PANEL

    what: tuple[str, ...] = any_option("WHAT", default=())
    logs: LogWishes = field(default_factory=LogWishes)
    check: str | None = any_option("--check HOSTS", aliases=("--run",))


@dataclass(frozen=True, slots=True)
class FetchWishes:
    PANEL: ClassVar[str] = PANEL

    paths: tuple[str, ...] = any_option("--path GLOB", default=())
    since: str | None = any_option("--since WHEN")
    max_mb: float = any_option("--max-mb MB", default=64.0, min=0.01, max=1000, aliases=("--limit",))
    save: Path | None = any_option("--save DIR")
    rank_user: str | None = any_option(
        "--rank-user NAME", "In /tmp and other places for all, also the logs of this user."
    )
    logs: LogWishes = field(default_factory=LogWishes)
    check: bool = any_option("--check", "Run the checks that prove it, on these hosts.", default=False)

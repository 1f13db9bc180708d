"""Terminals as pictures: what `doctor demo NAME` shows, as an SVG that needs no font and no network."""

from __future__ import annotations

import contextlib
import io

from rich.console import Console
from rich.text import Text

from doctor import cli

COLUMNS = 100
PAGE = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px monospace; }}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def picture(demo: str) -> str:
    """Asserts that the demo was shown. COLUMNS must be set: the report is as wide as that says."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert cli.run(["demo", demo, "--color", "always"]) == 0
    paper = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    paper.print(Text.from_ansi(shown.getvalue()))
    drawn = paper.export_svg(title=f"doctor demo {demo}", code_format=PAGE, unique_id=f"demo-{demo}")
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines())

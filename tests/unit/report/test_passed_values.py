"""A healthy report shows what was measured; there is no tick for a value that was not measured."""

import io
import re

import pytest

from doctor.report.page.measurements import measured
from doctor.text.terminal import put
from tests.support.reports import reports, text

HEALTHY = ("healthy", "one-host", "no-root", "smoke-passed")


@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.parametrize("width", [40, 80, 200])
def test_each_line_that_was_measured_is_ticked(name: str, width: int) -> None:
    seen = measured(reports()[name])
    shown = text(reports()[name], width)
    assert shown.count("✓") == len(seen.ticked) > 0
    assert len(re.findall(r"^  \? ", shown, re.MULTILINE)) == len(seen.doubtful)
    for each in (*seen.ticked, *seen.doubtful, *seen.left):
        assert each.area in shown
    assert ("– not tried" in shown) is bool(seen.left)


@pytest.mark.parametrize("name", sorted(reports().keys() - {*HEALTHY}))
def test_no_tick_where_something_is_wrong(name: str) -> None:
    assert "✓" not in text(reports()[name], 80)


def test_verbose_says_what_passed_whatever_the_verdict() -> None:
    shown = text(reports()["sick-hosts"], 80, verbose=True)
    assert "node[1-2,4]: hostname-loopback" in " ".join(shown.split())
    assert "does not apply  1 check: 1 (only for nccl jobs)" in shown


@pytest.mark.parametrize(("encoding", "tick"), [("utf-8", "✓"), ("ascii", "ok"), ("latin-1", "ok")])
def test_a_terminal_without_ticks(encoding: str, tick: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="replace")
    for name in reports():
        put(text(reports()[name], 80, verbose=True), stream)
    written = raw.getvalue().decode(encoding)
    assert f"  {tick} memory" in written
    assert "?" not in re.sub(r"'\.\*\?'|^  \? ", "", written, flags=re.MULTILINE)

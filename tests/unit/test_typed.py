"""Suggested commands are made of facts: no text of a recording or of a host becomes a command by itself."""

import json
import random
import re
import shlex
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doctor import cli
from tests.support.cases import from_cases
from tests.support.tampered import SAMPLES, tampered

KINDS = sorted(path.name.removesuffix(".run.json.gz") for path in SAMPLES.glob("*.run.json.gz"))
MARK = "evil"
WAYS = from_cases(__file__, "WAYS", tuple[str, ...])


def breaks_out(command: str) -> bool:
    """Whether a shell would run the mark: it is neither in single quotes nor in a comment."""
    if command.startswith("#"):
        return "\n" in command
    bare = re.sub(r"""'[^']*'|"((?:[^"\\]|\\.)*)\"""", lambda part: _run_in(part[1] or ""), command)
    return re.search(rf"[\n;&|(`>][ \t]*{MARK}", bare) is not None


def _run_in(double_quoted: str) -> str:
    return "".join(re.findall(r"\$\([^)]*\)|`[^`]*`", double_quoted))


def test_what_breaks_out() -> None:
    for way in WAYS:
        assert breaks_out(f"ping '{way}'" if "'" in way else f"ping node{way}"), way
        assert breaks_out(f'ssh node "ping {way}"') is way.startswith(("$", "`")), way
        assert not breaks_out(f"ping {shlex.quote(way)}"), way
    assert breaks_out("# words\nevil")
    assert not breaks_out("# words; evil")


def commands(recording: bytes) -> list[str]:
    with tempfile.TemporaryDirectory() as name:
        file, report = Path(name, "run.json"), Path(name, "report.json")
        file.write_bytes(recording)
        cli.run(["check", "--replay", str(file), "-q", "--json", str(report)])
        found = json.loads(report.read_bytes())["findings"] if report.exists() else []
    return [command for each in found for command in (each["remedy"] or {"commands": ()})["commands"]]


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kind=st.sampled_from(KINDS),
    way=st.sampled_from(WAYS),
    dice=st.randoms(use_true_random=False),
    share=st.sampled_from([0.1, 0.5, 1]),
)
def test_no_text_of_a_recording_is_run(kind: str, way: str, dice: random.Random, share: float) -> None:
    found = commands(tampered(kind, way, dice, share, free=True))
    assert [command for command in found if breaks_out(command)] == []

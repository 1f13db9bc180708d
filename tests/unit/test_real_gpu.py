"""A sound machine with an H200, as `doctor check --local --save` saw it, and what accuses it."""

import gzip
import json
from pathlib import Path

import pytest

from doctor import cli
from tests.support.paths import ROOT

SAMPLE = ROOT / "tests" / "samples" / "gpu" / "h200.run.json.gz"


def replay(folder: Path, old: str = "", new: str = "") -> tuple[int, set[str]]:
    """The exit code and the checks that found something, with one of the answers changed."""
    text = gzip.decompress(SAMPLE.read_bytes()).decode()
    assert old in text
    recording, report = folder / "run.json", folder / "report.json"
    recording.write_text(text.replace(old, new) if old else text)
    code = cli.run(["check", "--replay", str(recording), "--json", str(report), "--quiet"])
    found = json.loads(report.read_bytes())["findings"]
    return code, {each["check"] for each in found if each["status"] != "unknown"}


def test_a_sound_gpu_is_healthy(tmp_path: Path) -> None:
    assert replay(tmp_path) == (0, set())


PENDING = ("No, No, Disabled, None", "Yes, No, Disabled, None")
HOT = ("Default, 0x0000000000000001, 0x0000000000000001", "Default, 0x0000000000000040, 0x0000000000000040")
CAPPED = ("700.00 W, 700.00 W, 700.00 W", "500.00 W, 500.00 W, 700.00 W")
WITHOUT_ECC = ("Enabled, Enabled, 700", "Disabled, Disabled, 700")


@pytest.mark.parametrize(("change", "check"), [(PENDING, "gpu-ecc"), (HOT, "gpu-throttled")])
def test_the_same_gpu_with_a_fault(change: tuple[str, str], check: str, tmp_path: Path) -> None:
    assert replay(tmp_path, *change)[1] == {check}


@pytest.mark.parametrize("change", [CAPPED, WITHOUT_ECC])
def test_what_its_owner_may_have_chosen_accuses_nobody_without_peers(
    change: tuple[str, str], tmp_path: Path
) -> None:
    assert replay(tmp_path, *change) == (0, set())

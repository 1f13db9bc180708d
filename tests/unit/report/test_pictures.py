"""The READMEs' pictures are what demos and a replay show now; UPDATE_PICTURES=1 draws them again."""

import gzip
import os
import re
from html import unescape
from pathlib import Path

import pytest

from doctor.exam.demo import evidence_of
from doctor.text.language import Language
from tests.support.paths import ROOT
from tests.support.pictures import COLUMNS, picture, picture_of_hang, picture_of_slow, uncounted

PICTURES = ROOT / "docs" / "pictures"
SEEN = evidence_of("loader")
SLOW = evidence_of("slow")
NAMES = ("npus", "gpus", "hang", "healthy")
ENDINGS = {Language.EN: "svg", Language.ZH: "zh-CN.svg"}
IN_CHINESE = ("hang", "healthy")
DRAWN = [*((name, Language.EN) for name in NAMES), *((name, Language.ZH) for name in IN_CHINESE)]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


@pytest.mark.parametrize(("name", "lang"), DRAWN)
def test_is_what_the_demo_shows(name: str, lang: Language) -> None:
    drawn, file = picture(name, lang), PICTURES / f"{name}.{ENDINGS[lang]}"
    if os.environ.get("UPDATE_PICTURES"):
        file.write_text(drawn)
    assert uncounted(file.read_text()) == uncounted(drawn)


@pytest.mark.parametrize("lang", ENDINGS)
def test_is_what_a_replay_of_a_hang_shows(lang: Language, tmp_path: Path) -> None:
    evidence, file = tmp_path / "hang.json", PICTURES / f"hang-loader.{ENDINGS[lang]}"
    evidence.write_bytes(gzip.decompress(SEEN.read_bytes()))
    drawn = picture_of_hang(evidence, lang)
    if os.environ.get("UPDATE_PICTURES"):
        file.write_text(drawn)
    assert file.read_text() == drawn


def test_is_what_a_replay_of_a_slow_job_shows(tmp_path: Path) -> None:
    evidence, file = tmp_path / "slow.json", PICTURES / "slow.svg"
    evidence.write_bytes(gzip.decompress(SLOW.read_bytes()))
    drawn = picture_of_slow(evidence)
    if os.environ.get("UPDATE_PICTURES"):
        file.write_text(drawn)
    assert file.read_text() == drawn


def test_needs_nothing_from_elsewhere() -> None:
    for file in PICTURES.glob("*.svg"):
        assert re.findall(r"https?://[^\"]+", file.read_text()) == ["http://www.w3.org/2000/svg"]


def test_shows_who_is_guilty() -> None:
    words = unescape(re.sub(r"<[^>]+>", "", (PICTURES / "npus.svg").read_text())).replace("\xa0", " ")
    assert "node2 NPU 3  network link is down" in " ".join(words.splitlines())

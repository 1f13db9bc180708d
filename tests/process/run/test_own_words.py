"""A file that has the output of the command and the words of doctor, as a batch script's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

CODE = """
import os, sys
from doctor.run.folder import RunFolder, both_ends
from doctor.run.news import Newsroom
from doctor.run.output import Output
from doctor.run.pauses import Passing
from doctor.run.relay.kept import nameless_file
from pathlib import Path
output = Output(nameless_file(0), [], ("pass", "pass", "pass"))
passing = Passing(output)
room = Newsroom(RunFolder(Path(sys.argv[1]), "2026-11-20T10:00:00Z", "", 7), None, output, raw=False)
moved = []
for text in (b"step 1 loss 2.0\\n", b"", b"step 2 loss 1.9\\n"):
    os.write(1, text)
    moved.append(passing.moved())
    room.publish("hang-1", "rank 1 hangs", "HANG  rank 1 sleeps: RuntimeError\\n", {})
    moved.append(passing.moved())
(stream,) = output.streams.values()
kept = both_ends(stream)
print(moved, kept.split(), file=open(sys.argv[1] + "/said", "w"))
"""


@pytest.mark.parametrize("mode", ["wb", "ab"])
def test_its_own_words_are_not_the_commands(mode: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    with open(log, mode) as file:
        words = [sys.executable, "-c", CODE, str(tmp_path)]
        subprocess.run(words, stdout=file, stderr=file, cwd=ROOT, check=True, timeout=60)
    assert log.read_text().count("HANG") == 3
    said = (tmp_path / "said").read_text()
    steps = [b"step", b"1", b"loss", b"2.0", b"step", b"2", b"loss", b"1.9"]
    assert said == f"{[True, False, False, False, True, False]} {steps}\n"

"""`--shadow` and `--per-host` of whole runs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.commands import doctor
from tests.support.paths import ROOT

SICK = str(ROOT / "tests" / "samples" / "recordings" / "sick-hosts.run.json.gz")


def test_a_shadow_ends_with_0_and_keeps_the_code(tmp_path: Path) -> None:
    words = ("check", "--replay", SICK, "--json", str(tmp_path / "whole.json"))
    usual = doctor(*words)
    assert usual.returncode == 1
    whole = (tmp_path / "whole.json").read_bytes()
    file = tmp_path / "shadow.jsonl"
    ran = doctor(*words, "--shadow", str(file), "--per-host", str(tmp_path / "hosts"))
    assert (ran.returncode, ran.stdout) == (0, usual.stdout)
    assert ran.stderr.endswith(f"shadow: this would have ended with 1; written to {file}\n")
    assert (tmp_path / "whole.json").read_bytes() == whole
    (line,) = map(json.loads, file.read_text().splitlines())
    assert (line["exit_code"], line["command"]) == (1, "preflight")  # as it was recorded
    read = {p.stem: json.loads(p.read_bytes()) for p in (tmp_path / "hosts").iterdir()}
    assert read.keys() == {host["name"] for host in json.loads(whole)["hosts"]}
    assert {data["hosts"][0]["name"] for data in read.values()} == read.keys()


def test_a_file_that_cannot_be_written_is_a_mistake_before_anything_runs(tmp_path: Path) -> None:
    ran = doctor(
        "check", "--replay", SICK, "--shadow", str(tmp_path / "no" / "s"), "--save", "x", cwd=tmp_path
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert not list(tmp_path.iterdir())

"""`--shadow` and `--per-host` of whole runs."""

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
    read = {p.stem: json.loads(p.read_bytes()) for p in (tmp_path / "hosts").glob("*.json")}
    assert read.keys() == {host["name"] for host in json.loads(whole)["hosts"]}
    assert {data["hosts"][0]["name"] for data in read.values()} == read.keys()


def test_a_file_that_cannot_be_written_is_a_mistake_before_anything_runs(tmp_path: Path) -> None:
    ran = doctor(
        "check", "--replay", SICK, "--shadow", str(tmp_path / "no" / "s"), "--save", "x", cwd=tmp_path
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert not list(tmp_path.iterdir())


def test_a_sweep_replaces_the_files_of_an_earlier_one_and_no_others(tmp_path: Path) -> None:
    folder = tmp_path / "hosts"
    doctor("check", "--replay", SICK, "--per-host", str(folder))
    wrote = {path.name for path in folder.iterdir()}
    (folder / ".sweep").write_text((folder / ".sweep").read_text() + "old.json\n../safe.json\nkept.txt\n")
    for name in ("old.json", "mine.json", "kept.txt", "../safe.json"):
        (folder / name).write_text("{}")
    doctor("check", "--replay", SICK, "--per-host", str(folder))
    assert {path.name for path in folder.iterdir()} == {*wrote, "mine.json", "kept.txt"}
    assert (tmp_path / "safe.json").exists()


def test_a_machine_adds_its_own_file_to_those_of_others(tmp_path: Path) -> None:
    alone = ("check", "--local", "--only", "disk-full", "--per-host", str(tmp_path))
    doctor(*alone)
    (own,) = (path.name for path in tmp_path.iterdir())
    doctor("check", "--replay", SICK, "--per-host", str(tmp_path))
    before = {path.name for path in tmp_path.iterdir()}
    assert own in before
    doctor(*alone)
    assert {path.name for path in tmp_path.iterdir()} == before


RUN = ("run", "--local", "--no-smoke", "--backend", "nccl", "--expect", "devices=8", "--only", "gpu-missing")
JOB = ("--", "sh", "-c", "echo started; exit 7")


def test_a_preflight_in_the_shadow_never_keeps_a_command_from_starting(tmp_path: Path) -> None:
    file = tmp_path / "shadow.jsonl"
    refused = doctor(*RUN, *JOB, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    ran = doctor(*RUN, "--shadow", str(file), *JOB, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (7, "started\n")
    assert f"shadow: this would have ended with 1; written to {file}" in ran.stderr
    (line,) = map(json.loads, file.read_text().splitlines())
    assert (line["exit_code"], line["command"], line["failed"][0]["check"]) == (1, "preflight", "gpu-missing")
    mistaken = doctor(*RUN, "--shadow", str(tmp_path / "no" / "s"), *JOB, cwd=tmp_path)
    assert (mistaken.returncode, mistaken.stdout) == (2, "")


def test_all_named_hosts_take_part_in_the_shadow(tmp_path: Path) -> None:
    words = ("--ranks-per-host", "2", "--shadow", str(tmp_path / "s"), "--", "echo", "{hosts}", "{nproc}")
    ran = doctor(*RUN, *words, cwd=tmp_path)
    assert (ran.returncode, ran.stdout.split()[1:]) == (0, ["2"])

"""The hook in real processes: the cost of importing it, and a real job with its bug."""

import ast
import inspect
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from doctor.smoke.hook import batch
from tests.support.cases import cases, from_cases
from tests.support.limits import slowness
from tests.support.paths import ROOT

EXAMPLE = ROOT / "examples/mask-under-model-parallel/train.py"
MINDSPORE_EXAMPLE = ROOT / "examples/mindspore/train.py"


# Several ranks at once, each of them a process, over files.

RANK = from_cases(__file__, "RANK", str)


def processes(
    folder: Path, seeds: Sequence[int], ranks: Sequence[int] | None = None, **options: Any
) -> list[tuple[int, list[Any], str]]:
    """The exit code, the verdicts and the output of each rank. Over files, without torch."""
    started = []
    for rank in range(len(seeds)) if ranks is None else ranks:
        env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "RANK": str(rank),
            "WORLD_SIZE": str(len(seeds)),
            "DOCTOR_HOOK_DIR": str(folder),
            **options.get("env", {}),
        }
        arguments = [options.get("script", RANK), str(seeds[rank]), json.dumps(options.get("arguments", {}))]
        python = options.get("python", sys.executable)
        started.append(
            subprocess.Popen(
                [python, "-c", *arguments],
                cwd=folder.parent,  # PYTHONPATH alone decides what is imported
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    ended = []
    try:
        for process in started:
            out, said = process.communicate(timeout=120)
            ended.append((process.returncode, json.loads(out or "[]"), said))
    finally:
        for process in started:
            process.kill()
    return ended


def test_the_bug_is_found_by_processes_without_torch(tmp_path: Path) -> None:
    ended = processes(tmp_path, [0, 1, 2, 2], arguments={"tensor_parallel": 2})
    for code, verdicts, _ in ended:
        assert code == 0
        assert [one["status"] for one in verdicts] == ["diverge"] * 5
        assert verdicts[0]["divergences"] == [
            {"kind": "differs", "part": "mask", "ranks": [0, 1], "group": [0, 1], "since": 1, "sure": True}
        ]
        assert [one["call"] for one in verdicts] == [1, 2, 3, 3, 3], "after the first calls it rests"
    assert ended[0][2].count("do not train on what they should") == 1, "said once, by rank 0"
    assert [said for _, _, said in ended[1:]] == ["", "", ""]


@pytest.mark.parametrize("arguments", [{"tensor_parallel": 2}, {"replicas": 2}, {"model_parallel": None}])
def test_a_healthy_job_is_silent(tmp_path: Path, arguments: dict[str, Any]) -> None:
    for code, verdicts, said in processes(tmp_path, [0, 0, 1, 1], arguments=arguments):
        assert (code, said) == (0, "")
        assert [one["status"] for one in verdicts] == ["agree"] * 5


@cases
def test_strict_ends_every_rank(tmp_path: Path, way: dict[str, Any]) -> None:
    for code, _, said in processes(tmp_path, [0, 1, 2, 2], **way):
        assert code == 1
        assert "Diverged: doctor: the ranks do not train on what they should" in said


def test_off_switches_the_hook_off(tmp_path: Path) -> None:
    for code, verdicts, said in processes(tmp_path, [0, 1, 2, 3], env={"DOCTOR_HOOK": "off"}):
        assert (code, verdicts, said) == (0, [None] * 5, "")
    assert not list(tmp_path.iterdir())


def test_a_rank_that_does_not_call_delays_no_other(tmp_path: Path) -> None:
    began = time.monotonic()
    ended = processes(tmp_path, [0, 0, 1, 1], [0, 1, 2], arguments={"wait": 1.5, "replicas": 2})
    assert time.monotonic() - began < 60
    for code, verdicts, _ in ended:
        assert code == 0
        assert [one["status"] for one in verdicts] == ["not compared"] * 5
        assert verdicts[0]["missing"] == [3]
    assert ended[0][2] == (
        "doctor: the batches of the ranks were not compared: rank 3 did not call within 1.5 s.\n"
    )


def test_the_folder_of_an_earlier_run_is_not_compared(tmp_path: Path) -> None:
    """Its hashes belong to another run: comparing with them would hide a fault of this run."""
    processes(tmp_path, [0, 0], arguments={"tensor_parallel": 2})
    again = processes(tmp_path, [0, 7], arguments={"tensor_parallel": 2, "wait": 0.2})
    assert [verdicts[0]["status"] for _, verdicts, _ in again] == ["not compared"] * 2
    assert "DOCTOR_HOOK_DIR is not empty but holds an earlier run" in again[0][2]
    assert again[1][2] == ""


def test_two_processes_of_one_rank_do_not_agree(tmp_path: Path) -> None:
    ended = processes(tmp_path, [0, 0, 1, 1], [0, 1, 0], arguments={"replicas": 2, "wait": 0.5})
    assert {verdicts[0]["status"] for _, verdicts, _ in ended} == {"not compared"}


def test_half_a_layout_is_not_agreement(tmp_path: Path) -> None:
    """Ranks 0 and 1 should have the same samples, but nothing says so; ranks 2 and 3 do have them."""
    script = RANK.replace("""int(os.environ['RANK']) // 2""", """min(int(os.environ['RANK']), 2)""")
    ended = processes(tmp_path, [0, 0, 2, 2], script=script)
    assert [verdicts[0]["status"] for _, verdicts, _ in ended] == ["not compared"] * 4
    assert "ranks 2-3" not in ended[0][2]
    assert "have the same tokens as no other rank" in ended[0][2]


def test_without_rank_0_the_others_go_on(tmp_path: Path) -> None:
    ended = processes(tmp_path, [0, 0, 1, 1], [1], arguments={"wait": 0.2})
    assert ended[0][1][0]["status"] == "not compared"
    assert "rank 0 did not answer" in ended[0][1][0]["text"]


OLD = [
    *Path.home().glob(".pyenv/versions/3.8.*/bin/python3.8"),
    *map(Path, filter(None, [which("python3.8")])),
]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """The output of the documented command."""
    path = tmp_path / "hook.zip"
    subprocess.run([sys.executable, "-m", "doctor.smoke.hook", str(path)], check=True, cwd=ROOT)
    return path


def test_the_archive_runs_on_python_3_8(archive: Path, tmp_path: Path) -> None:
    python = next((str(each) for each in OLD if subprocess.run([each, "-V"]).returncode == 0), None)
    if python is None:
        pytest.skip("no Python 3.8 here")
    env = {"PYTHONPATH": str(archive)}
    ended = processes(tmp_path / "a", [0, 1, 2, 2], arguments={"tensor_parallel": 2}, python=python, env=env)
    assert [one[1][0]["status"] for one in ended] == ["diverge"] * 4
    ended = processes(tmp_path / "b", [0, 0, 2, 2], arguments={"tensor_parallel": 2}, python=python, env=env)
    assert [one[1][0]["status"] for one in ended] == ["agree"] * 4


NEWER = {
    *("graphlib", "zoneinfo", "tomllib"),
    *("removeprefix", "removesuffix", "pairwise", "cache", "bit_count", "nextafter", "lcm", "file_digest"),
    *("strict", "slots", "kw_only", "key_only", "root_dir", "dir_fd", "to_thread", "randbytes"),
}
"""Modules, attributes and arguments that Python has only since a version after 3.8."""


def test_the_archive_is_python_3_8_and_needs_nothing_else(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        texts = {name: opened.read(name).decode() for name in opened.namelist()}
    inside = {name[:-3].removesuffix("/__init__").replace("/", ".") for name in texts}
    assert {"doctor.smoke.hook", "doctor.smoke.hook_impl.compare", "doctor.text.ranks"} < inside
    for name, text in texts.items():
        late = "from __future__ import annotations\n" in text
        assert late or "def " not in text, f"{name}: Python 3.8 evaluates its annotations"
        for node in ast.walk(ast.parse(text, name, feature_version=(3, 8))):
            if isinstance(node, ast.ImportFrom):
                used = {str(node.module), *(alias.name for alias in node.names)}
                known = node.module in inside or str(node.module).split(".")[0] in sys.stdlib_module_names
                assert known, (name, node.module)
            elif isinstance(node, ast.Import):
                used = {alias.name for alias in node.names}
                assert used <= {*inside, *sys.stdlib_module_names}, (name, used)
            elif isinstance(node, ast.Call):
                used = {str(keyword.arg) for keyword in node.keywords}
            else:
                used = {node.attr} if isinstance(node, ast.Attribute) else set()
            assert not used & NEWER, (name, used)


def test_the_archive_command_says_what_it_wants(tmp_path: Path) -> None:
    for wrong in ([], ["hook"], [str(tmp_path / "none" / "hook.zip")], ["a.zip", "b.zip"]):
        ran = subprocess.run(
            [sys.executable, "-m", "doctor.smoke.hook", *wrong], capture_output=True, text=True, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert ran.returncode == 1
        assert "usage" in ran.stderr or "cannot be written" in ran.stderr
        assert "Traceback" not in ran.stderr


def test_importing_it_costs_nothing() -> None:
    code = (
        "import time; t = time.process_time(); import doctor.smoke.hook; t = time.process_time() - t\n"
        "import sys; print(t); print(*sorted(m for m in sys.modules if '.' not in m))"
    )
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    runs = [
        subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
        for _ in range(5)
    ]
    assert min(float(run.stdout.split()[0]) for run in runs) < 0.005 * slowness()
    assert not {"msgspec", "torch", "numpy", "dataclasses", "json"} & set(runs[0].stdout.split())


# torch, in separate processes: its results must be the same with and without the hook.

TENSORS = from_cases(__file__, "TENSORS", str)


def test_tensors_are_read_and_left_alone() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", TENSORS],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.stdout == "fine\n", ran.stderr


def example(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"]
    return subprocess.run(
        [sys.executable, "-W", "ignore", *torchrun, str(EXAMPLE), "--steps", "20", *arguments],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
            **env,
        },
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_example_with_its_bug_is_found_and_fixed_it_is_silent() -> None:
    bug, fixed = example("--bug"), example()
    assert [ran.returncode for ran in (bug, fixed)] == [0, 0], bug.stderr + fixed.stderr
    assert (
        "doctor:   from call 1 on: not the same mask inside a model-parallel group: ranks 0-1; ranks 2-3\n"
        in bug.stderr
    )
    assert "tokens inside" not in bug.stderr
    assert "doctor" not in fixed.stdout + fixed.stderr
    last = {name: float(ran.stdout.split()[-2]) for name, ran in (("bug", bug), ("fixed", fixed))}
    assert last["bug"] > 1.5 > 0.7 > last["fixed"], last


@pytest.mark.long
def test_the_losses_of_the_example_are_bit_for_bit_as_without_the_hook() -> None:
    assert example().stdout == example("--no-hook").stdout


def test_the_example_ends_when_asked_to_be_strict() -> None:
    ran = example("--bug", DOCTOR_HOOK="strict")
    assert ran.returncode == 1
    assert "Diverged: doctor: the ranks do not train on what they should" in ran.stderr
    assert "step" not in ran.stdout


def test_the_example_for_mindspore_is_python_3_8() -> None:
    text = MINDSPORE_EXAMPLE.read_text()
    ast.parse(text, feature_version=(3, 8))
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    (made,) = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "batch"]
    inspect.signature(batch).bind(*made.args, **{str(each.arg): None for each in made.keywords})

"""Completion in real shells, and the manual page in real readers of it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from doctor.exam.demo import ALL_DEMOS
from doctor.judge.playbook import exams
from doctor.judge.registry import find_checks
from tests.support.cases import from_cases
from tests.support.commands import doctor

BASH = from_cases(__file__, "BASH", str)
COMMANDS = from_cases(__file__, "COMMANDS", set[str])
CHECKS = {check.id for check in find_checks().checks}
CASES: list[tuple[list[str], set[str]]] = [
    ([""], COMMANDS),
    (["check", "--on"], {"--only", "--on-busy", "--on-nodes"}),
    (["check", "--only", ""], CHECKS),
    (["check", "--only", "shm"], {"shm-small", "shm-full"}),
    (["check", "--skip", "shm-small,fire"], {"shm-small,firewall-blocks"}),
    (["check", "--color", ""], {"auto", "always", "never"}),
    (["smoke", "--transport", "s"], {"ssh", "srun"}),
    (["explain", "grow-s"], {"grow-shm", "grow-shm-in-container"}),
    (["explain", "EI000"], {f"EI000{number}" for number in range(1, 10)}),
    (["demo", ""], set(ALL_DEMOS)),
    (["list", ""], {"checks", "remedies", "symptoms", "schema"}),
    (["ranktable", ""], {"make", "check"}),
    (["ranktable", "make", "--format", ""], {"1.0", "legacy", "1.2"}),
    (["ranktable", "check", "--prod"], {"--product"}),
    (["completion", ""], {"bash", "zsh", "fish"}),
    (["list", "--checks", "more"], {"more-checks"}),
    (["check", "--replay", "run.j"], {"run.json"}),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the scripts, a file and a folder."""
    made = tmp_path_factory.mktemp("shell")
    for shell in ("bash", "zsh", "fish"):
        ran = doctor("completion", shell)
        assert (ran.returncode, ran.stderr) == (0, "")
        (made / shell).write_text(ran.stdout)
    (made / "run.json").touch()
    (made / "more-checks").mkdir()
    return made


@pytest.mark.parametrize(("typed", "offered"), CASES)
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_shell_completes(shell: str, typed: list[str], offered: set[str], folder: Path) -> None:
    assert ask(shell, typed, folder) == offered


def test_an_exam_is_a_name_or_a_file(folder: Path) -> None:
    for shell in ("bash", "fish"):
        assert ask(shell, ["check", "--exam", ""], folder) >= {*exams(), "run.json"}


def test_files_are_not_lost_among_the_ids_that_can_be_explained(folder: Path) -> None:
    assert ask("bash", ["explain", ""], folder) == {each.name for each in folder.iterdir()}
    assert ask("bash", ["explain", "run"], folder) == {"run.json"}


def test_an_equals_sign_before_the_value(folder: Path) -> None:
    assert ask("bash", ["check", "--mesh", "=", "ri"], folder) == {"ring"}, "as bash divides it"
    assert ask("fish", ["check", "--mesh=ri"], folder) == {"--mesh=ring"}


def ask(shell: str, typed: list[str], folder: Path) -> set[str]:
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell} here")
    fish = f"source ./fish; complete -C '{' '.join(['doctor', *typed])}'"
    line = ["-c", BASH, "bash", "./bash", "doctor", *typed] if shell == "bash" else ["-N", "-c", fish]
    env = {**os.environ, "HOME": str(folder)}
    ran = subprocess.run([shell, *line], capture_output=True, text=True, cwd=folder, env=env, check=False)
    assert ran.stderr == ""
    return {found.partition("\t")[0].rstrip("/") for found in ran.stdout.splitlines()}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_one_of_its_shell(shell: str, folder: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell} here")
    env = {**os.environ, "HOME": str(folder)}
    ran = subprocess.run(
        [shell, "-n", shell], capture_output=True, text=True, cwd=folder, env=env, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_what_zsh_is_told(folder: Path) -> None:
    said = (folder / "zsh").read_text()
    assert said.startswith("#compdef doctor\n")
    assert "'*--color=[Colours auto, always or never]:value:(auto always never)'" in said
    assert "'*--only=[Only these checks globs, or parts of names]:value:_values -s , value " in said
    assert said.count("'*: :_hosts'") == 10, "all but explain, demo and list"


@pytest.mark.parametrize("reader", [["groff", "-man", "-ww", "-Tutf8"], ["man", "--warnings", "-l"]])
def test_the_manual_page_has_no_mistake(reader: list[str], tmp_path: Path) -> None:
    if not shutil.which(reader[0]):
        pytest.skip(f"there is no {reader[0]} here")
    (tmp_path / "doctor.1").write_text(doctor("help", "--man").stdout)
    env = {**os.environ, "MANPAGER": "cat", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
    ran = subprocess.run(
        [*reader, "doctor.1"], capture_output=True, text=True, cwd=tmp_path, env=env, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "EXIT STATUS" in re.sub(r".\x08", "", ran.stdout), "without what is struck twice"

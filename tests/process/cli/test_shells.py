"""Completion in real shells, and the manual page in real readers of it."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from shlex import quote

import pytest

from doctor.exam.demo import ALL_DEMOS
from doctor.judge.playbook import exams
from doctor.judge.registry import find_checks
from tests.support.cases import from_cases
from tests.support.commands import doctor

SHELLS = ("bash", "zsh", "fish")
BASH = from_cases(__file__, "BASH", str)
ZSH = from_cases(__file__, "ZSH", str)
ASKED = from_cases(__file__, "ASKED", str)
"""What the zsh that is asked is told first: to print what it offers."""
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
    for shell in SHELLS:
        ran = doctor("completion", shell)
        assert (ran.returncode, ran.stderr) == (0, "")
        (made / shell).write_text(ran.stdout)
    (made / "asked.zsh").write_text(ASKED)
    (made / "run.json").touch()
    (made / "more-checks").mkdir()
    return made


@pytest.mark.parametrize(("typed", "offered"), CASES)
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes(shell: str, typed: list[str], offered: set[str], folder: Path) -> None:
    assert ask(shell, typed, folder) == offered


def test_an_exam_is_a_name_or_a_file(folder: Path) -> None:
    for shell in SHELLS:
        assert ask(shell, ["check", "--exam", ""], folder) >= {*exams(), "run.json"}


def test_files_are_not_lost_among_the_ids_that_can_be_explained(folder: Path) -> None:
    assert ask("bash", ["explain", ""], folder) == {each.name for each in folder.iterdir()}
    assert ask("bash", ["explain", "run"], folder) == {"run.json"}


def test_an_equals_sign_before_the_value(folder: Path) -> None:
    assert ask("bash", ["check", "--mesh", "=", "ri"], folder) == {"ring"}, "as bash divides it"
    for shell in ("zsh", "fish"):
        assert ask(shell, ["check", "--mesh=ri"], folder) == {"--mesh=ring"}


def ask(shell: str, typed: list[str], folder: Path) -> set[str]:
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell} here")
    line = {
        "bash": ["-c", BASH, "bash", "./bash", "doctor", *typed],
        "zsh": ["-f", "-c", ZSH, "zsh", "doctor", *typed],
        "fish": ["-N", "-c", f"source ./fish; complete -C '{' '.join(['doctor', *typed])}'"],
    }[shell]
    env = {**os.environ, "HOME": str(folder)}
    ran = subprocess.run([shell, *line], capture_output=True, text=True, cwd=folder, env=env, check=False)
    assert ran.stderr == ""
    said = re.findall("offered (.*)", ran.stdout) if shell == "zsh" else ran.stdout.splitlines()
    return {found.partition("\t")[0].rstrip("/") for found in said}


WORDS = "no $(touch evaluated) `touch evaluated` $HOME it's \"q *"
"""Words that a shell would change, if it evaluated them."""


@pytest.mark.parametrize("shell", SHELLS)
def test_words_are_not_evaluated(shell: str, folder: Path, tmp_path: Path) -> None:
    for each in folder.iterdir():
        if each.is_file():
            said = each.read_text().replace(";auto always never;", f";{quote(WORDS)[1:-1]};")
            (tmp_path / each.name).write_text(said)
    offered = {re.sub(r"\\(.)", r"\1", each) for each in ask(shell, ["check", "--color", ""], tmp_path)}
    assert offered == {*WORDS.split()}
    assert not (tmp_path / "evaluated").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_one_of_its_shell(shell: str, folder: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell} here")
    env = {**os.environ, "HOME": str(folder)}
    ran = subprocess.run(
        [shell, "-n", shell], capture_output=True, text=True, cwd=folder, env=env, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_table_is_the_same_for_all_shells(folder: Path) -> None:
    tables = [re.findall(r"\|.*\|;.*;.*;.*;[^'\n]*", (folder / shell).read_text()) for shell in SHELLS]
    assert tables[0] == tables[1] == tables[2]
    rows = [row.split(";") for row in tables[0]]
    assert ["auto always never", "Colours auto, always or never"] in [row[3:] for row in rows]
    assert [row[2] for row in rows if row[1] == "--only"] == ["list"]
    (hosts,) = [row[0] for row in rows if row[1:3] == ["", "hosts"]]
    assert hosts.count("|doctor ") == 10, "all but explain, demo and list"


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

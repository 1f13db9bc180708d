"""What people type by mistake or because other programs accept it, and the answer: what to type here."""

from pathlib import Path

import pytest

from doctor.cli import run
from doctor.cli.otherwords import COMMANDS, OPTIONS
from tests.support.cases import cases

HOSTS_INI = "[train]\nnode1 ansible_host=10.0.0.1\nnode2\n\n[train:vars]\nansible_user=root\n"
TABLE = '{"version": "1.0", "server_count": "1", "server_list": [{"server_id": "10.0.0.1", "device": []}]}'


def answer(words: str | list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(words.split() if isinstance(words, str) else words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert err.count("\n") <= 4
    return " ".join(err.split())


@cases
def test_words_of_other_programs(
    words: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/anna")
    (tmp_path / "train.log").write_text("Traceback (most recent call last):\n")
    (tmp_path / "id.pub").write_text("ssh-ed25519 AAAAC3Nza anna@desk\n")
    (tmp_path / "hosts.ini").write_text(HOSTS_INI)
    assert says in answer(words, capsys)


@cases
@pytest.mark.parametrize("command", ["check", "hang"])
def test_words_that_are_no_hosts(
    command: str,
    word: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "hccl.json": TABLE,
        "hosts": "alpha\nbeta\n",
        "hosts.txt": "node1\nnode2\n",
        "lab.yaml": "hosts: [node1]\n",
        "hosts.ini": HOSTS_INI,
        "job.sh": "#!/bin/bash\ntorchrun train.py\n",
        "train.log": "Traceback (most recent call last):\n",
    }.items():
        (tmp_path / name).write_text(text)
    assert says in answer([command, word], capsys)


@pytest.mark.parametrize("word", ["node1", "gpu7.lab", "fd00::1", "10.0.0.7", "alpha"])
def test_a_host_may_be_called_as_a_file_is(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from doctor.targets.inventory import read_targets

    monkeypatch.chdir(tmp_path)
    (tmp_path / word).write_text("something else\nthan a list of hosts\n")
    (host,) = read_targets([word], None, None, False, (), {}).hosts
    assert host.name == word


@cases
def test_files_of_other_programs(
    option: str, text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "given").write_text(text)
    assert says in answer(["check", option, str(tmp_path / "given")], capsys)


@cases
@pytest.mark.parametrize("where", ["node1", "--local"])
def test_an_interpreter_that_is_none(
    where: str,
    python: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").touch()
    said = answer(["check", where, "--python", python.format(tmp_path)], capsys)
    assert says.format(tmp_path) in said


def test_what_other_programs_call_so_is_nothing_of_ours() -> None:
    """A word of the tables that became an option or a command would never be looked up."""
    import typer

    from doctor.cli import app
    from doctor.cli.help import below

    root = typer.Context(typer.main.get_command(app), info_name="doctor")
    known = {name for each in below(root) for param in each.command.params for name in param.opts}
    assert {ours for ours in OPTIONS.values() if ours.startswith("-")} <= known
    assert not set(COMMANDS) & {each.command_path.split()[1] for each in below(root)}


@pytest.mark.parametrize("typed", ["shm_small", "SHM-SMALL"])
def test_the_name_of_a_check_in_other_letters(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", typed]) == 0
    assert capsys.readouterr().out.startswith("shm-small")

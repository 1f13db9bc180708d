"""Launches that their shell, scheduler or launcher does not read as they are meant; and their sound twins."""

from pathlib import Path

from doctor.job.launch.files import read_launch_files
from doctor.model import Problem, Severity
from tests.support.cases import cases
from tests.support.launches import a_plan, judged, words


def problems(folder: Path, text: str, files: dict[str, str], hosts: int = 2) -> list[Problem]:
    for name, content in files.items():
        (folder / name).write_text(content)
    (folder / "run.sh").write_text(text)
    launch = read_launch_files([folder / "run.sh"])
    return judged("launch-command", [launch], a_plan("gloo", hosts))[0]


@cases
def test_what_is_not_read_as_it_is_meant(
    text: str, files: dict[str, str], says: str, line: str, typed: str, warns: bool, tmp_path: Path
) -> None:
    (found,) = problems(tmp_path, text, files)
    assert says in found.summary
    assert line in words(found)
    assert typed in "".join(found.commands)
    assert found.severity is (Severity.WARN if warns else None)
    assert found.hosts == ()


@cases
def test_what_is_read_as_it_is_meant(text: str, files: dict[str, str], tmp_path: Path) -> None:
    assert problems(tmp_path, text, files) == []


@cases
def test_what_matters_on_several_hosts_only(text: str, tmp_path: Path) -> None:
    assert len(problems(tmp_path, text, {})) == 1
    assert problems(tmp_path, text, {}, hosts=1) == []


def test_a_launch_that_is_meant_is_judged_as_it_is_meant(tmp_path: Path) -> None:
    """Neither a comment between its lines nor a dash of an editor hides the options behind it."""
    line = "torchrun --nnodes=2 \\\n  {}--node_rank=$1 \\\n  --master_addr=node1 train.py\n"
    for odd in ("# --max_restarts=3 \\\n  ", "–"):
        (tmp_path / "run.sh").write_text(line.format(odd))
        (told,) = read_launch_files([tmp_path / "run.sh"]).told
        assert "--master_addr=node1" in told.command

"""Versions, Python and the environment, read by a real shell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from doctor.api import Ask, Run
from doctor.facts.software import ENVIRONMENT, PYTHON, Python
from doctor.job.launch.variables import is_kept
from tests.support.captures import printed
from tests.support.cases import cases


def look(path: Path) -> Python:
    """What the probe finds out about this interpreter, with a folder on its PYTHONPATH."""
    assert isinstance(PYTHON.command, Run)
    shell = PYTHON.command.text(Ask("a", python=sys.executable))
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(path), "LC_ALL": "C"}
    isolated = shell.replace(" -B ", " -S -B ")  # without the packages of the interpreter that runs the tests
    assert isolated != shell
    done = subprocess.run(
        ["sh", "-c", isolated], env=env, capture_output=True, text=True, check=True, cwd="/"
    )
    return printed(PYTHON, done.stdout)


@pytest.mark.parametrize(
    ("files", "packages", "unversioned"),
    [
        ({}, {}, set()),
        ({"torch-2.1.0.dist-info/METADATA": ""}, {"torch": "2.1.0"}, set()),
        ({"torch-2.1.0.dist-info/METADATA": "", "torch/__init__.py": ""}, {"torch": "2.1.0"}, set()),
        (
            {"torch/__init__.py": "", "torch/version.py": "__all__ = []\n__version__ = '2.7.0a0+git1'\n"},
            {"torch": "2.7.0a0+git1"},
            set(),
        ),
        ({"torch/__init__.py": "", "torch/version.py": "\udcff\nversion = 1\n"}, {}, {"torch"}),
        ({"torch/__init__.py": "raise SystemExit"}, {}, {"torch"}),
        ({"torch/data.txt": ""}, {}, set()),
    ],
    ids=["none", "metadata", "both", "built in place", "garbage", "no version", "another folder"],
)
def test_torch_is_found_by_its_files(
    files: dict[str, str], packages: dict[str, str], unversioned: set[str], tmp_path: Path
) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, errors="surrogateescape")
    python = look(tmp_path)
    assert (dict(python.packages), set(python.unversioned)) == (packages, unversioned)


@cases
def test_torch_that_is_compiled_for_another_python(
    files: list[str], unfit: list[str], tmp_path: Path
) -> None:
    (tmp_path / "torch").mkdir()
    for name in ("__init__.py", *files):
        (tmp_path / "torch" / name).touch()
    assert [*look(tmp_path).unfit] == unfit


@pytest.mark.parametrize("path", ["/opt/no such/python", "python-that-is-nowhere"])
def test_an_interpreter_that_does_not_exist(path: str) -> None:
    assert isinstance(PYTHON.command, Run)
    shell = PYTHON.command.text(Ask("a", python=path))
    said = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout
    assert printed(PYTHON, said) == Python(path, "", {})


@pytest.mark.parametrize("name", ["MS_TEAMS_WEBHOOK_URL", "MS_DB_PASS", "AWS_SECRET", "HOME"])
def test_only_variables_of_a_job_leave_a_host(name: str) -> None:
    assert not is_kept(name)
    assert isinstance(ENVIRONMENT.command, Run)
    shell = ENVIRONMENT.command.text(Ask("a"))
    env = {name: "x", "MS_ROLE": "MS_WORKER", "HCCL_BUFFSIZE": "200", "PATH": os.environ["PATH"]}
    said = subprocess.run(["sh", "-c", shell], env=env, capture_output=True, text=True, check=True).stdout
    variables = [line for line in said.splitlines() if not line.startswith("group ")]
    assert sorted(variables) == ["HCCL_BUFFSIZE=200", "MS_ROLE=MS_WORKER"]


@cases
@pytest.mark.parametrize("shell", [["sh"], ["busybox", "sh"]], ids=" ".join)
def test_what_variables_name_and_the_host_lacks(
    shell: list[str], name: str, value: str, absent: tuple[str, ...], tmp_path: Path
) -> None:
    if name == "TZ" and not Path("/usr/share/zoneinfo/Asia").is_dir():
        pytest.skip("no time zones are installed here")
    assert isinstance(ENVIRONMENT.command, Run)
    (tmp_path / "home/lib/python3.11").mkdir(parents=True)
    env = {name: value.format(tmp_path), "PATH": os.environ["PATH"]}
    command = [*shell, "-c", ENVIRONMENT.command.text(Ask("a"))]
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    seen = printed(ENVIRONMENT, said)
    assert seen.variables == {name: env[name]}
    assert seen.absent == ({name: tuple(each.format(tmp_path) for each in absent)} if absent else {})

"""Variables of a launch script that its ranks do not get; tests/process has what a real shell gives them."""

from pathlib import Path

from doctor.api import View
from doctor.facts.software import Environment
from doctor.model import Problem, Severity
from tests.support.cases import cases
from tests.support.launches import judged, read


def problems(folder: Path, text: str, **facts: object) -> list[Problem]:
    return judged("launch-variables", [read(folder, text)], facts={"environment": {}, "view": {}, **facts})[0]


@cases
def test_a_variable_that_no_rank_gets(text: str, name: str, line: int, warns: bool, tmp_path: Path) -> None:
    (found,) = problems(tmp_path, text)
    assert name in found.summary
    assert f"in line {line} of " in found.actual
    assert found.severity is (Severity.WARN if warns else None)
    assert found.hosts == ()


@cases
def test_a_variable_that_ranks_get_or_do_not_need(text: str, tmp_path: Path) -> None:
    assert problems(tmp_path, text) == []


@cases
def test_what_a_login_sets_or_pods_are_given_is_no_slip(text: str, tmp_path: Path) -> None:
    assert len(problems(tmp_path, text)) == 1
    assert problems(tmp_path, text, view={"node1": View.CONTAINER}) == []
    login = Environment({"MASTER_PORT": "29511"})
    assert problems(tmp_path, text, environment={"node1": login}) == []


def test_a_secret_is_not_quoted(tmp_path: Path) -> None:
    secret = "hf_abcdefghijklmnopqrstuvwxyz123456"
    line = f"torchrun --nnodes=2 --master_port=$MY_PORT train.py --token={secret}"
    (found,) = problems(tmp_path, f"MY_PORTS=29500\n{line}\n")
    assert "train.py" in found.actual
    assert secret not in found.actual

"""Variables of a launch script that its ranks do not get; tests/process has what a real shell gives them."""

from pathlib import Path

import pytest

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
def test_a_variable_that_does_not_reach_its_ranks(
    says: str, name: str, line: int, text: str, tmp_path: Path
) -> None:
    (found,) = problems(tmp_path, text)
    assert says in found.summary
    assert found.subject == f"env0.log: {name}"
    assert f"in line {line} of env0.log" in found.actual
    assert found.severity is None


@cases
def test_a_variable_that_reaches_its_ranks(text: str, tmp_path: Path) -> None:
    assert problems(tmp_path, text) == []


def test_a_container_hides_no_slip_of_the_script_itself(tmp_path: Path) -> None:
    lines = "for i in 0 1; do RANK=$i WORLD_SIZE=2 MASTER_PORT=29500 python train.py & done"
    inside = {"environment": {}, "view": {"node1": View.CONTAINER}}
    for text, found in ((f"export MASTER_ADDR = node1\n{lines}", 1), (f"MASTER_ADDR=node1\n{lines}", 0)):
        some, doubt = judged("launch-variables", [read(tmp_path, text)], facts=inside)
        assert len(some) == found
        assert ("MASTER_ADDR of line 1 of env0.log" in doubt) is not found


def test_files_that_a_script_reads_have_their_own_lines(tmp_path: Path) -> None:
    text = "set -e\n{}\nfor i in 0 1; do RANK=$i WORLD_SIZE=2 MASTER_PORT=29500 python train.py & done"
    (tmp_path / "job.env").write_text("# the job\nMASTER_ADDR=node1\n")
    (found,) = problems(tmp_path, text.format(". ./job.env"))
    assert found.actual == "MASTER_ADDR=node1, in line 2 of job.env"
    assert problems(tmp_path, text.format("set -a; . ./job.env; set +a")) == []
    (tmp_path / "job.env").write_bytes(b"# the job\r\nMASTER_ADDR=node1\r\n")
    (found,) = problems(tmp_path, text.format("set -a; . ./job.env; set +a"))
    assert "CR LF" in found.summary
    assert "in line 2 of " in found.actual


def test_what_cannot_be_read_makes_no_blank_good(tmp_path: Path) -> None:
    lines = "for i in 0 1; do RANK=$i WORLD_SIZE=2 MASTER_PORT=29500 python train.py & done"
    (found,) = problems(tmp_path, f". ./gone.env\nexport MASTER_ADDR = node1\n{lines}")
    assert "a blank" in found.summary
    assert problems(tmp_path, f". ./gone.env\nMASTER_ADDR=node1\n{lines}") == []


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


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ("R=0\n[ $(hostname -s) = node2 ] && R=1", ""),
        ('[ "$HOSTNAME" = node1 ] && R=0 || R=1', ""),
        ("[ $(hostname -s) = node3 ] && R=0 || R=1", "two hosts one R"),
        ("if [[ $(hostname) == node1* ]]; then R=0; elif [[ $(hostname) == node2* ]]; then R=1; fi", ""),
        ("R=$(( ${HOSTNAME##*[!0-9]} - 1 ))", ""),
        ("R=$(( $(hostname -s | grep -o '[0-9]*$') - 1 ))", ""),
        ("case $(hostname) in node1 | node1.*) R=0 ;; node2 | node2.*) R=1 ;; esac", ""),
        ("case $(uname -n) in *1*) R=0 ;; *) R=1 ;; esac", ""),
        ("R=0; for h in node1 node2; do [ $h = $(hostname -s) ] && break; R=$((R + 1)); done", ""),
        ("R=$(grep -n $(hostname -s) hosts | cut -d: -f1)", ""),
        (
            "if [[ $(hostname) == node1 ]]; then R=0; elif [[ $(hostname) == node3 ]]; then R=1; fi",
            "on node2",
        ),
        ("case $(hostname) in node1) R=0 ;; gpu2) R=1 ;; esac", "on node2"),
        ("case $(hostname) in node1) R=0 ;; node2) R=0 ;; esac", "two hosts one R"),
        ("case $(hostname) in\n  gpu-a) R=0 ;;\n  gpu-b) R=1 ;;\n  *) exit 1 ;;\nesac", "on node[1-2]"),
        ("case $(hostname) in dgx*) F=1 ;; esac\nR=$1", ""),
        ("[ $(hostname) = gpu-a ] && F=1\nR=$1", ""),
        ("R=$1\n[ $(hostname -s) = node1 ] && R=0", ""),
        ("R=1\ncase $(hostname) in node3) R=0 ;; esac", "two hosts one R"),
    ],
)
def test_a_number_by_the_name_of_a_host(choice: str, says: str, tmp_path: Path) -> None:
    line = "torchrun --nnodes=2 --node_rank=$R --master_addr=node1 --master_port=29500 train.py"
    found = problems(tmp_path, f"{choice}\n{line}\n")
    assert [says in each.summary for each in found] == [True] * bool(says)


def test_a_list_of_numbers_by_host_has_every_host_once(tmp_path: Path) -> None:
    line = "torchrun --nnodes=2 --node_rank=${RANKS[$(hostname)]} --master_addr=node1 train.py"
    tests = "if [ $(hostname) = node1 ]; then NODE_RANK=0; fi\nif [ $(hostname) = {} ]; then NODE_RANK={}; fi"
    for rows, says in (
        ("declare -A RANKS=([node1]=0 [node3]=1)", "does not set RANKS on node2"),
        ("declare -A RANKS=([node1]=1 [node2]=1)", "gives two hosts one RANKS"),
        (tests.format("node3", 1), "does not set NODE_RANK on node2"),
        (tests.format("node2", 0), "gives two hosts one NODE_RANK"),
    ):
        own = line.replace("${RANKS[$(hostname)]}", "$NODE_RANK") if "NODE_RANK" in says else line
        (found,) = problems(tmp_path, f"{rows}\n{own}\n")
        assert says in found.summary
        assert found.hosts == ()

"""Events and states of Kubernetes name the pod, the container, the node and the resource."""

from pathlib import Path

from doctor.logs.model import LogOutcome
from tests.support.cases import cases, from_cases
from tests.support.each import each
from tests.support.fault_logs import written

NO_ROOM = from_cases(__file__, "NO_ROOM", str)
ASSIGNED = "Normal   Scheduled  10s   default-scheduler  {}Successfully assigned default/{} to gpu-7"


@cases
def test_what_is_guilty_stands_in_the_headline(line: str, says: tuple[str, ...], tmp_path: Path) -> None:
    found = written(tmp_path, line)
    assert found.outcome is LogOutcome.NAMED
    assert all(word in found.charges[0].says for word in says)


def test_a_pod_that_got_its_node_in_the_end_is_healthy(tmp_path: Path) -> None:
    assert written(tmp_path, ASSIGNED.format("", "train-0"), NO_ROOM.format("")).outcome is LogOutcome.CLEAN
    two = (ASSIGNED.format("pod/train-0   ", "train-0"), NO_ROOM.format("pod/train-1   "))
    assert written(tmp_path, *two).outcome is LogOutcome.NAMED


@each("code", [0, 1, 137, 255])
def test_only_an_error_ends_a_container(code: int, tmp_path: Path) -> None:
    line = (
        f'1.7e+09 DEBUG events Pod: kubeflow.train-0 exited with code {code} {{"reason": "ExitedWithCode"}}'
    )
    found = written(tmp_path, line)
    assert (found.outcome is LogOutcome.NAMED) is (code != 0)
    assert not code or "train-0" in found.charges[0].says


def test_a_running_pod_is_healthy(tmp_path: Path) -> None:
    found = written(
        tmp_path,
        "Name:         train-worker-1",
        "Status:       Running",
        "    Last State:     Terminated",
        "      Reason:       Completed",
        "Tolerations:                 node.kubernetes.io/not-ready:NoExecute op=Exists for 300s",
        "                             node.kubernetes.io/unreachable:NoExecute op=Exists for 300s",
        "NAME             READY   STATUS      RESTARTS   AGE",
        "train-worker-0   0/1     Completed   0          5m",
    )
    assert found.outcome is LogOutcome.CLEAN


@cases
def test_a_container_in_error_is_not_silent(line: str, tmp_path: Path) -> None:
    assert written(tmp_path, "train-master-0   1/1   Running   0   5m", line).outcome is LogOutcome.UNKNOWN

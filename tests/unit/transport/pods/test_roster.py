"""Which pods --pods means, and in which order; why a pod cannot be entered."""

import json
from typing import Any

import pytest

from doctor.errors import UsageError
from doctor.model import UnreachedKind
from doctor.transport.pods.errors import trouble_of
from doctor.transport.pods.podlist import Pod, read_pods
from doctor.transport.pods.roster import choose_pods, read_selection
from tests.support.cases import cases
from tests.support.kubernetes import pod

KUBECTL = "kubectl -n team"


def listed(pods: list[dict[str, Any]]) -> tuple[Pod, ...]:
    return read_pods(json.dumps({"items": pods}).encode())[0]


@cases
def test_pods_are_in_the_order_of_their_ranks(
    pods: list[dict[str, Any]], selector: str, order: list[str], said: list[str]
) -> None:
    found, notes = choose_pods(listed([pod(**each) for each in pods]), read_selection(selector), KUBECTL)
    assert [each.name for each in found] == order
    assert notes == said


@cases
def test_pods_that_cannot_be_meant(pods: list[dict[str, Any]], selector: str, says: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        choose_pods(listed([pod(**each) for each in pods]), read_selection(selector), KUBECTL)
    assert error.value.message == says
    assert hint in error.value.hint


@cases
def test_a_pod_that_does_not_run(pod_: dict[str, Any], says: str, types: str) -> None:
    (found,) = listed([pod("train-0", **pod_)])
    why = trouble_of(found, found.container(None), KUBECTL)
    assert why is not None
    assert why.kind is UnreachedKind.ENTRY
    assert why.summary == f"The pod was not entered: {says}"
    assert why.commands == (f"{KUBECTL} {types}",)


@pytest.mark.parametrize("container", ["main", "proxy", "agent", "none-such"])
def test_another_container_of_the_pod(container: str) -> None:
    """Its neighbour crashes: that is not its fault."""
    broken = {"name": "proxy", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    states = [{"name": "main", "state": {"running": {}}}, broken]
    sidecar = [{"name": "agent", "state": {"running": {}}}]
    status = {"phase": "Running", "containerStatuses": states, "initContainerStatuses": sidecar}
    made = pod("train-0", status=status)
    made["spec"]["initContainers"] = [{"name": "agent", "restartPolicy": "Always"}]
    (found,) = listed([made])
    why = trouble_of(found, found.container(container), KUBECTL)
    said = {
        "main": None,
        "proxy": "again and again",
        "none-such": "no such container: none-such; it has main, proxy, agent",
    }
    assert (why is None) == (container in ("main", "agent"))
    assert why is None or str(said[container]) in why.summary


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b'{"items": 1}', b'{"items": [{"metadata": {}, "spec": {}, "status": {}}]}', b"\xff"],
)
def test_an_answer_that_is_no_list(data: bytes) -> None:
    with pytest.raises(UsageError, match="not the list asked for"):
        read_pods(data)


@pytest.mark.parametrize("name", ["-rf", "a b", "x\x1b[2J", "", "$(reboot)"])
def test_a_name_that_no_pod_has(name: str) -> None:
    for strange in (pod(name), pod("a", node=name or " ")):
        with pytest.raises(UsageError, match="a name that none has there"):
            listed([strange])

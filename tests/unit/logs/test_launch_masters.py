"""What logs show about the launch: the masters that hosts were given, and the host of rank 0."""

import pytest

from doctor.job.launch.process_env import Launch
from doctor.logs.loss.collect import LossCollector
from doctor.logs.prove import launch_told
from doctor.logs.read import read
from tests.support.fault_logs import JOBS, matcher


def told(name: str) -> Launch | None:
    return launch_told(read([JOBS / name], matcher(), loss=LossCollector))


def test_a_host_was_given_another_master() -> None:
    launch = told("master")
    assert launch is not None
    assert {(each.host, each.env.get("MASTER_ADDR"), each.env.get("RANK")) for each in launch.told} == {
        ("node3", "198.18.0.12", None),
        ("node1", None, "0"),
    }
    assert not launch.complete


def test_a_name_that_does_not_resolve() -> None:
    launch = told("name")
    assert launch is not None
    given = {"MASTER_ADDR": "train-head.cluster.example", "MASTER_PORT": "29500"}
    assert ("node2", given) in [(each.host, each.env) for each in launch.told]


@pytest.mark.parametrize("name", ["killed", "missing", "healthy", "shm-map"])
def test_logs_without_a_master(name: str) -> None:
    assert told(name) is None

"""What Kubernetes runs on each node by the examples, on a host as the node."""

import json
import sys
from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from tests.lab import Lab
from tests.lab.controller import REPOSITORY
from tests.lab.host import Host
from tests.support.paths import ROOT

FOLDER = ROOT / "examples" / "kubernetes"
DAEMON_SET = yaml.safe_load((FOLDER / "node.yaml").read_text())
(PROBE,) = (
    container["readinessProbe"]["exec"]["command"]
    for container in DAEMON_SET["spec"]["template"]["spec"]["containers"]
)
*_, WRITER = yaml.safe_load_all((FOLDER / "condition.yaml").read_text())
(WRITING,) = WRITER["spec"]["template"]["spec"]["containers"]
DETECTOR = json.loads((FOLDER / "node-problem-detector.json").read_text())
(RULE,) = DETECTOR["rules"]


@pytest.fixture
def node(lab: Lab) -> Host:
    host = lab["node2"]
    host.do("mkdir -p /opt/cluster-doctor/bin")
    host.write(
        "/opt/cluster-doctor/bin/doctor",
        f'#!/bin/sh\nPYTHONPATH={REPOSITORY} exec {sys.executable} -m doctor "$@"\n',
        0o755,
    )
    host.write(RULE["path"], (FOLDER / "node-problem-detector.sh").read_text(), 0o755)
    return host


@pytest.mark.parametrize("command", [PROBE, [RULE["path"]]], ids=["DaemonSet", "node-problem-detector"])
def test_only_a_certain_fault_of_the_node_counts(command: Sequence[str], node: Host) -> None:
    well = node.ask('exec "$@"', *command)
    assert well.returncode == 0, well.stderr
    node.shm("16m")  # a job may not start there, and the node is sound
    assert node.ask('exec "$@"', *command).returncode == 0
    node.do("mount -o remount,ro /tmp")
    sick = node.ask('exec "$@"', *command)
    assert sick.returncode == 1
    assert "/tmp cannot be written" in sick.stdout
    node.do("mount -o remount,rw /tmp")
    assert node.ask('exec "$@"', *command).returncode == 0


IN_A_POD = 'exec unshare --mount sh -c "$2; exec $1"'
CLOSED = "mount -t tmpfs -o ro none /tmp"


def test_node_problem_detector_in_a_pod_examines_the_node(node: Host) -> None:
    plugin = RULE["path"]
    assert node.ask('exec "$@"', "sh", "-c", f"{CLOSED}; exec {plugin}").returncode == 1
    node.do("umount /tmp")
    assert node.ask(IN_A_POD, plugin, CLOSED).returncode == 0, "the /tmp of the pod counts for nothing"
    node.do(CLOSED)
    sick = node.ask(IN_A_POD, plugin, "umount /tmp")
    assert (sick.returncode, "/tmp cannot be written" in sick.stdout) == (1, True)
    node.do("umount /tmp")
    alone = node.ask("KUBERNETES_SERVICE_HOST=10.96.0.1 exec $1", plugin)
    assert (alone.returncode, "needs hostPID: true" in alone.stdout) == (2, True)


def test_the_condition_of_the_node_is_written(node: Host) -> None:
    """By a program that stands for kubectl: it keeps what it was given."""
    node.do("mkdir -p /opt/pod")
    node.write("/opt/pod/kubectl", '#!/bin/sh\nfor word; do echo "$word"; done >/opt/pod/given\n', 0o755)

    def written(said: str = "") -> dict[str, Any]:
        if said:
            node.write(RULE["path"], said, 0o755)
        done = node.ask('PATH=/opt/pod:$PATH NODE=gpu-7 EVERY=0 exec "$@"', *WRITING["command"])
        assert done.returncode == 0, done.stderr
        *words, patch = node.ask("cat /opt/pod/given").stdout.split("\n", 6)
        assert words == ["patch", "node", "gpu-7", "--subresource=status", "--type=strategic", "-p"]
        (condition,) = json.loads(patch)["status"]["conditions"]
        assert condition["type"] == "ClusterDoctorFault"
        return dict(condition)

    assert (written()["status"], written()["reason"]) == ("False", "NoCertainFault")
    node.do("mount -o remount,ro /tmp")
    sick = written()
    assert (sick["status"], "/tmp cannot be written" in sick["message"]) == ("True", True)
    node.do("mount -o remount,rw /tmp")
    broken = written("#!/bin/sh\nexit 2\n")
    assert (broken["status"], broken["reason"]) == ("Unknown", "NotExamined")
    hostile = written(f"#!/bin/sh\ncat <<'END'\n{HOSTILE}\nEND\nexit 1\n")
    assert (hostile["status"], hostile["reason"]) == ("True", "CertainFault")


HOSTILE = """node: x", "status": "False"}, {"a": "$(touch /tmp/evil)` \\
second line \x1b[31m"""


def test_a_doctor_that_breaks_is_not_a_fault_of_the_node(node: Host) -> None:
    for code in (1, 70):  # a Python that cannot start ends with 1
        node.write("/opt/cluster-doctor/bin/doctor", f"#!/bin/sh\nexit {code}\n", 0o755)
        assert node.ask('exec "$@"', *PROBE).returncode == 0
        assert node.ask('exec "$@"', RULE["path"]).returncode == 2

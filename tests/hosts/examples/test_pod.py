"""The line of examples/kubernetes/pod.yaml in a container that was given no GPU."""

import json
import shlex
import sys

import pytest
import yaml

from tests.support.docks import Dock, dock, docks, engine
from tests.support.paths import ROOT

__all__ = ["dock", "docks", "engine"]
(FIRST,) = yaml.safe_load((ROOT / "examples/kubernetes/pod.yaml").read_text())["spec"]["initContainers"]
NOT_NAMED = ["doctor", "preflight", "--local", "--python", "/opt/train/bin/python", "--ranks-per-host", "8"]
UUIDS = ",".join(f"GPU-8f4c9a52-0b1e-4a4e-9f5f-0c4a7b1d2e3{n}" for n in range(8))
NONE, ASKED = "there is no GPU", "--ranks-per-host 8 is typed, and no host shows a device"


@pytest.mark.parametrize(
    ("line", "env", "code", "said", "expected"),
    [
        (FIRST["command"], "", 1, NONE, "8, one for each rank (--ranks-per-host)"),
        ([*NOT_NAMED, "--backend", "hccl"], "", 1, "there is no NPU", "8, one for each rank"),
        (NOT_NAMED, f"NVIDIA_VISIBLE_DEVICES={UUIDS}", 1, NONE, "8, for NVIDIA_VISIBLE_DEVICES"),
        (NOT_NAMED, "NVIDIA_VISIBLE_DEVICES=all", 3, "and no host shows a device", ""),
        (NOT_NAMED, "ASCEND_VISIBLE_DEVICES=0-7", 1, "there is no NPU", "8, for ASCEND_VISIBLE_DEVICES=0-7"),
        (NOT_NAMED, "", 3, ASKED, ""),
        ([*NOT_NAMED, "--backend", "gloo"], "NVIDIA_VISIBLE_DEVICES=all", 0, "", ""),
    ],
)
def test_a_pod_without_a_gpu(
    dock: Dock, line: list[str], env: str, code: int, said: str, expected: str
) -> None:
    pod = dock.engine.run("node1", "train", net="pod", shm="2g")
    ours = shlex.join([sys.executable, "-m", *line]).replace("/opt/train/bin/python", sys.executable)
    more = "--no-smoke --only '*-missing,shm-small' --json -"
    ended = pod.ask(f"cd {ROOT}; env {env} {ours} {more} 2>/dev/null; printf '\\n%s' $?")
    report, _, rc = ended.rpartition("\n")
    found = [
        each for each in json.loads(report)["findings"] if each["check"] in ("gpu-missing", "device-missing")
    ]
    assert int(rc) == code, ended
    assert [said in each["summary"] for each in found] == [True] * bool(said)
    assert all(expected in each["expected"] for each in found)

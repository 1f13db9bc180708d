"""Examples that a real tool can judge without running them."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from doctor.history.drain import Drained, lines_as
from doctor.history.envelope import Called, Machine
from tests.support.paths import ROOT


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_accepts_the_timer_and_its_service(tmp_path: Path) -> None:
    """The program is not installed here, so a copy names one that exists."""
    for unit in (ROOT / "examples/systemd").iterdir():
        (tmp_path / unit.name).write_text(
            unit.read_text().replace("/opt/cluster-doctor/bin/doctor", "/bin/true")
        )
    units = sorted(map(str, tmp_path.iterdir()))
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    ours = [line for line in done.stderr.splitlines() if "doctor-sweep" in line]
    assert (done.returncode, ours) == (0, [])


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_prometheus_tells_what_the_alert_rules_say() -> None:
    rules = ROOT / "examples/prometheus/alerts.test.yaml"
    done = subprocess.run(["promtool", "test", "rules", str(rules)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def kubectl(given: Any, *words: str) -> Any:
    """What kubectl makes of an object of its own types."""
    asked = ["kubectl", *words, "--local", "-f", "-", "-o", "json"]
    done = subprocess.run(asked, input=json.dumps(given), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def lost(given: Any, kept: Any, path: str = "") -> Iterator[str]:
    if isinstance(given, dict):
        for key, value in given.items():
            yield from lost(value, kept[key], f"{path}/{key}") if key in kept else [f"{path}/{key}"]
    elif isinstance(given, list):
        for number, (one, other) in enumerate(zip(given, kept, strict=True)):
            yield from lost(one, other, f"{path}/{number}")
    elif given != kept:
        yield path


with_kubectl = pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")


@with_kubectl
@pytest.mark.parametrize(
    ("path", "pod"),
    [
        ("kubernetes/node", "/spec/template/spec"),
        ("kubernetes/condition", "/spec/template/spec"),
        ("site/cronjob", "/spec/jobTemplate/spec/template/spec"),
    ],
)
def test_kubernetes_knows_every_field_of_the_daemon_sets_and_of_the_job(path: str, pod: str) -> None:
    """`set image` drops those that it does not know."""
    *_, made = yaml.safe_load_all((ROOT / f"examples/{path}.yaml").read_text())
    spec = made
    for key in pod.split("/")[1:]:
        spec = spec[key]
    spec["tolerationz"] = []
    kept = kubectl(made, "set", "image", "doctor=other")
    spec["containers"][0]["image"] = "other"
    assert [*lost(made, kept)] == [f"{pod}/tolerationz"]


@with_kubectl
def test_a_condition_that_is_patched_leaves_those_of_others() -> None:
    called = Called(faulty=True, since="2026-01-02T00:00:00Z", checks=("gpu-xid",))
    machine = Machine(name="n1", names=["n1"], called=called)
    (line,) = lines_as("kubernetes", Drained((machine,), (), ()))
    *_, patch = shlex.split(line)
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "ClusterDoctorFault", "status": "False"},
            ]
        },
    }
    found = kubectl(node, "patch", "--type=strategic", "-p", patch)["status"]["conditions"]
    assert {each["type"]: each["status"] for each in found} == {"Ready": "True", "ClusterDoctorFault": "True"}

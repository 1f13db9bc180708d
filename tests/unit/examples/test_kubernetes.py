"""The manifests of examples/kubernetes fit the schemas of their kinds, and run a command of ours."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from doctor.exam.pods import ON_NODES
from tests.support.captures import SAMPLES
from tests.support.cases import cases
from tests.support.paths import ROOT
from tests.support.schemas import misfits

FOLDER = ROOT / "examples" / "kubernetes"
ALL = {
    path.stem: manifest
    for path in sorted(FOLDER.glob("*.yaml"))
    for manifest in yaml.safe_load_all(path.read_text())
}
MANIFESTS = {name: manifest for name, manifest in ALL.items() if manifest["kind"] != "DaemonSet"}
"""Those of a job."""
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in (SAMPLES / "crd").glob("*.json")}
each_manifest = pytest.mark.parametrize("name", MANIFESTS)


def pods(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Role -> the pod's spec."""
    spec = manifest["spec"]
    roles = spec.get("pytorchReplicaSpecs") or spec.get("msReplicaSpecs")
    return {name: role["template"]["spec"] for name, role in roles.items()} if roles else {"Pod": spec}


def schema_of(kind: str) -> dict[str, Any]:
    """The schema of a kind; that of a pod is part of the schema of every job."""
    if kind != "Pod":
        (found,) = [each for each in SCHEMAS.values() if each["kind"] == kind]
        return dict(found)
    spec = SCHEMAS["pytorchjob"]["schema"]["properties"]["spec"]["properties"]["pytorchReplicaSpecs"]
    template = spec["additionalProperties"]["properties"]["template"]["properties"]
    text = {"type": "string"}
    properties = {"apiVersion": text, "kind": text, "metadata": {"type": "object"}, "spec": template["spec"]}
    return {"group": "", "version": "v1", "schema": {"type": "object", "properties": properties}}


@each_manifest
def test_it_fits_its_schema(name: str) -> None:
    manifest = MANIFESTS[name]
    schema = schema_of(manifest["kind"])
    group = f"{schema['group']}/{schema['version']}".lstrip("/")
    assert manifest["apiVersion"] == group
    assert list(misfits(manifest, schema["schema"])) == []


@pytest.mark.parametrize("name", ["node", "daemonset"])
def test_pods_of_a_daemon_set_lead_into_their_node(name: str) -> None:
    spec = ALL[name]["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    (label,) = spec["selector"]["matchLabels"].items()
    assert "=".join(label) == ON_NODES
    (container,) = spec["template"]["spec"]["containers"]
    assert "limits" not in container["resources"], "they would be taken for limits of the node"
    assert (spec["template"]["spec"]["hostPID"], container["securityContext"]["privileged"]) == (True, True)


def test_the_probe_of_a_node_enters_it() -> None:
    (container,) = ALL["node"]["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["exec"]["command"][0] == "nsenter"


@each_manifest
@cases
def test_a_misspelled_manifest_is_refused(name: str, old: str, new: str, says: str) -> None:
    text = (FOLDER / f"{name}.yaml").read_text()
    assert old in text
    manifest = yaml.safe_load(text.replace(old, new))
    assert any(says in each for each in misfits(manifest, schema_of(manifest["kind"])["schema"]))


@each_manifest
def test_the_examination_sees_what_the_trainer_will(name: str) -> None:
    examined = 0
    for role, pod in pods(MANIFESTS[name]).items():
        assert [each["name"] for each in pod["containers"]] == [
            {"Pod": "trainer", "PyTorchJob": "pytorch", "MSJob": "mindspore"}[MANIFESTS[name]["kind"]]
        ]
        if role == "Scheduler":
            assert "initContainers" not in pod, "it trains nothing"
            continue
        (trainer,) = pod["containers"]
        (first,) = pod.get("initContainers", [trainer])
        assert first["command"][0] == "doctor"
        for same in ("image", "resources", "volumeMounts"):
            assert first[same] == trainer[same]
        assert {"name": "shm", "mountPath": "/dev/shm"} in trainer["volumeMounts"]
        (shm,) = [each["emptyDir"] for each in pod["volumes"] if each["name"] == "shm"]
        assert shm["medium"] == "Memory"
        examined += 1
    assert examined

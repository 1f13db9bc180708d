"""The manifests of examples/kubernetes run a valid command."""

import contextlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from doctor import cli
from tests.support.paths import ROOT

FOLDER = ROOT / "examples" / "kubernetes"
MANIFESTS = {
    path.stem: manifest
    for path in sorted(FOLDER.glob("*.yaml"))
    for manifest in yaml.safe_load_all(path.read_text())
}
FIRST = [name for name, manifest in MANIFESTS.items() if "initContainers" in str(manifest)]
"""Those with a container that runs first; tests/unit/examples looks at the others."""


def pods(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Role -> the pod's spec."""
    spec = manifest["spec"]
    roles = spec.get("pytorchReplicaSpecs") or spec.get("msReplicaSpecs")
    return {name: role["template"]["spec"] for name, role in roles.items()} if roles else {"Pod": spec}


@pytest.mark.parametrize("name", FIRST)
def test_what_it_runs_is_a_command_of_ours(name: str, tmp_path: Path) -> None:
    """Only a part of the command runs: whether this machine suits eight ranks is not examined here."""
    commands = {
        tuple(each["command"])
        for pod in pods(MANIFESTS[name]).values()
        for each in pod.get("initContainers", ())
    }
    (command,) = commands
    program, *words = command
    assert (program, words[1]) == ("doctor", "--local")
    report = tmp_path / "report.json"
    more = ["--only", "kernel-not-smp,clock-skew", *(["--no-smoke"] if words[0] == "preflight" else [])]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = cli.run([*words, *more, "--json", str(report)])
    plan = json.loads(report.read_bytes())["plan"]
    assert (code in (0, 1, 3), plan["ranks"]) == (True, 8)

"""The DaemonSet that writes a condition, with the real kubectl: what it sends, and what its role allows."""

import json
import os
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from tests.support.kubernetes import StandIn
from tests.support.paths import ROOT

ACCOUNT, ROLE, _, DAEMON_SET = yaml.safe_load_all((ROOT / "examples/kubernetes/condition.yaml").read_text())
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-7"}}
KINDS: list[dict[str, Any]] = [
    {"name": name, "namespaced": False, "kind": "Node", "verbs": []} for name in ("nodes", "nodes/status")
]
KNOWN = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": KINDS},
    "/version": {"major": "1", "minor": "32"},
}
"""What everybody may read."""


class ApiServer(BaseHTTPRequestHandler):
    """It knows one node, and allows what the role does."""

    done: ClassVar[list[tuple[str, str, str, Any]]]

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self._answer(200, KNOWN[path]) if path in KNOWN else self._of_the_node("get", path)

    def do_PATCH(self) -> None:
        self._of_the_node("patch", self.path.partition("?")[0])

    def _of_the_node(self, verb: str, path: str) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
        self.done.append((verb, path, self.headers.get("Content-Type", ""), body))
        resource = path.removeprefix("/api/v1/").replace("/gpu-7", "")
        allowed = any(verb in rule["verbs"] and resource in rule["resources"] for rule in ROLE["rules"])
        said = {
            "kind": "Status",
            "status": "Failure",
            "reason": "Forbidden",
            "message": "forbidden",
            "code": 403,
        }
        self._answer(200, NODE) if allowed else self._answer(403, said)

    def _answer(self, code: int, said: Any) -> None:
        data = json.dumps(said).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")
@pytest.mark.parametrize(
    ("said", "code", "status", "reason", "message"),
    [
        ("node: /tmp cannot be written", 1, "True", "CertainFault", "node: /tmp cannot be written"),
        ("node is healthy", 0, "False", "NoCertainFault", "node is healthy"),
        ("it broke", 2, "Unknown", "NotExamined", "it broke"),
        ('x", "status": "False"}, {"a": "$(id)', 1, "True", "CertainFault", "x, status: False, a: (id)"),
    ],
)
def test_the_role_allows_what_kubectl_does_to_write_the_condition(
    tmp_path: Path, said: str, code: int, status: str, reason: str, message: str
) -> None:
    nsenter = tmp_path / "nsenter"
    nsenter.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\nexit {code}\n")
    nsenter.chmod(0o755)
    (container,) = DAEMON_SET["spec"]["template"]["spec"]["containers"]

    class Server(ApiServer):
        done: ClassVar[list[tuple[str, str, str, Any]]] = []

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as http:
        threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
        config = StandIn([], port=http.server_address[1]).config(tmp_path)
        own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "KUBECONFIG": str(config)}
        ran = subprocess.run(
            container["command"], env={**own, "NODE": "gpu-7", "EVERY": "0"}, capture_output=True, text=True
        )
        http.shutdown()
    assert (ran.returncode, ran.stderr) == (0, "")
    *_, (verb, path, kind, body) = Server.done
    assert (verb, path) == ("patch", "/api/v1/nodes/gpu-7/status")
    assert kind == "application/strategic-merge-patch+json"
    (condition,) = body["status"]["conditions"]
    assert condition.pop("lastHeartbeatTime") == condition.pop("lastTransitionTime")
    wanted = {"type": "ClusterDoctorFault", "status": status, "reason": reason, "message": message}
    assert {**condition, "message": condition["message"].strip()} == wanted
    assert body == {"status": {"conditions": [body["status"]["conditions"][0]]}}


def test_the_role_is_that_of_the_pod() -> None:
    _, _, binding, _ = yaml.safe_load_all((ROOT / "examples/kubernetes/condition.yaml").read_text())
    account = {key: ACCOUNT["metadata"][key] for key in ("name", "namespace")}
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account}]
    assert binding["roleRef"]["name"] == ROLE["metadata"]["name"]
    spec = DAEMON_SET["spec"]["template"]["spec"]
    assert (spec["serviceAccountName"], DAEMON_SET["metadata"]["namespace"]) == tuple(account.values())

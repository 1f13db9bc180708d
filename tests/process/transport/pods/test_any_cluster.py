"""What holds of any cluster: `make test-kubernetes` asks that of KUBECONFIG; without it a stand-in answers.

CLUSTER_DOCTOR_PODS selects two running pods or more there, with sh: `app=train`.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from doctor.exam.pods import pods_of
from doctor.exam.request import HostFlags, Request
from doctor.model import Answer
from doctor.transport import Line, Script
from doctor.transport.pods.transport import PodTransport
from tests.support.commands import DOCTOR
from tests.support.kubernetes import StandIn, pod, stand_in

pytest.importorskip("kubernetes")
PODS = os.environ.get("CLUSTER_DOCTOR_PODS", "")
NAMESPACE = os.environ.get("CLUSTER_DOCTOR_NAMESPACE")
SELECTOR = PODS or "app=train"
ASK = ["--pods", SELECTOR, *(("-n", NAMESPACE) if NAMESPACE else ())]


@pytest.fixture(autouse=True)
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if PODS:
        yield
        return
    listed = [pod(f"train-{n}", {"app": "train"}, owner=("StatefulSet", "train")) for n in range(2)]
    with stand_in(StandIn(listed)) as server:
        file = str(server.config(tmp_path))
        monkeypatch.setenv("KUBECONFIG", file)
        monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", file)
        monkeypatch.setattr("kubernetes.config.KUBE_CONFIG_DEFAULT_LOCATION", file)
        yield


@pytest.fixture
def way() -> Iterator[PodTransport]:
    targets = pods_of(Request("check", HostFlags(pods=SELECTOR, namespace=NAMESPACE)))
    assert targets.way is not None
    assert len(targets.hosts) > 1, "two pods or more are needed"
    found = targets.way(targets.hosts, 64)
    assert isinstance(found, PodTransport)
    yield found
    found.close()


def names() -> Sequence[str]:
    return [
        host.name for host in pods_of(Request("check", HostFlags(pods=SELECTOR, namespace=NAMESPACE))).hosts
    ]


def test_each_pod_answers(way: PodTransport) -> None:
    ask = Script("exec sh -c 'echo out; echo err >&2; read -r word; echo $word; exit 3'", b"in\n", b"")
    found = {each.host: each for each in way.run(dict.fromkeys(names(), ask), 30)}
    assert sorted(found) == sorted(names())
    for each in found.values():
        assert isinstance(each, Answer), each
        assert (each.stdout, each.stderr, each.rc) == (b"out\nin\n", b"err\n", 3)


def test_much_goes_both_ways(way: PodTransport) -> None:
    first = names()[0]
    session = way.open({first: Script("exec cat", b"", b"")})
    session.send(first, b"x" * 300_000)
    assert session.receive(30) == Line(first, b"x" * 300_000)
    session.close()
    (got,) = way.run({first: Script("exec head -c 3000000 /dev/zero", b"", b"")}, 60)
    assert isinstance(got, Answer)
    assert got.stdout == bytes(3_000_000)


def test_what_was_started_ends_with_its_session(way: PodTransport) -> None:
    mark = f"mark-{time.monotonic_ns()}"
    look = Script(f"exec sh -c 'grep -lsa {mark[:-1]}[{mark[-1]}] /proc/[0-9]*/cmdline; :'", b"", b"")

    def left() -> list[bool]:
        return [
            not isinstance(each, Answer) or each.stdout != b""
            for each in way.run(dict.fromkeys(names(), look), 30)
        ]

    session = way.open(dict.fromkeys(names(), Script(f"exec sh -c 'echo up; cat; :' {mark}", b"", b"")))
    for _ in names():
        assert isinstance(session.receive(30), Line)
    assert all(left())
    session.close()
    until = time.monotonic() + 20
    while any(left()):
        assert time.monotonic() < until, "a program runs on in a pod"
        time.sleep(0.5)


def test_an_examination() -> None:
    ask = [*DOCTOR, "check", *ASK, "--mesh", "none", "--json", "-"]
    done = subprocess.run(ask, capture_output=True, text=True)
    assert done.returncode in (0, 1, 3), done.stderr
    said = json.loads(done.stdout)
    assert [each["name"] for each in said["hosts"]] == names()
    assert "unexamined" not in {each["status"] for each in said["hosts"]}


@pytest.mark.skipif(not PODS or not shutil.which("kubectl"), reason="only with a cluster, and kubectl")
def test_kubectl_enters_the_same_pods() -> None:
    entry = " ".join(["kubectl", "exec", "-i", *(("-n", NAMESPACE) if NAMESPACE else ()), "{host}", "--"])
    ask = [*DOCTOR, "check", *names(), "--enter", entry, "--mesh", "none", "--json", "-"]
    done = subprocess.run(ask, capture_output=True, text=True)
    assert done.returncode in (0, 1, 3), done.stderr
    assert "unexamined" not in {each["status"] for each in json.loads(done.stdout)["hosts"]}

"""Pods by the real client package, over a stand-in for the API server whose pods are shells here."""

import base64
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor.errors import UsageError
from doctor.exam.pods import pods_of
from doctor.exam.request import HostFlags, Request, WayFlags
from doctor.model import Answer, UnreachedHost, UnreachedKind
from doctor.transport import Line, Script, SessionEnd
from doctor.transport.pods.transport import PodTransport
from tests.support.cases import cases
from tests.support.commands import DOCTOR
from tests.support.kubernetes import TOKEN, V4, V5, StandIn, by_tls, pod, stand_in
from tests.support.paths import ROOT

pytest.importorskip("kubernetes")
JOB = {"app": "train"}
ECHO = Script("exec sh -c 'echo hi; echo oops >&2; read -r more; exit 3'", b"go\n", b"")


@pytest.fixture(params=["plain"])
def cluster(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StandIn]:
    pods = [pod(f"train-{n}", JOB, owner=("StatefulSet", "train"), node=f"gpu0{n}") for n in (1, 0)]
    with stand_in(StandIn(pods)) as server, contextlib.ExitStack() as stack:
        if request.param == "tls":
            stack.enter_context(by_tls(server, tmp_path))
        use(server, tmp_path, monkeypatch)
        yield server


def use(server: StandIn, folder: Path, monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
    file = str(server.config(folder, **more))
    monkeypatch.setenv("KUBECONFIG", file)
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", file)
    monkeypatch.setattr("kubernetes.config.KUBE_CONFIG_DEFAULT_LOCATION", file)


def transport(flags: WayFlags = WayFlags()) -> PodTransport:  # noqa: B008
    targets = pods_of(Request("check", HostFlags(pods="app=train"), way=flags))
    assert targets.way is not None
    way = targets.way(targets.hosts, flags.fanout)
    assert isinstance(way, PodTransport)
    return way


@pytest.mark.parametrize("cluster", ["plain", "tls"], indirect=True)
@pytest.mark.parametrize("speaks", [(V5, V4), (V4,)], ids=["v5", "v4"])
def test_a_command_in_each_pod(cluster: StandIn, speaks: tuple[str, ...]) -> None:
    cluster.speaks = speaks
    way = transport()
    found = {each.host: each for each in way.run(dict.fromkeys(("train-0", "train-1"), ECHO), 20)}
    for each in found.values():
        assert isinstance(each, Answer)
        assert (each.stdout, each.stderr) == (b"hi\n", b"oops\n")
        assert each.rc == 3
    way.close()
    assert [each.split()[:2] for each in cluster.asked] == [["list", "team"], *[["exec", "team"]] * 2]


@pytest.mark.parametrize("cluster", ["plain", "tls"], indirect=True)
@pytest.mark.parametrize("speaks", [(V5, V4), (V4,)], ids=["v5", "v4"])
def test_a_session_speaks_in_lines_and_leaves_nothing(cluster: StandIn, speaks: tuple[str, ...]) -> None:
    cluster.speaks = speaks
    way = transport()
    session = way.open({"train-0": Script("exec cat", b"first\n", b"")})
    assert session.receive(10) == Line("train-0", b"first")
    session.send("train-0", b"x" * 300_000)
    assert session.receive(10) == Line("train-0", b"x" * 300_000)
    session.close()
    way.close()
    gone(cluster)


def gone(cluster: StandIn) -> None:
    until = time.monotonic() + 10
    while cluster.sessions and time.monotonic() < until:
        time.sleep(0.02)
    assert not cluster.sessions


@pytest.mark.parametrize("cluster", ["plain", "tls"], indirect=True)
def with_user(cluster: StandIn, folder: Path, **user: object) -> dict[str, str]:
    """The environment of a program with a kubeconfig that logs in like this."""
    file = cluster.config(folder)
    config = json.loads(file.read_text())
    config["users"][0]["user"] = user
    file.write_text(json.dumps(config))
    return {**os.environ, "KUBECONFIG": str(file)}


@pytest.mark.parametrize("cluster", ["tls"], indirect=True)
def test_keys_of_the_kubeconfig_are_on_no_disk(cluster: StandIn, tmp_path: Path) -> None:
    assert cluster.authority is not None
    key = base64.b64encode(cluster.authority.with_suffix(".key").read_bytes()).decode()
    crt = base64.b64encode(cluster.authority.read_bytes()).decode()
    data = {"client-certificate-data": crt, "client-key-data": key, "token": TOKEN}
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = {**with_user(cluster, tmp_path, **data), "TMPDIR": str(temporary)}
    ask = [*DOCTOR, "check", "--pods", "app=train", "--mesh", "none"]
    with subprocess.Popen(ask, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env) as running:
        until = time.monotonic() + 30
        while not cluster.sessions and running.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        assert cluster.sessions, "the pods were entered with them"
        running.kill()
    assert not [*temporary.iterdir()]
    gone(cluster)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("sh", "process returned 1. log in first, token=[hidden]"),
        ("none-such", "failed: [Errno 2] No such file or directory: 'none-such'."),
    ],
)
def test_a_credential_plugin_that_fails(command: str, says: str, cluster: StandIn, tmp_path: Path) -> None:
    words = ["-c", f"echo log in first, token={TOKEN} >&2; exit 1"]
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": command, "args": words}
    env = with_user(cluster, tmp_path, exec=plugin)
    ask = [*DOCTOR, "check", "--pods", "app=train"]
    done = subprocess.run(ask, capture_output=True, text=True, env=env)
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())
    assert TOKEN not in done.stderr


@pytest.mark.usefixtures("cluster")
def test_much_output_arrives_whole() -> None:
    (got,) = transport().run({"train-0": Script("exec head -c 5000000 /dev/zero", b"", b"")}, 20)
    assert isinstance(got, Answer)
    assert got.stdout == bytes(5_000_000)


@pytest.mark.usefixtures("cluster")
def test_a_program_that_ends_by_itself() -> None:
    session = transport().open({"train-0": Script("exec sh -c 'echo bye; exit 4'", b"", b"")})
    assert session.receive(10) == Line("train-0", b"bye")
    end = session.receive(10)
    assert isinstance(end, SessionEnd)
    assert (end.rc, end.unreached) == (4, None)
    session.close()


def test_a_cluster_that_breaks_off(cluster: StandIn) -> None:
    session = transport().open({"train-0": Script("exec cat", b"a\n", b"")})
    assert session.receive(10) == Line("train-0", b"a")
    cluster.cut()
    end = session.receive(10)
    assert isinstance(end, SessionEnd)
    assert end.unreached is not None
    assert end.unreached.kind is UnreachedKind.LOST
    session.close()


def test_a_pod_that_does_not_run_is_not_asked(cluster: StandIn) -> None:
    crashes = [{"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    cluster.pods[0]["status"] = {"phase": "Running", "containerStatuses": crashes}
    found = {each.host: each for each in transport().run(dict.fromkeys(("train-0", "train-1"), ECHO), 20)}
    assert isinstance(found["train-0"], Answer)
    why = found["train-1"]
    assert isinstance(why, UnreachedHost)
    assert why.commands == ("kubectl -n team logs train-1 --all-containers --previous",)


@pytest.mark.parametrize("seconds", [1.0, 30.0])
def test_a_pod_that_is_silent_delays_no_other(cluster: StandIn, seconds: float) -> None:
    cluster.silent = "train-0"
    way = transport(WayFlags(connect_timeout=seconds, timeout=10 if seconds == 1 else 2, fanout=1))
    found = {each.host: each for each in way.run(dict.fromkeys(("train-0", "train-1"), ECHO), 10)}
    assert isinstance(found["train-1"], Answer)
    why = found["train-0"]
    assert isinstance(why, UnreachedHost)
    assert why.summary == "The pod was not entered: nothing has answered from the pod in time."


def test_a_pod_that_is_being_entered(cluster: StandIn) -> None:
    cluster.silent = "train-0"
    (why,) = transport().run({"train-0": ECHO}, 1)
    assert isinstance(why, UnreachedHost)
    assert "the pod was being entered" in why.summary + why.detail


def test_pages_of_a_long_list(cluster: StandIn) -> None:
    cluster.pods[:] = [pod(f"train-{n}", JOB) for n in range(25)]
    cluster.page = 10
    targets = pods_of(Request("check", HostFlags(pods="app=train")))
    assert [host.name for host in targets.hosts] == [f"train-{n}" for n in range(25)]


@cases
def test_the_cluster_refuses(
    cluster: StandIn, kind: str, code: int, message: str, says: str, types: str
) -> None:
    if kind == "exec":
        way = transport()
        cluster.says[kind] = (code, message)
        (why,) = way.run({"train-0": ECHO}, 20)
        assert isinstance(why, UnreachedHost)
        said, typed = why.summary, " ".join(why.commands)
    else:
        cluster.says[kind] = (code, message)
        said = typed = refusal()
    assert says in said
    assert types in typed
    assert TOKEN not in said + typed


def refusal() -> str:
    """Why pods are not listed."""
    with pytest.raises(UsageError) as error:
        transport()
    return f"{error.value.message} {error.value.hint}"


def test_several_kubeconfigs_in_a_pod(
    cluster: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(cluster, tmp_path, monkeypatch)
    files = f"{tmp_path}/none{os.pathsep}{os.environ['KUBECONFIG']}"
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", files)
    monkeypatch.setattr("kubernetes.config.KUBE_CONFIG_DEFAULT_LOCATION", files)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    transport()
    assert cluster.asked[0].startswith("list team ")


def test_a_token_that_has_expired(cluster: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(cluster, tmp_path, monkeypatch, token="old-4712")
    said = refusal()
    assert "its token has expired" in said
    assert "old-4712" not in said


def test_an_api_server_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = StandIn([])
    with stand_in(server):
        use(server, tmp_path, monkeypatch)
    said = refusal()
    assert "the cluster's API server cannot be reached" in said
    assert "kubectl -n team config current-context" in said


@cases
@pytest.mark.usefixtures("cluster")
def test_options_that_cannot_be_meant(options: str, says: str) -> None:
    done = subprocess.run([*DOCTOR, "check", *options.split("|")], capture_output=True, text=True)
    assert done.returncode == 2, done.stdout
    assert says in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "text", ["", "{", f"users: [{{name: u, user: {{tokken: {TOKEN}}}}}]", f"{TOKEN}: [\n"]
)
def test_a_broken_kubeconfig_is_not_quoted(
    text: str, cluster: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(cluster, tmp_path, monkeypatch)
    Path(os.environ["KUBECONFIG"]).write_text(text)
    said = refusal()
    assert "which cluster is not known" in said
    assert TOKEN not in said


def test_the_whole_way_of_a_check(cluster: StandIn, tmp_path: Path) -> None:
    cluster.pods.append(pod("train-5", {**JOB, "replica-type": "ps"}, owner=("StatefulSet", "train")))
    kept = tmp_path / "run.json"
    ask = [*DOCTOR, "check", "--pods", "app=train", "--mesh", "none", "--json", "-", "--save", str(kept)]
    done = subprocess.run(ask, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    said = json.loads(done.stdout)
    assert said["run"]["transport"] == "pods"
    assert [(each["name"], each["node"]) for each in said["hosts"]] == [
        ("train-0", "gpu00"),
        ("train-1", "gpu01"),
    ]
    assert {each["status"] for each in said["hosts"]} != {"unexamined"}
    assert TOKEN not in done.stdout + done.stderr
    assert TOKEN.encode() not in kept.read_bytes()
    again = subprocess.run([*DOCTOR, "check", "--replay", str(kept)], capture_output=True, text=True)
    assert again.returncode == done.returncode
    assert "train-5 trains nothing: not examined." in again.stdout


def node(name: str, **labels: str) -> dict[str, object]:
    return {"metadata": {"name": name, "labels": labels}}


NSENTER = """#!/bin/sh
case "$*" in '-t 1 -m -u -i -n -p -- '*) shift 8 && exec "$@" ;; esac
exit 1
"""


@pytest.fixture
def nodes(cluster: StandIn, tmp_path: Path) -> StandIn:
    """Three nodes, one of which has no pod to enter it by. Their nsenter only knows its options."""
    tool = tmp_path / "tools" / "nsenter"
    tool.parent.mkdir()
    tool.write_text(NSENTER)
    tool.chmod(0o755)
    cluster.enter = lambda _: ["env", f"PATH={tool.parent}:{os.environ['PATH']}"]
    cluster.nodes = [node(f"gpu0{n}", pool="h100") for n in range(3)] + [node("cpu0", pool="none")]
    doors = [pod(f"doctor-node-x{n}", {"app": "doctor-node"}, node=f"gpu0{n}") for n in range(2)]
    cluster.pods += doors
    return cluster


def on_nodes(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*DOCTOR, "check", *words, "--mesh", "none"], capture_output=True, text=True)


def test_nodes_through_the_pods_of_a_daemon_set(nodes: StandIn, tmp_path: Path) -> None:
    kept = tmp_path / "run.json"
    only = ("--only", "host-unreachable")
    done = on_nodes("--on-nodes", "pool=h100", *only, "--json", "-", "--save", str(kept))
    assert done.returncode == 1, done.stderr
    said = json.loads(done.stdout)
    assert [(each["name"], each["status"]) for each in said["hosts"]][2] == ("gpu02", "unexamined")
    assert "unexamined" not in [each["status"] for each in said["hosts"][:2]]
    (found,) = said["findings"]
    assert (found["check"], found["hosts"]) == ("host-unreachable", ["gpu02"])
    assert "No pod with the label app=doctor-node runs on it" in found["headline"]
    entered = [each for each in nodes.asked if each.startswith("exec")]
    assert {each.split("/pods/")[1].split("/")[0] for each in entered} == {"doctor-node-x0", "doctor-node-x1"}
    assert all("command=exec+nsenter+-t+1+" in each.replace("%20", "+") for each in entered)
    ask = [*DOCTOR, "facts", "--replay", str(kept)]
    told = subprocess.run(ask, capture_output=True, text=True).stdout
    assert "the API server" in told
    assert "in a container" not in told


def test_a_node_is_checked_again_by_what_is_printed(nodes: StandIn) -> None:
    done = on_nodes("--on-nodes", "node/gpu[00-02]", "--only", "host-unreachable", "--json", "-")
    (found,) = json.loads(done.stdout)["findings"]
    verify = [*DOCTOR, *shlex.split(found["verify"])[1:]]
    assert "--on-nodes" in verify
    assert subprocess.run(verify, capture_output=True).returncode == 1
    nodes.pods.append(pod("doctor-node-x2", {"app": "doctor-node"}, node="gpu02"))
    assert subprocess.run(verify, capture_output=True).returncode == 0


@cases
def test_nodes_that_cannot_be_meant(nodes: StandIn, says: str, words: str, refusal_: str) -> None:
    if refusal_:
        nodes.says["nodes"] = (403, refusal_)
    done = on_nodes(*words.split("|"))
    assert done.returncode == 2, done.stdout
    assert says in " ".join(done.stderr.split())


@pytest.mark.usefixtures("nodes")
def test_nodes_without_the_package(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDES)
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    ask = [*DOCTOR, "check", "--on-nodes", "node/gpu00"]
    done = subprocess.run(ask, capture_output=True, text=True, env=env)
    assert done.returncode == 2
    assert "--on-nodes needs the package kubernetes." in done.stderr


def made_from(cluster: StandIn, *images: str) -> None:
    for each, image in zip(cluster.pods, images, strict=True):
        (main,) = each["status"]["containerStatuses"]
        main["imageID"] = f"docker.io/library/train@sha256:{image * 64}"


def images_by(ask: list[str], env: dict[str, str] | None = None) -> dict[str, str]:
    """What is said of images: the hosts and what was found."""
    ask = [*DOCTOR, *ask, "--only", "digest-differs", "--json", "-"]
    done = subprocess.run(ask, capture_output=True, text=True, env=env)
    found = json.loads(done.stdout)["findings"]
    assert done.returncode == 0, done.stdout
    return {",".join(each["hosts"]): each["actual"] for each in found}


def test_a_pod_of_another_image(cluster: StandIn) -> None:
    cluster.pods.append(pod("train-2", JOB, owner=("StatefulSet", "train")))
    made_from(cluster, "1", "2", "1")
    assert images_by(["check", "--pods", "app=train"]) == {"train-0": "2" * 12}
    made_from(cluster, "1", "1", "1")
    assert images_by(["check", "--pods", "app=train"]) == {}
    made_from(cluster, "1", "2", "1")
    for each in cluster.pods:
        head = each["metadata"]["name"] == "train-0"
        each["spec"]["containers"][0]["image"] = "train:2-cpu" if head else "train:2"
    assert images_by(["check", "--pods", "app=train"]) == {}, "it is meant to have another one"


def test_images_by_kubectl(tmp_path: Path) -> None:
    """The real shell reads the command; `get` knows no options of `exec`."""
    tool = tmp_path / "kubectl"
    tool.write_text(GETS)
    tool.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for entry in ("kubectl exec -n team -i {host} -c main --", "kubectl -n team exec {host} --stdin --"):
        ask = ["check", "train-[0-2]", "--enter", entry, "--mesh", "none"]
        assert images_by(ask, env) == {"train-1": "2" * 12}


@pytest.mark.parametrize("after", [0.1, 0.6, 1.2])
def test_a_killed_doctor_leaves_nothing_in_pods(cluster: StandIn, after: float) -> None:
    ask = [*DOCTOR, "check", "--pods", "app=train"]
    with subprocess.Popen(ask, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        until = time.monotonic() + 30
        while not cluster.sessions and running.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(after)
        running.send_signal(signal.SIGKILL)
    gone(cluster)


KUBECTL = """#!/bin/sh
echo "$*" >>{log}
case " $* " in
*' get pods '*) cat {pods} ;;
*' exec '*) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
esac
"""


GETS = """#!/bin/sh
case " $* " in
*" exec "*) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
*" -c "* | *" -i "* | *--stdin*) exit 1 ;;
*'[*].image} '*'[*].imageID'* | *'[?(@.name=="main")].image} '*'[?(@.name=="main")].imageID'*) ;;
*) exit 1 ;;
esac
case " $* " in *" -n team "*) ;; *) exit 1 ;; esac
case " $* " in *" train-1 "*) n=2 ;; *) n=1 ;; esac
printf 'train:1 docker.io/library/train@sha256:%064d' 0 | tr 0 $n
"""


HIDES = """
import sys, types
sys.modules["kubernetes"] = types.ModuleType("kubernetes")  # as a folder of manifests is
"""


@pytest.mark.usefixtures("cluster")
def test_a_package_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubernetes.__version__", "29.0.0")
    assert "the package kubernetes 29.0.0 is too old" in refusal()


def test_kubectl_where_the_package_is_missing(cluster: StandIn, tmp_path: Path) -> None:
    absent = tmp_path / "python"
    absent.mkdir()
    (absent / "sitecustomize.py").write_text(HIDES)
    tool, pods, log = tmp_path / "kubectl", tmp_path / "pods.json", tmp_path / "log"
    pods.write_text(json.dumps({"items": cluster.pods}))
    tool.write_text(KUBECTL.format(log=log, pods=pods))
    tool.chmod(0o755)
    env = {**os.environ, "PYTHONPATH": f"{absent}:{ROOT}", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ask = [*DOCTOR, "check", "--pods", "app=train", "-n", "team", "--only", "shm-small", "--json", "-"]
    done = subprocess.run(ask, capture_output=True, text=True, env=env)
    assert done.returncode in (0, 1), done.stderr
    assert [each["status"] for each in json.loads(done.stdout)["hosts"]] != ["unexamined"] * 2
    asked = log.read_text().splitlines()
    assert asked[0] == "-n team get pods -o json -l app=train"
    assert "exec -i -n team -c main train-0 -- sh -s" in asked
    assert not cluster.asked
    env["PATH"] = str(absent)
    done = subprocess.run(ask, capture_output=True, text=True, env=env)
    assert done.returncode == 2
    assert "--pods needs the package kubernetes, or kubectl" in done.stderr


MEASURE = """
import sys
from doctor.errors import UsageError
from doctor.exam.pods import pods_of
from doctor.exam.request import HostFlags, Request
from doctor.transport import Line, Script

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

targets = pods_of(Request("check", HostFlags(pods="app=train")))
way = targets.way(targets.hosts, 64)
names = [host.name for host in targets.hosts]
few = way.open({name: Script("exec cat", b"a\\n", b"") for name in names[:8]})
for _ in range(8):
    assert isinstance(few.receive(60), Line)
before = resident()
many = way.open({name: Script("exec cat", b"a\\n", b"") for name in names[8:]})
for _ in names[8:]:
    assert isinstance(many.receive(60), Line)
print((resident() - before) / len(names[8:]) / 1e6)
"""


@pytest.mark.parametrize("cluster", ["plain", "tls"], indirect=True)
@pytest.mark.slow
def test_memory_of_a_pod_is_small(cluster: StandIn) -> None:
    cluster.pods[:] = [pod(f"train-{n}", JOB) for n in range(8 + 256)]
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1, f"{done.stdout} MB a pod"
    gone(cluster)

"""A whole mesh run: real agents on loopback addresses, and scripted hosts for what is hard to provoke."""

import re
import shlex
import shutil
import socket
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import psutil
import pytest

from doctor.mesh import MeshPlan, MeshResult, culprits, plan_mesh
from doctor.mesh.run import MeshPatience, mesh_script, run_mesh
from doctor.model import UnreachedHost, UnreachedKind
from doctor.stage import Stage
from doctor.transport import Line, Script, SessionEnd
from doctor.transport.local import LocalTransport
from tests.support.cases import cases, from_cases
from tests.support.mesh_session import LocalSession

QUICK = MeshPatience(start=8, connect=0.3, answer=0.3, again=0.3, answer_again=0.3, slack=3)


def free_port() -> int:
    with socket.create_server(("0.0.0.0", 0)) as sock:
        return int(sock.getsockname()[1])


def cluster(count: int, **options: int) -> MeshPlan:
    ports = {"master_port": free_port(), **options}
    return plan_mesh({f"n{i}": f"127.0.0.{i + 2}" for i in range(count)}, head="n0", **ports)  # type: ignore[arg-type]


def opened(plan: MeshPlan, **special: Script) -> LocalSession:
    return LocalSession({node.host: special.get(node.host, mesh_script()) for node in plan.nodes})


def outcomes(result: MeshResult) -> set[str]:
    return {link.outcome for link in result.links}


def test_healthy_cluster() -> None:
    plan = cluster(4, hccl_port=free_port())
    session = opened(plan)
    said: list[Stage] = []
    result = run_mesh(session, plan, progress=said.append)
    assert outcomes(result) == {"ok"}
    assert len(result.links) == 4 * 3 * 2 + 3
    assert {listener.kind for listener in result.listeners} == {"master", "hccl", "ephemeral"}
    assert (result.troubles, culprits(result.links)) == ((), ())
    assert said[0].doing == "0/27 connections between 4 hosts"
    what = "connections between 4 hosts"
    assert said[-1] == Stage("network", f"27/27 {what}", 27, 27, 100, what)
    assert [stage.done for stage in said] == sorted({stage.done for stage in said})
    assert (said[0].waiting, said[-1].waiting) == ([f"n{n}" for n in range(4)], [])
    assert session.closed
    assert all(process.returncode == 0 for process in session.processes.values())
    assert msgspec.json.decode(msgspec.json.encode(result), type=MeshResult) == result


def test_a_master_port_in_use_is_not_a_target() -> None:
    plan = cluster(3)
    with socket.create_server(("127.0.0.2", plan.master_port or 0)) as job:
        result = run_mesh(opened(plan), plan)
        job.settimeout(0.1)
        with pytest.raises(TimeoutError):
            job.accept()
    (master,) = [x for x in result.listeners if x.kind == "master"]
    assert (master.host, master.error, master.port) == ("n0", "in-use", None)
    assert {link.kind for link in result.links} == {"ephemeral"}
    assert outcomes(result) == {"ok"}


def test_a_data_address_of_no_host_is_untested_not_unreachable() -> None:
    plan = plan_mesh({"a": "127.0.0.2", "b": "127.0.0.3", "c": "192.0.2.1"})
    result = run_mesh(opened(plan), plan)
    assert [(x.host, x.error) for x in result.listeners if x.error] == [("c", "not-here")]
    assert {link.target for link in result.links} == {"a", "b"}


def test_an_agent_that_dies_is_named_and_its_ports_prove_nothing() -> None:
    plan = cluster(3)
    session = opened(plan)

    def kill(_: Stage) -> None:
        session.processes["n1"].kill()
        session.processes["n1"].wait()

    result = run_mesh(session, plan, QUICK, kill)
    (trouble,) = result.troubles
    assert (trouble.host, trouble.kind) == ("n1", "ended")
    assert {x.outcome for x in result.links if "n1" in (x.source, x.target)} <= {"untested", "ok"}
    assert {x.outcome for x in result.links if "n1" not in (x.source, x.target)} == {"ok"}
    assert culprits(result.links) == ()


def test_a_host_that_never_starts_an_agent() -> None:
    plan = cluster(3)
    mute = Script("echo Welcome; exec cat >/dev/null", b"", b"")
    broken = Script("echo no such thing >&2; exit 127", b"", b"")
    session = opened(plan, n1=mute, n2=broken)
    result = run_mesh(session, plan, replace(QUICK, start=1.5, stop=0.2))
    details = {(t.host, t.kind): t.detail for t in result.troubles}
    assert details["n1", "no-agent"] == "no agent within 1.5 s; it printed: Welcome"
    assert "no such thing" in details["n2", "no-agent"]
    assert {x.error for x in result.listeners if x.host in ("n1", "n2")} == {"no-agent"}
    assert {x.outcome for x in result.links} == {"untested"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_agents_are_stopped_whatever_happens(error: type[BaseException]) -> None:
    plan = cluster(3)
    session = opened(plan)

    def interrupt(_: Stage) -> None:
        raise error

    with pytest.raises(error):
        run_mesh(session, plan, progress=interrupt)
    assert session.closed
    assert all(process.returncode == 0 for process in session.processes.values())
    with socket.create_server(("127.0.0.2", plan.master_port or 0)):
        pass


def test_a_host_with_only_bash_connects_and_says_so(tmp_path: Path) -> None:
    if Path("/usr/libexec/platform-python").exists():
        pytest.skip("this machine always has a platform Python")
    for tool in ("sh", "bash", "timeout", "tr"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or "")
    plan = cluster(3)
    scripts = {node.host: mesh_script() for node in plan.nodes}
    session = LocalSession(scripts, prefix={"n2": ("env", "-i", f"PATH={tmp_path}")})
    result = run_mesh(session, plan)
    (trouble,) = result.troubles
    assert (trouble.host, trouble.kind) == ("n2", "no-python")
    assert {(x.target, x.outcome) for x in result.links if x.source == "n2"} == {("n0", "ok"), ("n1", "ok")}
    assert not [x for x in result.links if x.target == "n2"]


class Scripted:
    """A session whose only host answers from a table: request (a pattern) -> output."""

    def __init__(self, answers: dict[str, str], first: list[Line | SessionEnd] | None = None) -> None:
        self.answers = answers
        self.events: list[Line | SessionEnd] = first or []
        self.sent: list[str] = []
        self.closed = False

    def send(self, host: str, line: bytes) -> None:
        self.sent.append(line.decode())
        for pattern, answer in self.answers.items():
            if match := re.match(pattern, line.decode()):
                self.events += [Line(host, part.encode()) for part in match.expand(answer).split("\n")]

    def receive(self, timeout: float) -> Line | SessionEnd | None:
        if self.events:
            return self.events.pop(0)
        time.sleep(min(timeout, 0.01))
        return None

    def end(self, host: str) -> None:
        self.events = [event for event in self.events if event.host != host]

    def close(self) -> None:
        self.closed = True


GOOD = from_cases(__file__, "GOOD", dict[str, str])
HASTY = MeshPatience(start=0.2, connect=0.1, answer=0.1, again=0.1, answer_again=0.1, stop=0.1, slack=0.1)


def test_a_link_that_is_lost_once_is_ok_with_its_tries() -> None:
    fails = GOOD | {
        r"connect (\d+) 0.1 0.1": r'{"say":"link","id":\1,"outcome":"dropped","tries":2}',
        r"connect (\d+) 0.9": r'{"say":"link","id":\1,"outcome":"ok","ms":0.1,"tries":1}',
    }
    fails.pop(r"connect (\d+)")
    session = Scripted(fails)
    result = run_mesh(session, cluster(2), replace(HASTY, again=0.9))
    assert {(x.outcome, x.tries) for x in result.links} == {("ok", 3)}
    assert session.closed


def test_unreached_host() -> None:
    plan = cluster(2)
    why = UnreachedHost("n1", UnreachedKind.REFUSED, "n1 refused the connection on port 22", "start sshd")
    gone: list[Line | SessionEnd] = [SessionEnd("n1", None, b"", why)]
    result = run_mesh(Scripted(GOOD, gone), plan, HASTY)
    assert [(t.host, t.kind, t.detail) for t in result.troubles] == [("n1", "unreached", why.summary)]
    assert culprits(result.links) == ()


@cases
def test_hostile_answers_never_become_ok(lie: str) -> None:
    result = run_mesh(Scripted(GOOD | {r"connect (\d+)": lie}), cluster(2), HASTY)
    assert outcomes(result) <= {"error", "untested"}
    assert msgspec.json.decode(msgspec.json.encode(result), type=MeshResult) == result


def test_a_flood_of_lines_ends_the_session_of_its_host() -> None:
    result = run_mesh(Scripted(GOOD | {r"connect (\d+)": "x\n" * 300}), cluster(2), HASTY)
    assert {t.kind for t in result.troubles} == {"noise"}
    assert outcomes(result) == {"untested"}


@cases
def test_a_host_that_floods_costs_the_others_nothing(line: str, kind: str) -> None:
    plan = cluster(3)
    ready = '{"say":"ready","agent":"python 3"}'
    scripts = {node.host: mesh_script() for node in plan.nodes}
    scripts["n1"] = Script(f"echo {shlex.quote(ready)}; exec yes {shlex.quote(line)}", b"", b"")
    transport = LocalTransport()
    before = psutil.Process().memory_info().rss
    began = time.monotonic()
    result = run_mesh(transport.open(scripts), plan)
    assert time.monotonic() - began < 60
    assert psutil.Process().memory_info().rss - before < 30_000_000
    transport.close()
    assert [(t.host, t.kind) for t in result.troubles] == [("n1", kind)]
    others = [link for link in result.links if "n1" not in (link.source, link.target)]
    assert {link.outcome for link in others} == {"ok"}
    assert culprits(result.links) == ()

"""The facts about the NPU network that only root can read: nothing but a smoke run over it replaces them."""

import gzip
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from doctor.api import Fact
from doctor.cli import run
from doctor.judge.examine import facts_of
from doctor.judge.npu_network import to_be_read
from doctor.judge.registry import find_checks
from doctor.model import MissingFact, SourcedValue
from doctor.probe import HostAnswer
from doctor.recording import Recording, load, save
from doctor.smoke.result import SmokeResult
from tests.support.cases import cases
from tests.support.npu_cluster import plan, tabled
from tests.support.paths import ROOT
from tests.support.reports import seated
from tests.support.smoke.results import healthy, with_end, with_rank

NAMES = ["node1", "node2", "node3"]
SAMPLE = ROOT / "tests" / "samples" / "recordings" / "npu-healthy.run.json.gz"
ROOTS = {fact.name for fact in facts_of(find_checks().checks) if isinstance(fact, Fact) and fact.needs_root}
NEEDS_ROOT = "needs root (--sudo uses sudo -n)"
UNREAD = "the NPU network was not examined"
Judged = Callable[..., tuple[int, str, list[str]]]


@cache
def sample() -> bytes:
    return gzip.decompress(SAMPLE.read_bytes())


def ordinary(heard: HostAnswer, why: str = NEEDS_ROOT) -> HostAnswer:
    """The answer of the same host to a user who is not root."""
    rest = {name: capture for name, capture in heard.captures.items() if name not in ROOTS}
    return replace(heard, captures=rest, missing={**heard.missing, **{n: MissingFact(n, why) for n in ROOTS}})


@pytest.fixture
def judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Judged:
    """The exit code, the text in one line, and the healthy hosts."""

    def judge(change: Callable[[Recording], Recording], *options: str) -> tuple[int, str, list[str]]:
        (tmp_path / "old.json").write_bytes(sample())
        save(change(load(tmp_path / "old.json")), tmp_path / "run.json")
        hosts = tmp_path / "healthy"
        code = run(["check", "--replay", str(tmp_path / "run.json"), "--healthy-hosts", str(hosts), *options])
        shown = capsys.readouterr()
        return code, " ".join((shown.out + shown.err).split()), hosts.read_text().split()

    return judge


def without_root(*names: str, why: str = NEEDS_ROOT) -> Callable[[Recording], Recording]:
    def change(of: Recording) -> Recording:
        heard = {name: ordinary(h, why) if name in names else h for name, h in of.heard.items()}
        return replace(of, heard=heard)

    return change


def trained(*runs: SmokeResult) -> Callable[[Recording], Recording]:
    return lambda of: replace(without_root(*NAMES)(of), smoke_wanted=True, smoke=runs)


def smoke_run(backend: str, names: list[str] = NAMES) -> SmokeResult:
    result = healthy(seated(names, each=2, tp=2))
    return replace(result, plan=replace(result.plan, backend=backend))  # type: ignore[arg-type]


def test_nobody_read_it(judged: Judged) -> None:
    code, said, hosts = judged(without_root(*NAMES))
    assert (code, hosts) == (3, [])
    assert f"Inconclusive: {UNREAD} on node[1-3] (12 checks need root): add --sudo." in said


@pytest.mark.parametrize("query", ["npu-addresses", "npu-links"])
def test_the_tool_refuses_the_question_everywhere(query: str, judged: Judged) -> None:
    """Every product that is asked has addresses and links, so a tool that denies it has reported nothing."""
    refusal = "The command is not supported on this product."

    def refused(of: Recording) -> Recording:
        heard = {}
        for name, answer in of.heard.items():
            told = re.findall("^(?:devices|@).*", answer.captures[query].stdout, re.MULTILINE)
            said = [line if line[0] == "d" else f"{refusal}\n{line[:-1]}13" for line in told]
            capture = replace(answer.captures[query], stdout="\n".join(said))
            heard[name] = replace(answer, captures={**answer.captures, query: capture})
        return replace(of, heard=heard)

    code, said, hosts = judged(refused)
    assert (code, hosts) == (3, [])
    assert f"Inconclusive: {UNREAD} on node[1-3]" in said
    assert "the command is not supported on this product" in said


@cases
def test_it_was_left_out_as_asked_for(options: tuple[str, str], left_out: str, judged: Judged) -> None:
    """A user who leaves it out gets a verdict on the rest, and the verdict says so."""
    code, said, _ = judged(lambda of: of, *options)
    assert code == 0
    left = f"{left_out} left out on request"
    assert f"Healthy, except that the NPU network was not examined ({left}): node[1-3]." in said
    assert "was not examined" not in judged(lambda of: of, *options, "--backend", "gloo")[1]


def test_the_exam_of_a_node_asks_about_no_job(judged: Judged) -> None:
    code, said, _ = judged(lambda of: of, "--exam", "node")
    assert (code, "Healthy: node[1-3]." in said, "on request" in said) == (0, True, False), said


def test_in_the_log_of_a_job(judged: Judged) -> None:
    code, said, hosts = judged(without_root(*NAMES), "-q", "--print", "launch=hostfile")
    assert (code, hosts) == (3, [])
    assert f"doctor: no go: {UNREAD} on node[1-3] (12 checks need root): add --sudo." in said


def test_it_was_read_on_some_hosts(judged: Judged) -> None:
    code, said, hosts = judged(without_root("node2"))
    assert (code, hosts) == (3, ["node1", "node3"])
    assert f"{UNREAD} on node2 (12 checks need root): add --sudo." in said
    assert judged(without_root("node2"), "--need-hosts", "2")[0] == 0
    assert judged(without_root("node2"), "--need-hosts", "3")[0] == 1


def test_sudo_was_refused(judged: Judged) -> None:
    code, said, _ = judged(without_root(*NAMES, why="sudo was refused there"))
    assert code == 3
    assert f"{UNREAD} on node[1-3] (12 checks need root): sudo -n was refused." in said


def test_the_tool_is_missing(judged: Judged) -> None:
    """As in a container that does not mount it."""
    code, said, _ = judged(without_root(*NAMES, why="its command is not installed there"))
    assert code == 3
    assert f"{UNREAD} on node[1-3] (its command is not installed there)." in said


def test_a_fault_is_said_before_what_was_not_examined(judged: Judged) -> None:
    code, said, _ = judged(without_root(*NAMES), "--expect", "devices=16")
    assert code == 1
    assert "3 of 3 hosts are faulty: node[1-3] NPUs 8-15 (devices)." in said


def test_a_smoke_run_over_it_proves_it(judged: Judged) -> None:
    code, _, hosts = judged(trained(smoke_run("hccl")), "--skip", "smoke-*,torch-missing")
    assert (code, hosts) == (0, NAMES)


@pytest.mark.parametrize(
    "ran",
    [
        smoke_run("gloo"),
        with_end(smoke_run("hccl"), "deadline", 900.0),
        with_rank(smoke_run("hccl"), 0, done=False, phase="train"),
        smoke_run("hccl", ["node1"]),
    ],
    ids=["over gloo", "not finished", "a rank not done", "one host alone"],
)
def test_no_other_smoke_run_proves_it(ran: SmokeResult, judged: Judged) -> None:
    code, _, hosts = judged(trained(ran), "--skip", "smoke-*,torch-missing")
    assert (code, hosts) == (3, [])


def test_what_was_asked_for_by_name_is_all_that_counts(judged: Judged) -> None:
    assert judged(without_root(*NAMES), "--only", "shm-small")[0] == 0


def test_which_jobs_use_it() -> None:
    """On one server, only those on Atlas training servers that cross its rings."""
    a2, training = dict.fromkeys(NAMES, "atlas-a2"), dict.fromkeys(NAMES, "atlas-training")
    assert to_be_read(plan(), a2, ()) == set(NAMES)
    assert to_be_read(plan("node1", ranks=SourcedValue(8, "x")), a2, ()) == set()
    assert to_be_read(plan("node1", ranks=SourcedValue(4, "x")), training, ()) == set()
    assert to_be_read(plan("node1", ranks=SourcedValue(8, "x")), training, ()) == {"node1"}
    of_two = tabled(plan("node1", ranks=SourcedValue(1, "x")), {"node1": [0], "node2": [0]})
    assert to_be_read(of_two, a2, ()) == {"node1"}, "the table takes other servers as well"

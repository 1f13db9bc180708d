"""Jobs whose launchers wait for each other: who is missing, or calls another place, and what to type."""

import shlex

import pytest
from msgspec.structs import replace

from doctor.hang.advice import advice_of
from doctor.hang.judge import Judgement, judge
from doctor.hang.judge.judgement import HangConfidence, HangState
from doctor.hang.report_json import hang_report
from doctor.live.evidence import JobChoice, JobMember, LiveEvidence, ResolvedName
from tests.support.cases import cases_with
from tests.support.hang.launchers_only import address, launcher, starting, words
from tests.support.hang.written import evidence


def said(found: Judgement) -> list[tuple[str, str]]:
    return [(each.host, each.sentence) for each in found.culprits]


def all_of(*chosen: int, of: int = 4) -> list[JobMember]:
    return [launcher(node, words(node, of)) for node in chosen]


def test_the_launcher_of_one_host_is_missing() -> None:
    found = judge(starting(all_of(0, 1, 2)))
    assert (found.verdict, found.exit_code) == (HangState.HANG, 1)
    assert said(found) == [("node4", "has no torchrun: nobody has node rank 3")]
    assert found.confidence is HangConfidence.CERTAIN
    (typed,) = advice_of(found).commands
    assert typed == (
        "torchrun --node-rank=3 --nnodes=4 --master-addr=10.0.0.1 --master-port=29500 train.py"
        "    # and the arguments of the program, if it has any"
    )
    report = hang_report(found, starting(all_of(0, 1, 2)))
    assert [(each.host, each.cause) for each in report.findings] == [("node4", "was not started")]
    assert {each.name: each.status.value for each in report.hosts}["node4"] == "faulty"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (["/env/bin/python", "-m", "torch.distributed.run"], "/env/bin/python -m torch.distributed.run"),
        (["/usr/bin/python3", "/opt/bin/torchrun"], "torchrun"),
    ],
)
@pytest.mark.parametrize("given", [["--node_rank", "0"], ["--node_rank=0"], []])
def test_the_line_of_the_missing_launcher_can_be_typed(
    head: list[str], expected: str, given: list[str]
) -> None:
    """The option of its number is one of the launcher, so that it stands behind the launcher's name."""
    said = ["--nnodes", "2", *given, "--master-addr", "10.0.0.1", "--master-port", "29500", "train.py"]
    (typed,) = advice_of(judge(starting([launcher(0, (*head, *said))]))).commands
    words = shlex.split(typed, comments=True)
    assert " ".join(words).startswith(f"{expected} --node_rank=1 --nnodes 2 --master-addr 10.0.0.1")
    assert words[-1] == "train.py"


def test_the_options_of_accelerate_and_msrun_keep_their_spelling() -> None:
    said = ["--num_machines=2", "--machine_rank=0", "--main_process_ip=10.0.0.1", "train.py"]
    (typed,) = advice_of(
        judge(starting([launcher(0, ("/opt/python", "/opt/accelerate", "launch", *said))]))
    ).commands
    assert typed.startswith("accelerate launch --machine_rank=1 --num_machines=2 ")


@cases_with(starting, launcher, words, all_of)
def test_nobody_is_accused_who_may_be_there(seen: LiveEvidence, why: str) -> None:
    found = judge(seen)
    assert not found.culprits
    assert why in found.sentence


def test_a_program_of_somebody_else_does_not_excuse_a_host() -> None:
    assert said(judge(starting(all_of(0, 1, 2), may_be={"node4": "bob"})))


def test_all_call_an_address_that_no_host_has() -> None:
    found = judge(starting([launcher(n, words(n, 4, master="10.9.9.9"), age=5) for n in range(4)]))
    assert {text for _, text in said(found)} == {
        "has a torchrun that calls 10.9.9.9:29500, which is not a host of this job"
    }
    assert len(found.culprits) == 4
    assert advice_of(found).do == (
        "start it on node[1-4] with --master-addr=10.0.0.1, an address of node1, which has node rank 0",
    )


def test_an_address_of_the_missing_host_is_not_wrong() -> None:
    found = judge(starting([launcher(n, words(n, 3, master="10.9.9.9")) for n in (1, 2)], of=3))
    assert not found.culprits
    assert "nobody has node rank 0; 10.9.9.9, which they call, is not one of the hosts" in found.sentence


@cases_with(words, address)
def test_one_calls_another_place(odd: tuple[str, ...], why: str) -> None:
    found = judge(starting([*all_of(0, 1, 3), launcher(2, odd)]))
    assert said(found) == [("node3", why)]


def test_all_call_a_host_that_is_not_the_first() -> None:
    found = judge(starting([launcher(n, words(n, 3, master=address(1))) for n in range(3)], of=3))
    assert {text for _, text in said(found)} == {
        "has a torchrun that calls node2, but node rank 0 runs on node1"
    }


def test_two_with_one_number() -> None:
    found = judge(starting([*all_of(0, 1, 3), launcher(2, words(1, 4))]))
    assert [host for host, _ in said(found)] == ["node2", "node3"]
    assert "nobody has node rank 2" in advice_of(found).do[0]


def test_a_name_without_an_address() -> None:
    name = "trainer-0"
    lost = ResolvedName(name=name, problem="no address was found")
    found = judge(starting([*all_of(0, 2, 3), launcher(1, words(1, 4, master=name))], names={"node2": lost}))
    assert said(found) == [
        ("node2", "cannot resolve trainer-0, which its torchrun calls: no address was found")
    ]
    right = ResolvedName(name=name, addresses=(address(0),))
    names = {f"node{n + 1}": right for n in range(4)}
    fine = judge(starting([launcher(n, words(n, 4, master=name)) for n in range(4)], names=names))
    assert not fine.culprits


@pytest.mark.parametrize(("lost", "named"), [((2,), "node3"), ((1, 2, 3), "node1")])
def test_first_packets_without_an_answer(lost: tuple[int, ...], named: str) -> None:
    """Of one host, that host is named; of all, the one that they call."""
    syn = f"{address(0)}:29500"
    seen = starting([launcher(n, words(n, 4), syn=syn if n in lost else "") for n in range(4)])
    found = judge(seen)
    assert [host for host, _ in said(found)] == [named]
    assert "SYN-SENT" in found.culprits[0].sentence
    assert "doctor check 'node[1-4]' --only port-unreachable" in advice_of(found).commands[0]


def test_one_that_still_imports() -> None:
    """Whether it ends, nobody knows: it is shown, and not accused while it works."""
    found = judge(starting([*all_of(0, 1, 3), launcher(2, words(2, 4), does="imports")]))
    assert [(each.host, each.sentence) for each in found.named] == [("node3", "its torchrun imports modules")]


def test_all_are_there_and_young() -> None:
    found = judge(starting([launcher(n, words(n, 4), age=8) for n in range(4)]))
    assert (found.verdict, found.exit_code) == (HangState.WAITS, 0)


def test_two_jobs_on_the_same_hosts_stay_apart() -> None:
    """One lacks a launcher, and the other has all."""
    second = [launcher(n, words(n, 4, port=29600), pid=500, age=8) for n in range(4)]
    found = judge(starting([*all_of(0, 1, 2), *second]))
    assert len(found.jobs) == 2
    assert said(found) == [("node4", "has no torchrun: nobody has node rank 3")]
    chosen = judge(starting([*all_of(0, 1, 2), *second]), choice=JobChoice(master_port=29600))
    assert (chosen.verdict, chosen.culprits) == (HangState.WAITS, ())
    assert judge(starting(all_of(0, 1, 2)), choice=JobChoice(user="bob")).verdict is HangState.NO_JOB


def test_a_launcher_of_one_host_waits_for_nobody_elsewhere() -> None:
    alone = launcher(0, ("/opt/bin/torchrun", "--nproc-per-node=2", "train.py"))
    assert judge(starting([alone])).verdict is HangState.NO_JOB


def test_a_launcher_of_a_job_that_has_ranks_is_not_a_job_of_its_own() -> None:
    seen = evidence(["waits", "sleeps"], job=f"{address(0)}:29500")
    starts = starting(all_of(1, of=2), of=2)
    hosts = {host.host: host.starters for host in starts.hosts}
    mixed = replace(seen, hosts=tuple(replace(h, starters=hosts.get(h.host, ())) for h in seen.hosts))
    assert len(judge(mixed).jobs) == 1

"""What the job trains with: the flag, the parallel plan, the launch, or what all hosts have."""

from collections.abc import Mapping

import pytest

from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.parallel import read_layout
from doctor.job.plan import HostView, JobPlan, draft, settle
from doctor.job.wishes import JobWishes
from doctor.model import Backend, Framework, Host, SourcedValue
from tests.support.cases import cases, from_cases

TORCH, MINDSPORE, BOTH = (
    frozenset({"torch", "numpy"}),
    frozenset({"mindspore"}),
    frozenset({"torch", "mindspore"}),
)
FLAG: SourcedValue[Framework] = SourcedValue("torch", "--framework")
MSRUN = from_cases(__file__, "MSRUN", Launch)
CLUSTER = from_cases(__file__, "CLUSTER", Launch)
LAYOUT = SourcedValue(read_layout(("framework=mindspore",)), "--plan")


def planned(has: Mapping[str, frozenset[str]], wishes: JobWishes | None = None) -> JobPlan:
    hosts = [Host(name, name) for name in has]
    return settle(
        draft(hosts, wishes or JobWishes()), {name: HostView(frameworks=own) for name, own in has.items()}
    )


@pytest.mark.parametrize(
    ("wishes", "source"),
    [
        (JobWishes(launch=MSRUN), "--launch msrun"),
        (JobWishes(launch=CLUSTER), "--launch MS_ROLE"),
        (JobWishes(layout=LAYOUT), "--plan framework"),
    ],
)
def test_what_files_say_counts_whatever_the_hosts_have(wishes: JobWishes, source: str) -> None:
    assert planned({"a": TORCH}, wishes).framework == SourcedValue("mindspore", source)


@pytest.mark.parametrize("command", ["torchrun", "accelerate", "deepspeed", "torch_npu_run"])
def test_a_launcher_of_torch_says_torch_whatever_the_hosts_have(command: str) -> None:
    words = (command, "launch", "train.py") if command == "accelerate" else (command, "train.py")
    launch = Launch("a job", (ProcessEnv("run.sh:1", None, {}, words),), complete=True)
    plan = planned({"a": MINDSPORE}, JobWishes(launch=launch))
    assert plan.framework == SourcedValue("torch", f"--launch {command}")


def test_variables_of_torch_decide_nothing() -> None:
    """They are often set for every job of a cluster."""
    process = ProcessEnv("run.sh:1", None, {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}, ("python", "train.py"))
    plan = planned({"a": MINDSPORE}, JobWishes(launch=Launch("a job", (process,), complete=True)))
    assert plan.framework == SourcedValue("mindspore", "found on the hosts")


def test_the_flag_comes_first() -> None:
    assert planned({"a": MINDSPORE}, JobWishes(launch=MSRUN, framework=FLAG)).framework == FLAG


@cases
def test_otherwise_all_hosts_that_have_one_must_have_it(
    first: frozenset[str], second: frozenset[str], chosen: Framework
) -> None:
    plan = planned({"a": first, "b": second})
    assert (plan.framework, plan.frameworks_differ) == (SourcedValue(chosen, "found on the hosts"), "")


def test_a_mixture_is_not_decided_and_both_lists_are_said() -> None:
    plan = planned({"node1": TORCH, "node2": MINDSPORE, "node3": MINDSPORE})
    assert plan.framework is None
    assert plan.frameworks_differ == "torch on node1; MindSpore on node[2-3]"


def test_hosts_without_any_decide_nothing() -> None:
    plan = planned({"a": frozenset(), "b": frozenset()})
    assert (plan.framework, plan.frameworks_differ) == (None, "")


def test_mindspore_s_ranks_listen_on_a_port_each() -> None:
    plan = planned({"a": MINDSPORE, "b": MINDSPORE})
    assert plan.mccl_ports == {"a": (8118, 8374), "b": (8630, 8886)}
    assert plan.carrier.value == "mccl"
    assert planned({"a": TORCH}).mccl_ports == {}
    assert planned({"a": TORCH}).carrier.value == "gloo"
    on_npus = JobWishes(backend=SourcedValue(Backend.HCCL, "--backend"))
    assert planned({"a": MINDSPORE}, on_npus).mccl_ports == {}
    assert planned({"a": MINDSPORE}, on_npus).carrier.value == "hccl"

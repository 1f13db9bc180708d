"""A launch that is written for accelerators, on hosts that have none or others."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from doctor.api import ASCEND, NVIDIA, Vendor
from doctor.facts.system import Devices, FoundDevices
from doctor.job.plan import JobPlan
from doctor.model import Backend, Severity, SourcedValue, View
from tests.support.cases import cases
from tests.support.launches import a_plan, dump, judged, read, words

CHECK = "launch-devices-absent"
RUN = "torchrun --nnodes=2 --node_rank=$R --nproc_per_node=8 --master_addr=node1 train.py"
SET_ENV = "source /usr/local/Ascend/ascend-toolkit/set_env.sh\n"


def plan(source: str = "no accelerator found", backend: Backend = Backend.GLOO) -> JobPlan:
    return replace(a_plan("gloo"), backend=SourcedValue(backend, source))


def facts(vendor: Vendor | None = None, view: View = View.HOST) -> dict[str, Any]:
    found = {vendor.name: FoundDevices((0, 1), 2)} if vendor else {}
    hosts = ("node1", "node2")
    return {"devices": dict.fromkeys(hosts, Devices(found, "cpu")), "view": dict.fromkeys(hosts, view)}


FAIL, WARN = None, Severity.WARN
MEANT = {
    "CANN": (SET_ENV + RUN, "NPUs", FAIL),
    "CANN elsewhere": (f". ~/Ascend/nnae/set_env.sh; {RUN}", "NPUs", FAIL),
    "NPUS_PER_NODE": (f"NPUS_PER_NODE=8\n{RUN}", "NPUs", FAIL),
    "chosen NPUs": (f"export ASCEND_RT_VISIBLE_DEVICES=0,1\n{RUN}", "NPUs", FAIL),
    "hccl": (f"{RUN} --distributed-backend hccl", "NPUs", FAIL),
    "msrun": ("msrun --worker_num=16 --local_worker_num=8 net.py", "NPUs", WARN),
    "a variable of HCCL": (f"export HCCL_CONNECT_TIMEOUT=600\n{RUN}", "NPUs", WARN),
    "nccl": (f"{RUN} \\\n  --distributed-backend nccl", "NVIDIA GPUs", FAIL),
    "nccl by =": (f"{RUN} --dist-backend='nccl'", "NVIDIA GPUs", FAIL),
    "InfiniBand": (f"export NCCL_IB_DISABLE=0 NCCL_IB_HCA=mlx5\n{RUN}", "NVIDIA GPUs", WARN),
    "CANN where it is": (
        f"if [ -f /opt/Ascend/set_env.sh ]; then . /opt/Ascend/set_env.sh; fi\n{RUN}",
        "NPUs",
        WARN,
    ),
    "CANN or not": (f"source /opt/Ascend/set_env.sh 2>/dev/null || true\n{RUN}", "NPUs", WARN),
    "a choice": (f"B='--backend nccl'; [ -z $CPU ] || B='--backend gloo'\n{RUN} $B", "NVIDIA GPUs", WARN),
    "an env file": ("HCCL_BUFFSIZE=200\nMASTER_ADDR=node1\n", "NPUs", WARN),
}


@pytest.mark.parametrize("name", MEANT)
def test_no_host_shows_a_device(name: str, tmp_path: Path) -> None:
    text, things, severity = MEANT[name]
    (problem,), doubt = judged(CHECK, [read(tmp_path, text + "\n")], plan(), facts())
    assert problem.summary.startswith(f"the launch is for {things}, and no host shows one")
    assert problem.severity is severity
    assert problem.hosts == ()
    assert problem.evidence[0].source.startswith("env0.log")
    assert doubt == ""


def silent(text: str, folder: Path, job: JobPlan | None = None, **more: Any) -> str:
    problems, doubt = judged(CHECK, [read(folder, text + "\n")], job or plan(), facts(**more))
    assert [words(problem) for problem in problems] == []
    return doubt


@pytest.mark.parametrize("name", MEANT)
def test_the_devices_are_there(name: str, tmp_path: Path) -> None:
    text, things, _ = MEANT[name]
    vendor = ASCEND if things == "NPUs" else NVIDIA
    assert silent(text, tmp_path, plan("devices found", vendor.backend), vendor=vendor) == ""


def test_npus_in_place_of_gpus(tmp_path: Path) -> None:
    """MindSpeed uses hccl if it is told nccl; nothing uses nccl if it is told hccl."""
    on_npus, on_gpus = plan("devices found", Backend.HCCL), plan("devices found", Backend.NCCL)
    assert silent(MEANT["nccl"][0], tmp_path, on_npus, vendor=ASCEND) == ""
    (problem,), _ = judged(CHECK, [read(tmp_path, MEANT["CANN"][0])], on_gpus, facts(NVIDIA))
    assert "no host shows one, but NVIDIA GPUs" in problem.summary
    assert silent(SET_ENV + MEANT["nccl"][0], tmp_path, on_gpus, vendor=NVIDIA) == "", "a script for both"


@cases
def test_a_launch_for_cpus(text: str, tmp_path: Path) -> None:
    assert silent(text, tmp_path) == ""


def test_who_names_the_backend_is_asked_nothing(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="the backend was given"):
        judged(CHECK, [read(tmp_path, MEANT["CANN"][0])], plan("--backend"), facts())


@pytest.mark.parametrize(("before", "told"), [("", 1), ("if nvidia-smi; then echo yes; fi\n", 0)])
def test_torchrun_counts_gpus_whatever_the_backend_is(before: str, told: int, tmp_path: Path) -> None:
    text = f"{before}torchrun --nproc_per_node=gpu \\\n  train.py --backend gloo\n"
    problems, _ = judged(CHECK, [read(tmp_path, text)], plan("--backend"), facts())
    assert [each.severity for each in problems] == [None] * told


def test_the_devices_may_be_given_to_other_containers(tmp_path: Path) -> None:
    assert "other containers" in silent(MEANT["CANN"][0], tmp_path, view=View.CONTAINER)


def test_what_a_rank_printed_counts_too(tmp_path: Path) -> None:
    text = dump({"RANK": 0, "WORLD_SIZE": 2, "HCCL_CONNECT_TIMEOUT": 600})
    (problem,), _ = judged(CHECK, [read(tmp_path, text)], plan(), facts())
    assert problem.severity is WARN

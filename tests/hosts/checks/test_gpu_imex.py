"""Hosts that NVLink joins (emulated), and each fault of their IMEX service alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.gpus import GpuHost
from tests.support.faults import ALONE, assert_healthy, assert_only
from tests.support.gpu_faults import GpuExaminer, gpu_examiner, left_out

__all__ = ["gpu_examiner"]

CLUSTER = "00000001-0000-0000-0000-000000000001"
CHANNEL = "mkdir -p /dev/nvidia-caps-imex-channels; : >/dev/nvidia-caps-imex-channels/channel0\n"
SERVICE = """
cp "$(command -v sleep)" /usr/bin/nvidia-imex
setsid nvidia-imex 864000 </dev/null >/dev/null 2>&1 &
until grep -sqx nvidia-imex "/proc/$!/comm"; do sleep 0.01; done
echo $! >/run/nvidia-imex.pid
"""
STOP = """
if pid=$(cat /run/nvidia-imex.pid); then
  rm /run/nvidia-imex.pid
  kill "$pid"
  while [ -e "/proc/$pid" ]; do sleep 0.01; done
fi
"""
NODES = """
mkdir -p /etc/nvidia-imex
printf '%s\\n' '# the rack' 10.0.0.1 '  10.0.0.2' "$@" >/etc/nvidia-imex/nodes_config.cfg
"""


@pytest.fixture
def examine(gpu_examiner: GpuExaminer) -> Iterator[GpuExaminer]:
    """Nothing of IMEX is left afterwards."""
    yield gpu_examiner
    for host in gpu_examiner.gpus:
        host.do(f"{STOP}rm -rf /dev/nvidia-caps-imex-channels /etc/nvidia-imex /usr/bin/nvidia-imex")


def rack(examine: GpuExaminer, *, ready: bool = True) -> None:
    for host in examine.gpus:
        joined(host, CLUSTER, "2")
        if ready:
            host.do(CHANNEL + SERVICE)
            host.do(NODES, "10.0.0.3")


def joined(host: GpuHost, cluster: str, clique: str) -> None:
    for gpu in host:
        gpu.values |= {"fabric.clusterUuid": cluster, "fabric.cliqueId": clique}
    host.tell()


def test_a_rack_that_is_ready(examine: GpuExaminer) -> None:
    rack(examine)
    assert_healthy(examine(*ALONE))


def test_hosts_that_nvlink_does_not_join(examine: GpuExaminer) -> None:
    """Their NVSwitches are their own, or each is a domain of its own; nothing of IMEX is there."""
    assert left_out(examine(*ALONE), "imex-not-ready").keys() == set(examine.gpus.lab.names)
    for number, host in enumerate(examine.gpus):
        joined(host, CLUSTER, str(number))
    assert_healthy(examine(*ALONE))


def test_one_without_a_channel(examine: GpuExaminer) -> None:
    rack(examine)
    examine.gpus["node2"].do("rm -r /dev/nvidia-caps-imex-channels")
    (found,) = assert_only(examine(*ALONE), "imex-not-ready", ["node2"], "warn")
    assert found["expected"] == "channel0, as on 2 other hosts of its NVLink domain"
    assert "NVreg_CreateImexChannel0=1" in str(found["remedy"])
    examine.gpus["node2"].do(CHANNEL)
    assert_healthy(examine(*ALONE))


def test_none_is_ready(examine: GpuExaminer, tmp_path: Path) -> None:
    """Slurm or Kubernetes may make it so at the start of a job: nobody is sure."""
    rack(examine, ready=False)
    (found,) = assert_only(examine(*ALONE), "imex-not-ready", [*examine.gpus.lab.names], "warn")
    assert found["confidence"] == "suspect"
    launch = tmp_path / "run.sh"
    launch.write_text("export NCCL_MNNVL_ENABLE=0\npython train.py\n")
    assert left_out(examine(*ALONE, "--launch", str(launch)), "imex-not-ready")


def test_one_without_the_service(examine: GpuExaminer) -> None:
    rack(examine)
    examine.gpus["node3"].do(STOP)
    (found,) = assert_only(examine(*ALONE), "imex-not-ready", ["node3"], "warn")
    assert found["summary"] == "the service nvidia-imex does not run"
    examine.gpus["node3"].do(SERVICE)
    assert_healthy(examine(*ALONE))


def test_one_that_joins_other_hosts(examine: GpuExaminer) -> None:
    rack(examine)
    examine.gpus["node1"].do(NODES, "10.0.0.9")
    (found,) = assert_only(examine(*ALONE), "imex-not-ready", ["node1"], "warn")
    assert (found["expected"], found["actual"]) == (
        "3 hosts, as on 2 other hosts of its NVLink domain",
        "3 hosts; 10.0.0.3, 10.0.0.9 in one of the lists only",
    )
    examine.gpus["node1"].do(NODES, "10.0.0.3")
    assert_healthy(examine(*ALONE))

"""The scripts that read NVIDIA GPUs and InfiniBand ports, run by the shells of this machine."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from doctor.api import Ask, Capture, Fact, Run
from doctor.errors import UnreadableOutput
from doctor.facts.gpus import Gpu
from doctor.facts.infiniband import IB_PORTS, InfinibandPort
from doctor.facts.nvidia.gpus import GPU_HEALTH, GPU_PROCESSES, GPUS, GpuProcess, NvidiaHealth
from doctor.facts.nvidia.nvlink import FABRIC_MANAGER, GPU_TOPOLOGY, NVLINKS, FabricManager, Links
from tests.support.captures import sample
from tests.support.cases import from_cases
from tests.support.probing import HERE, SHELLS

SMI: tuple[Fact[Any], ...] = (GPUS, GPU_HEALTH, GPU_PROCESSES, NVLINKS, GPU_TOPOLOGY)
FAKE = from_cases(__file__, "FAKE", str)


class FakeHost:
    """Scripts of facts, run by a shell here; their device files and driver are in a folder of the test."""

    def __init__(self, folder: Path, shell: str) -> None:
        self.folder, self.shell = folder, shell
        (folder / "bin").mkdir()

    def tool(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(text.replace("LOG", str(self.folder / "log")))
        path.chmod(0o755)

    def file(self, name: str, text: str = "") -> None:
        path = self.folder / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    @property
    def called(self) -> list[str]:
        log = self.folder / "log"
        return log.read_text().splitlines() if log.exists() else []

    def run(self, fact: Fact[Any]) -> subprocess.CompletedProcess[str]:
        assert isinstance(fact.command, Run)
        text = fact.command.text(Ask("here"))
        for path in (
            "/proc/driver",
            "/dev/nvidia",
            "/sys/class/infiniband",
            "/usr/bin/nvidia-smi",
            "/proc/[",
        ):
            text = text.replace(path, str(self.folder) + path)
        text = text.replace("/proc/1/comm", f"{self.folder}/proc/1/comm")
        shell = [str(shutil.which(SHELLS[self.shell][0])), *SHELLS[self.shell][1:-1], "-c", text]
        env = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "P": str(os.getpid())}
        return subprocess.run(
            shell, capture_output=True, text=True, env=env, timeout=30, stdin=subprocess.DEVNULL, check=False
        )

    def know(self, fact: Fact[Any]) -> Any:
        done = self.run(fact)
        return fact.parse(Capture(fact.name, done.returncode, done.stdout.replace(str(self.folder), "")))


@pytest.fixture(params=HERE)
def host(request: pytest.FixtureRequest, tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path, request.param)


def loaded(host: FakeHost) -> None:
    host.file("/proc/driver/nvidia/version")
    host.file("/dev/nvidia0")
    host.tool("nvidia-smi", FAKE)


@pytest.mark.parametrize("fact", SMI, ids=lambda fact: fact.name)
def test_nvidia_smi_is_not_started_without_its_driver(fact: Fact[Any], host: FakeHost) -> None:
    host.tool("nvidia-smi", FAKE)
    done = host.run(fact)
    assert (done.returncode, done.stdout, host.called) == (1, "", [])
    assert "driver is not loaded" in done.stderr


def test_the_scripts_read_every_fact(host: FakeHost) -> None:
    loaded(host)
    assert host.know(GPUS).listed == (Gpu(0, "GPU-a", "", "", 5),)
    assert host.know(GPU_PROCESSES) == (GpuProcess("GPU-a", 7, 1, "x"),)
    assert host.know(NVLINKS) == {0: Links("T", (0,))}
    assert host.know(GPU_TOPOLOGY) == {(0, 1): "NV4"}


def test_of_a_process_its_options_stay_on_the_host(host: FakeHost) -> None:
    loaded(host)
    row = "GPU-a, 7, 1 MiB, /opt/python train.py --wandb-key ZZLEAK -x"
    host.tool("nvidia-smi", f"echo 'gpu_uuid, pid, used_gpu_memory [MiB], process_name\n{row}'")
    assert "ZZLEAK" not in host.run(GPU_PROCESSES).stdout
    assert host.know(GPU_PROCESSES) == (GpuProcess("GPU-a", 7, 1, "python train.py"),)


def test_fields_unknown_to_a_driver_are_left_out(host: FakeHost) -> None:
    loaded(host)
    assert host.know(GPU_HEALTH) == {0: NvidiaHealth(mig=True, fabric="Completed")}
    assert len(host.called) == 3
    assert "gpu_recovery_action" not in host.called[1]
    assert host.called[2].startswith(
        "--query-gpu=index,ecc.errors.uncorrected.volatile.total,retired_pages.pending,remapped_rows.pending"
        ",remapped_rows.failure,mig.mode.current,compute_mode,clocks_event_reasons"
    )
    assert "fabric.clusterUuid" in host.called[2]
    assert "fabric.health.summary" not in host.called[2]


def test_a_driver_that_knows_no_fabric_is_asked_once_for_it(host: FakeHost) -> None:
    loaded(host)
    host.tool("nvidia-smi", FAKE.replace("fabric.health.summary", "fabric.state"))
    assert host.know(GPU_HEALTH)[0].mig
    assert len(host.called) == 3
    assert "fabric" not in host.called[2]


def test_a_refusal_that_names_no_field_of_ours_ends_the_query(host: FakeHost) -> None:
    loaded(host)
    host.tool("nvidia-smi", '#!/bin/sh\necho "$*" >>LOG\necho \'Field "*" is not a valid field to query.\'')
    with pytest.raises(UnreadableOutput, match="not a valid field"):
        host.know(GPU_HEALTH)
    assert len(host.called) == 1


def test_nvidia_smi_that_is_not_installed(host: FakeHost) -> None:
    host.file("/proc/driver/nvidia/version")
    assert host.run(GPUS).returncode == 127


MANAGED = from_cases(__file__, "MANAGED", dict[str, tuple[dict[str, str], FabricManager]])


@pytest.mark.parametrize("case", MANAGED)
def test_the_fabric_manager_is_looked_for(case: str, host: FakeHost) -> None:
    files, found = MANAGED[case]
    for name, text in files.items():
        host.file(name, text)
    assert host.know(FABRIC_MANAGER) == found


def test_ports_are_read_from_the_kernel_or_asked_of_ibstat(host: FakeHost) -> None:
    host.tool("ibstat", "#!/bin/sh\necho called >>LOG\ncat <<'E'\n" + sample("ib/ibstat_mixed.txt") + "E\n")
    assert len(host.know(IB_PORTS)) == 4
    folder = "/sys/class/infiniband/mlx5_9/ports/1"
    host.file(f"{folder}/state", "4: ACTIVE\n")
    host.file(f"{folder}/phys_state", "5: LinkUp\n")
    host.file(f"{folder}/link_layer", "Ethernet\n")
    assert host.know(IB_PORTS) == (InfinibandPort("mlx5_9", 1, "active", "LinkUp", "", "Ethernet"),)
    assert len(host.called) == 1

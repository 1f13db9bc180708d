"""The script that walks from each device up to the processor, run by the shells of this machine."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

import pytest

from doctor.api import Ask, Run
from tests.support.captures import every_fact, printed

PCIE_LINKS, IB_CARDS = (every_fact()[name] for name in ("pcie-links", "ib-cards"))
SHELLS = [["dash"], ["bash"], ["busybox", "sh"]]
GPU, CARD, PLAIN, PORT = "0000:19:00.0", "0000:1a:00.0", "0000:1b:00.0", "0000:18:01.0"


def device(at: Path, kind: str, lanes: str, speed: str = "32.0 GT/s PCIe") -> None:
    at.mkdir(parents=True)
    for name, text in {
        "class": f"0x{kind}00",
        "vendor": "0x10de",
        "device": "0x2330",
        "current_link_width": lanes,
        "max_link_width": "16",
        "current_link_speed": speed,
        "max_link_speed": "32 GT/s",
    }.items():
        (at / name).write_text(f"{text}\n")


@pytest.mark.parametrize("shell", [each for each in SHELLS if shutil.which(each[0])], ids=" ".join)
def test_the_way_of_each_device(shell: Sequence[str], tmp_path: Path) -> None:
    bus, tree = tmp_path / "bus", tmp_path / "tree/pci0000:00"
    device(tree / PORT, "0604", "8")
    device(tree / PORT / GPU, "0302", "16")
    device(tree / CARD, "0200", "16", "Unknown")
    (tree / CARD / "infiniband").mkdir()
    device(tree / PLAIN, "0200", "16")
    (tree / "0000:00:1f.0").mkdir()  # a device without a link
    (tree / "0000:00:1f.0/class").write_text("0x030200\n")
    bus.mkdir()
    for at in (PORT, f"{PORT}/{GPU}", CARD, PLAIN, "0000:00:1f.0"):
        (bus / Path(at).name).symlink_to(tree / at)
    (bus / "0000:99:00.0").symlink_to(tree / "gone")
    assert isinstance(PCIE_LINKS.command, Run)
    text = PCIE_LINKS.command.text(Ask("here")).replace("/sys/bus/pci/devices", str(bus))
    done = subprocess.run([*shell, "-c", text], capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == ""
    found = {at: astuple(link) for at, link in printed(PCIE_LINKS, done.stdout).items()}
    assert found == {
        GPU: ("0302 10de2330", 8, 16, 32.0, 32.0, PORT),
        CARD: ("0200 10de2330", 16, 16, 0.0, 32.0, CARD),
    }


@pytest.mark.parametrize("shell", [each for each in SHELLS if shutil.which(each[0])], ids=" ".join)
def test_what_ranks_can_do_with_a_card(shell: Sequence[str], tmp_path: Path) -> None:
    texts = {
        "infiniband/mlx5_0/ports/1/link_layer": "Ethernet",
        "infiniband/mlx5_0/ports/1/gids/0": "0000:0000:0000:0000:0000:0000:0000:0000",
        "infiniband/mlx5_0/ports/1/gids/3": "0000:0000:0000:0000:0000:ffff:0a00:0001",
        "infiniband/mlx5_0/ports/1/gid_attrs/types/3": "RoCE v2",
        "infiniband/mlx5_0/ports/1/gid_attrs/ndevs/3": "rail0",
        "infiniband/mlx5_0/fw_ver": "28.41.1000",
        "infiniband/mlx5_0/board_id": "MT_0000000838",
        "infiniband/mlx5_1/ports/1/link_layer": "InfiniBand",
        "infiniband/mlx5_1/ports/1/gids/0": "fe80:0000:0000:0000:0000:0000:0000:0001",
        "infiniband_verbs/uverbs0/ibdev": "mlx5_0",
        "infiniband_verbs/uverbs1/ibdev": "mlx5_1",
        "dev/uverbs0": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    assert isinstance(IB_CARDS.command, Run)
    text = IB_CARDS.command.text(Ask("here")).replace("/sys/class/infiniband", f"{tmp_path}/infiniband")
    text = text.replace("/dev/infiniband/", f"{tmp_path}/dev/")
    done = subprocess.run([*shell, "-c", text], capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == ""
    found = {name: astuple(card) for name, card in printed(IB_CARDS, done.stdout).items()}
    gid = (3, "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2", "rail0")
    assert found == {
        "mlx5_0": (False, "MT_0000000838", "28.41.1000", {1: (gid,)}),
        "mlx5_1": (True, "", "", {}),
    }

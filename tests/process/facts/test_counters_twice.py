"""The script that reads counters twice, run by the shells of this machine on a tree that grows meanwhile."""

import shutil
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from checks.counters import COUNTS
from doctor.api import Ask, Run
from tests.support.captures import printed

SHELLS = [["dash"], ["bash"], ["busybox", "sh"]]
GPU, PORT, DISK = "0000:19:00.0", "0000:18:01.0", "0000:00:17.0"
MOUNTS = """device /dev/sda1 mounted on / with fstype ext4
device srv:/data mounted on /data with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,proto=tcp
\tage:\t13968
\tevents:\t52 226 0 0 1
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 832 0 1 0 11 6428 6428 0 12154 0 24 26 5726
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 1298 {resent} 2 207680 1210292152 6 79386 79407 0
\t      ACCESS: 2927395007 2927394995 0 526931094212 362996810236 18446743919241604546 1667369447 1953587717
device tmpfs mounted on /run with fstype tmpfs
"""


def aer(total: int) -> dict[str, str]:
    texts = {"correctable": "COR", "nonfatal": "NONFATAL", "fatal": "FATAL"}
    return {
        f"aer_dev_{name}": f"RxErr {total}\nTOTAL_ERR_{word} {total if word == 'COR' else 0}\n"
        for name, word in texts.items()
    }


def put(root: Path, errors: int) -> None:
    texts: dict[str, str] = {
        f"tree/{PORT}/class": "0x060400\n",
        f"tree/{PORT}/{GPU}/class": "0x030200\n",
        f"tree/{DISK}/class": "0x010601\n",
        **{f"tree/{PORT}/{name}": text for name, text in aer(1).items()},
        **{f"tree/{PORT}/{GPU}/{name}": text for name, text in aer(errors).items()},
        **{f"tree/{DISK}/{name}": text for name, text in aer(errors).items()},
        "edac/mc0/ce_count": f"{errors}\n",
        "edac/mc0/dimm3/dimm_ce_count": f"{errors}\n",
        "ib/mlx5_0/ports/1/hw_counters/packet_seq_err": f"{errors}\n",
        "ib/mlx5_0/ports/1/hw_counters/lifespan": "12\n",
        "net/eth0/statistics/rx_crc_errors": f"{errors}\n",
        "net/eth0/device/here": "",
        "net/lo/statistics/rx_crc_errors": "7\n",
        "mountstats": MOUNTS.format(resent=1298 + errors),
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / f"{name}.new").write_text(text)
        (root / f"{name}.new").rename(root / name)


def read(shell: Sequence[str], places: Mapping[str, str], seconds: float = 1.0) -> str:
    assert isinstance(COUNTS.command, Run)
    text = COUNTS.command.text(Ask("here")).replace("sleep 8", f"sleep {seconds}")
    for place, other in places.items():
        text = text.replace(place, other)
    done = subprocess.run([*shell, "-c", text], capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("shell", [each for each in SHELLS if shutil.which(each[0])], ids=" ".join)
def test_what_is_read(shell: Sequence[str], tmp_path: Path) -> None:
    put(tmp_path, 5)
    (tmp_path / "bus").mkdir()
    for at in (PORT, f"{PORT}/{GPU}", DISK):
        (tmp_path / "bus" / Path(at).name).symlink_to(tmp_path / "tree" / at)
    places = {
        "/sys/bus/pci/devices": f"{tmp_path}/bus",
        "/sys/devices/system/edac/mc": f"{tmp_path}/edac",
        "#*/mc/": "#*/edac/",
        "/sys/class/infiniband": f"{tmp_path}/ib",
        "/sys/class/net": f"{tmp_path}/net",
        "/proc/self/mountstats": f"{tmp_path}/mountstats",
    }
    grow = threading.Timer(0.5, put, (tmp_path, 25))
    grow.start()
    started = time.monotonic()
    first, last = printed(COUNTS, read(shell, places, 2.0))
    assert time.monotonic() - started < 20
    assert first.boot == last.boot
    assert last.at - first.at in (1, 2, 3)
    assert {name: (value, last.named[name]) for name, value in first.named.items()} == {
        f"aer {GPU} {GPU} correctable": (5, 25),
        f"aer {GPU} {GPU} nonfatal": (0, 0),
        f"aer {GPU} {GPU} fatal": (0, 0),
        f"aer {GPU} {PORT} correctable": (1, 1),
        f"aer {GPU} {PORT} nonfatal": (0, 0),
        f"aer {GPU} {PORT} fatal": (0, 0),
        "edac mc0": (5, 25),
        "edac mc0/dimm3": (5, 25),
        "ib mlx5_0 1 packet_seq_err": (5, 25),
        "net eth0": (5, 25),
        "nfs srv:/data /data asked": (2927396306, 2927396306),
        "nfs srv:/data /data resent": (5, 25),
        "nfs srv:/data /data unanswered": (2, 2),
        "nfs srv:/data /data waited": (1667448833, 1667448833),
    }


def test_a_machine_without_any_of_it(tmp_path: Path) -> None:
    nothing = dict.fromkeys(
        ("/sys/bus", "/sys/class", "/sys/devices", "/proc/self/mountstats"), f"{tmp_path}/none"
    )
    assert [each.named for each in printed(COUNTS, read(["sh"], nothing))] == [{}, {}]

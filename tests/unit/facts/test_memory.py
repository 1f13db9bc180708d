"""Parsers of memory, swap, file systems and shared memory, on real output."""

import pytest

from doctor.errors import UnreadableOutput
from doctor.facts.memory import FULL, MB, MEMORY, SEGMENTS, SPACES, SWAP, Memory, Segment, Space, Swap
from tests.support.captures import held, printed, sample

GB = 1024 * MB
MEMINFO = "MemTotal:       24684084 kB\nMemFree:        23645104 kB\nMemAvailable:   24081708 kB\n"
V2, V1 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/memory"
TOTAL, AVAILABLE = 24684084 * 1024, 24081708 * 1024


@pytest.mark.parametrize(
    ("files", "memory"),
    [
        ({}, Memory(TOTAL, AVAILABLE, False, AVAILABLE)),
        ({f"{V2}.max": "max"}, Memory(TOTAL, AVAILABLE, False, AVAILABLE)),
        ({f"{V2}.max": str(GB)}, Memory(GB, GB, True, AVAILABLE)),
        ({f"{V2}.max": str(GB), f"{V2}.current": str(GB // 2)}, Memory(GB, GB // 2, True, AVAILABLE)),
        (
            {
                f"{V2}.max": str(GB),
                f"{V2}.current": str(GB),
                f"{V2}.stat": f"anon 5\ninactive_file {GB // 4}\n",
            },
            Memory(GB, GB // 4, True, AVAILABLE),
        ),
        (
            {
                f"{V1}.limit_in_bytes": str(GB),
                f"{V1}.usage_in_bytes": str(GB),
                f"{V1}.stat": f"inactive_file 1\ntotal_inactive_file {GB // 8}\n",
            },
            Memory(GB, GB // 8, True, AVAILABLE),
        ),
        ({f"{V1}.limit_in_bytes": "9223372036854771712"}, Memory(TOTAL, AVAILABLE, False, AVAILABLE)),
        ({f"{V2}.max": "9" * 5000}, Memory(TOTAL, AVAILABLE, False, AVAILABLE)),
        ({f"{V2}.max": "[N/A]"}, Memory(TOTAL, AVAILABLE, False, AVAILABLE)),
    ],
)
def test_memory(files: dict[str, str], memory: Memory) -> None:
    assert held(MEMORY, {"/proc/meminfo": MEMINFO} | files) == memory


def test_memory_of_an_old_kernel_and_without_a_total() -> None:
    old = "\n".join(line for line in MEMINFO.splitlines() if "Available" not in line)
    assert held(MEMORY, {"/proc/meminfo": old}).available == 23645104 * 1024
    with pytest.raises(UnreadableOutput, match="MemTotal"):
        held(MEMORY, {"/proc/meminfo": "MemTotal: [N/A]"})


@pytest.mark.parametrize(
    ("rows", "swap"),
    [
        ("", Swap(0, 0, ())),
        ("/dev/vdb partition 1024 512 -2", Swap(MB, MB // 2, ("/dev/vdb",))),
        ("/dev/zram0 partition 1024 512 100", Swap(0, 0, ())),
        ("/a file 1024 0 -2\n/b file 2048 1024 -3", Swap(3 * MB, MB, ("/a", "/b"))),
        (f"/a file {'9' * 5000} 0 -2\n/b file N/A 0 -3", Swap(0, 0, ())),
    ],
)
def test_swap(rows: str, swap: Swap) -> None:
    assert held(SWAP, {"/proc/swaps": f"Filename Type Size Used Priority\n{rows}"}) == swap


def test_spaces() -> None:
    shm = sample("host/df_kP_dev_shm_64M.txt").splitlines()[-1]
    spaces = printed(
        SPACES,
        f"path yes /dev/shm\n{shm}\n"
        "path no /home/with space\n/dev/mapper/vg-home 1000 900 100 90% /home/with space\n"
        "remote nfs4 /data\ngone /root\n",
    )
    assert spaces.at("/dev/shm") == Space("/dev/shm", "/dev/shm", 64 * MB, 64 * MB, True)
    assert spaces.at("/home/with space") == Space(
        "/home/with space", "/home/with space", 1000 * 1024, 100 * 1024, False
    )
    assert (spaces.remote, spaces.gone, spaces.at("/data")) == (("/data",), ("/root",), None)


@pytest.mark.parametrize("row", ["", "df: /tmp: No such file", "/dev/vda [N/A] 0 0 - /", "磁盘已满"])
def test_spaces_without_a_row_of_df(row: str) -> None:
    with pytest.raises(UnreadableOutput, match="df printed no line for /tmp"):
        printed(SPACES, f"path yes /tmp\n{row}\n")


def test_only_remote_file_systems_are_an_answer_too() -> None:
    spaces = printed(SPACES, "remote nfs4 /tmp\nremote nfs4 /home/u\ngone /dev/shm\n")
    assert (spaces.places, spaces.gone) == ((), ("/dev/shm",))
    with pytest.raises(UnreadableOutput, match="nothing"):
        printed(SPACES, "sh: not found\n")


def test_what_the_kernel_made_read_only_and_what_only_root_may_write() -> None:
    row = "tmpfs 9000 1 8999 1% /tmp"
    spaces = printed(SPACES, f"forced /\nforced /my home\npath closed /tmp\n{row}\n")
    assert spaces.forced == ("/", "/my home")
    assert [(each.path, each.writable, each.closed) for each in spaces.places] == [("/tmp", True, True)]


def test_segments() -> None:
    text = (
        "total 1234\n"
        "drwx------ 2 root root      40 Nov 20 09:00 folder\n"
        "-rw------- 1 anna train 1048576 Nov 20 09:00 nccl-AbC\n"
        "-rw-r--r--. 1 1001 1001 9999999 Nov  2  2025 torch_77_0\n"
        "prw------- 1 root root       0 Nov 20 09:00 pipe\n"
    )
    assert printed(SEGMENTS, text) == (
        Segment("torch_77_0", 9999999, "1001"),
        Segment("nccl-AbC", 1048576, "anna"),
    )
    assert printed(SEGMENTS, "total 0\n") == ()


def test_file_systems_without_room() -> None:
    row = "/dev/nvme1n1   1055762868 1055762868         0     100% /data"
    assert printed(FULL, f"full\n{row}\n") == (Space("/data", "/data", 1055762868 * 1024, 0, True),)
    assert printed(FULL, "full\n") == ()
    with pytest.raises(UnreadableOutput):
        printed(FULL, "sh: awk: not found\n")

"""Rank tables on hosts, read by real shells: their checksums, and a file system that hangs."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.api import Ask, Fact, Run
from doctor.facts.tables import MOST, TABLE_FILES, HostFile
from doctor.job.ranktable import LiveDevice, LiveServer, make_table
from doctor.targets.inventory import read_targets
from doctor.text.textfile import posix_cksum
from tests.support.npu_cluster import FLAT, HOSTS
from tests.support.probing import HERE, ask


def file(text: str) -> HostFile:
    """The file as the fact reads it: the text of a large file is not fetched, any other is stripped."""
    return HostFile(posix_cksum(text.encode()), "" if len(text) > MOST else text.strip())


DEVICES = tuple(LiveDevice(d, FLAT.address(1, d)) for d in range(8))
SMALL = make_table([LiveServer(HOSTS[0], HOSTS[0], DEVICES)], "1.0", "aarch64")
LARGE = SMALL + " " * MOST
BOM = "\ufeff" + SMALL


# The checksum, and the file as given.


@given(st.binary(max_size=2000))
def test_cksum(data: bytes) -> None:
    said = subprocess.run(["cksum"], input=data, capture_output=True, check=True).stdout.split()[0]
    assert posix_cksum(data) == said.decode()


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65536, 3_000_001])
def test_cksum_counts_the_length(size: int) -> None:
    said = subprocess.run(["cksum"], input=bytes(size), capture_output=True, check=True).stdout.split()[0]
    assert posix_cksum(bytes(size)) == said.decode()


def test_the_table_given_has_the_checksum_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "hccl.json"
    path.write_bytes(BOM.replace("\n", "\r\n").encode())
    found = read_targets((), None, None, False, (), {}, path).wishes.table
    assert found is not None
    assert not found.text.startswith("\ufeff")
    said = subprocess.run(["cksum", path], capture_output=True, text=True, check=True).stdout
    assert found.checksum == said.split()[0]


# The files on the hosts.


def on_this_machine(paths: Sequence[str]) -> Fact[Mapping[str, HostFile]]:
    """The fact, read for these paths."""
    assert isinstance(TABLE_FILES.command, Run)
    return replace(TABLE_FILES, command=Run(TABLE_FILES.command.text(Ask("here", tables=tuple(paths)))))


@pytest.mark.parametrize("shell", HERE)
def test_files_are_reported_with_their_checksum_and_text(shell: str, tmp_path: Path) -> None:
    texts = {"small.json": SMALL, "large.json": LARGE, "bom.json": BOM}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "link.json").symlink_to("small.json")
    (tmp_path / "folder").mkdir()
    names = [*texts, "link.json", "none it's.json", "folder"]
    fact = on_this_machine([str(tmp_path / name) for name in names])
    heard = ask([fact], shell)
    told = fact.parse(heard.captures["tables"])
    assert {Path(path).name: found for path, found in told.items()} == {
        **{name: file(text) for name, text in texts.items()},
        "link.json": replace(file(SMALL), link=True),
        "none it's.json": HostFile("", trouble="there is no such file"),
        "folder": HostFile("", trouble="it cannot be read"),
    }


@pytest.mark.parametrize("shell", HERE)
def test_a_hanging_file_system_loses_only_its_own_fact(shell: str, tmp_path: Path) -> None:
    """No signal can reach the process that reads the file, and the process keeps its descriptors open."""
    fake = tmp_path / "cksum"
    fake.write_text("#!/bin/sh\nsetsid sleep 60 >/proc/$PPID/fd/1 &\nexec setsid sleep 60\n")
    fake.chmod(0o755)
    (tmp_path / "hccl.json").write_text(SMALL)
    others = [
        Fact(name, Run(f"echo {name}"), lambda capture: capture.stdout, slow=slow, timeout=seconds)
        for name, slow, seconds in (("longest", True, 60), ("shortest", True, 1))
    ]
    now = Fact("now", Run("date +%s"), lambda capture: capture.stdout)
    began, began_at = time.monotonic(), time.time()
    heard = ask(
        [on_this_machine([str(tmp_path / "hccl.json")]), *others, now],
        shell,
        {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert time.monotonic() - began < 30
    assert heard.complete
    texts = {name: capture.stdout for name, capture in heard.captures.items() if name != "tables"}
    assert int(texts.pop("now")) < began_at + 30, "it waits for nobody"
    assert texts == {"longest": "longest", "shortest": "shortest"}
    assert heard.missing["tables"].reason == "its command did not end within 4 s"

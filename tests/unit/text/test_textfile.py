"""Files that are read: bounded in size and in time, whatever the name leads to."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.errors import UsageError
from doctor.job.launch.files import read_launch_files
from doctor.judge.registry import find_checks
from doctor.recording import load
from doctor.targets.hostfile import read_hostfile
from doctor.targets.inventory import table_file
from doctor.targets.inventoryfile import read_inventory
from doctor.text import textfile
from doctor.text.textfile import read_bytes, read_text
from doctor.text.yamlfile import read_yaml
from doctor.transport.ssh.config import SshConfig
from doctor.transport.ssh.keys import _load as load_key
from doctor.transport.ssh.known_hosts import KnownHosts
from doctor.transport.ssh.settings import SshSettings

READERS: dict[str, Callable[[Path], object]] = {
    "text": read_text,
    "hostfile": read_hostfile,
    "inventory": read_inventory,
    "yaml": read_yaml,
    "rank table": lambda path: table_file(path, "it"),
    "recording": load,
    "launch": lambda path: read_launch_files([path]),
    "ssh_config": lambda path: SshConfig(SshSettings(config_file=str(path))),
}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textfile, "PATIENCE", 0.2)


def pipe_without_writer(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


PLACES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "zeros": (lambda _: Path("/dev/zero"), "is a binary file, not text"),
    "noise": (lambda _: Path("/dev/urandom"), "is a binary file, not text"),
    "folder": (lambda folder: folder, "is a directory, not a file"),
    "nothing": (lambda folder: folder / "none", "does not exist"),
    "pipe": (pipe_without_writer, "is a pipe that did not end within 0 s"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("place", PLACES)
def test_every_reader_is_bounded(place: str, reader: str, tmp_path: Path) -> None:
    path, why = PLACES[place][0](tmp_path), PLACES[place][1]
    began = time.monotonic()
    with pytest.raises(UsageError) as caught:
        READERS[reader](path)
    assert caught.value.message == f"{path}: {why}"
    assert time.monotonic() - began < 5


def test_what_ssh_reads_beside_its_settings_is_bounded(tmp_path: Path) -> None:
    for place in ("zeros", "noise", "pipe"):
        path = PLACES[place][0](tmp_path)
        assert load_key(path, ()).problem == PLACES[place][1]
        assert KnownHosts().known(["node1"], [str(path)]).entries == ()


def test_a_check_file_that_is_not_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "site.py")
    with pytest.raises(UsageError, match="it is not a file"):
        find_checks([tmp_path])


def test_text_without_end_is_cut_at_the_limit() -> None:
    ear, mouth = os.pipe()

    def flood() -> None:
        with contextlib.suppress(BrokenPipeError), open(mouth, "wb") as pipe:  # closing it writes, too
            while True:
                pipe.write(b"node1\n" * 10_000)

    writer = threading.Thread(target=flood)
    writer.start()
    with pytest.raises(UsageError, match="is larger than 3 MB: is it the right file"):
        read_bytes(Path(f"/dev/fd/{ear}"), 3_000_000)
    os.close(ear)
    writer.join()


@pytest.mark.parametrize("text", [b"", b"node1\n"])
def test_a_pipe_whose_writer_has_gone_is_read_at_once(text: bytes) -> None:
    ear, mouth = os.pipe()
    os.write(mouth, text)
    os.close(mouth)
    assert read_bytes(Path(f"/dev/fd/{ear}")) == text
    os.close(ear)


def test_a_pipe_that_is_never_closed_is_not_awaited_for_ever() -> None:
    ear, mouth = os.pipe()
    os.write(mouth, b"node1\n")
    with pytest.raises(UsageError, match="did not end within"):
        read_bytes(Path(f"/dev/fd/{ear}"))
    os.close(ear)
    os.close(mouth)


def test_a_named_pipe_may_have_a_late_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textfile, "PATIENCE", 30)
    pipe, heard = pipe_without_writer(tmp_path), []
    reader = threading.Thread(target=lambda: heard.append(read_text(pipe)))
    reader.start()
    with open(pipe, "wb", buffering=0) as writer:  # waits for the reader
        writer.write(b"node1\n")
        writer.write(b"node2\n" * 100_000)
    reader.join()
    assert heard == ["node1\n" + "node2\n" * 100_000]

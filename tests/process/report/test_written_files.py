"""The files that a run leaves under the given names: complete, private, and never an old go."""

import json
import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from doctor.recording import Recording, load, save
from tests.support.cases import cases
from tests.support.commands import DOCTOR, doctor, environment
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES, SMALL_SHM

HEALTHY = recording(NAMES)
FILES = ("json", "html", "junit", "markdown", "save", "healthy-hosts", "faulty-hosts")


@pytest.fixture
def replay(tmp_path: Path) -> list[str]:
    return ["check", "--replay", str(saved(HEALTHY, tmp_path / "in.json"))]


def saved(of: Recording, path: Path) -> Path:
    save(of, path)
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def options(folder: Path) -> list[str]:
    return [word for name in FILES for word in (f"--{name}", str(folder / name))]


@pytest.mark.parametrize("old", [True, False])
def test_files_are_for_their_owner_only(old: bool, replay: list[str], tmp_path: Path) -> None:
    if old:
        for name in FILES:
            (tmp_path / name).write_text("of an earlier run")
            (tmp_path / name).chmod(0o666)
    command = [*DOCTOR, *replay, *options(tmp_path), "--report-dir", str(tmp_path / "runs" / "today")]
    ran = subprocess.run(["sh", "-c", 'umask 0; exec "$@"', "sh", *command], capture_output=True, check=False)
    assert ran.returncode == 0
    assert ran.stderr.decode().endswith(f"for others: chmod a+r {tmp_path / 'html'}\n")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == len(FILES) + 1 + 7
    assert {mode(path) for path in files} == {0o600}
    assert {mode(tmp_path / "runs"), mode(tmp_path / "runs" / "today")} == {0o700}


@pytest.mark.parametrize(("umask", "wanted"), [("0", 0o644), ("077", 0o600)])
def test_gauges_are_for_a_service_to_read_as_well(
    umask: str, wanted: int, replay: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "doctor.prom"
    command = [*DOCTOR, *replay, "--prometheus", str(file)]
    ran = subprocess.run(
        ["sh", "-c", f'umask {umask}; exec "$@"', "sh", *command], capture_output=True, check=False
    )
    assert (ran.returncode, mode(file)) == (0, wanted)
    assert file.read_text().endswith("\n")


@pytest.mark.parametrize("name", FILES)
def test_a_link_is_refused_before_any_host_is_asked(name: str, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / name).symlink_to("victim")
    ran = doctor("check", "nowhere.invalid", *options(tmp_path))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"{tmp_path / name}: cannot be written: it is a symbolic link" in ran.stderr
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_disk_that_fills_up_leaves_no_half_file(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk; the names of the faulty hosts fit. Each file fails by
    itself.
    """
    names = [f"node{n}" for n in range(1, 200)]
    made = saved(recording(names, heard={"node2": heard(2, names, spaces=SMALL_SHM)}), tmp_path / "in.json")
    for name in FILES:
        (tmp_path / name).write_text("of an earlier run")
    command = [*DOCTOR, "check", "--replay", str(made), *options(tmp_path), "--strict"]
    limit = 'ulimit -f 1; trap "" XFSZ; exec "$@"'  # 512 or 1024 bytes
    ran = subprocess.run(["sh", "-c", limit, "sh", *command], capture_output=True, text=True, check=False)
    assert ran.returncode == 70
    left = {name: (tmp_path / name).read_text() for name in FILES}
    kept = dict.fromkeys(FILES, "of an earlier run")
    assert left == kept | {"faulty-hosts": "node2\n", "healthy-hosts": ""}
    for name in set(FILES) - {"faulty-hosts"}:
        assert f"{tmp_path / name} could not be written: File too large." in ran.stderr
    assert sorted(os.listdir(tmp_path)) == sorted(["in.json", *FILES])


@cases
def test_an_old_go_does_not_outlive_a_mistake(arguments: tuple[str, ...], tmp_path: Path) -> None:
    old = tmp_path / "healthy"
    old.write_text("node1\n")
    ran = doctor(*arguments, "--healthy-hosts", str(old))
    assert ran.returncode == 2, ran.stderr
    assert old.read_bytes() == b""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_old_go_does_not_outlive_the_end_of_the_doctor(number: signal.Signals, tmp_path: Path) -> None:
    old, mark, tool = tmp_path / "healthy", tmp_path / "asked", tmp_path / "dmesg"
    old.write_text("node1\n")
    tool.write_text(f"#!/bin/sh\n: >{mark}\nexec sleep 30\n")
    tool.chmod(0o755)
    with subprocess.Popen(
        [*DOCTOR, "check", "--local", "--healthy-hosts", str(old)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment({"PATH": f"{tmp_path}:{os.environ['PATH']}"}),
    ) as run:
        try:
            deadline = time.monotonic() + 60
            while not mark.exists() and run.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            assert old.read_bytes() == b"", "while the hosts are asked"
            run.send_signal(number)
            run.wait(60)
        finally:
            run.kill()
    assert old.read_bytes() == b""


def test_a_list_that_is_read_is_not_emptied(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("node1\n")
    ran = doctor("check", "-F", str(hosts), "--healthy-hosts", str(hosts))
    assert (ran.returncode, "--healthy-hosts and --hostfile name the same file" in ran.stderr) == (2, True)
    assert hosts.read_text() == "node1\n"
    assert doctor("check", "-F./hosts", "--healthy-hosts=hosts", "--nonsense", cwd=tmp_path).returncode == 2
    assert hosts.read_text() == "node1\n"


def test_places_that_are_not_files_are_written_to(replay: list[str], tmp_path: Path) -> None:
    pipe, out = tmp_path / "pipe", tmp_path / "out"
    os.mkfifo(pipe)
    script = 'cat "$PIPE" >"$COPY" & "$@" --faulty-hosts /dev/null --save /dev/fd/3 3>"$SAVED"; wait'
    command = [*DOCTOR, *replay, "-q", "--json", "/dev/stdout", "--healthy-hosts", str(pipe)]
    places = {"PIPE": str(pipe), "COPY": str(tmp_path / "copy"), "SAVED": str(tmp_path / "saved")}
    with open(out, "wb") as stdout:
        stdout.write(b"before\n")
        stdout.flush()
        subprocess.run(
            ["bash", "-c", script, "bash", *command],
            stdout=stdout,
            env=environment(places),
            timeout=60,
            check=True,
        )
    first, _, rest = out.read_bytes().partition(b"\n")
    assert (first, json.loads(rest)["verdict"]) == (b"before", "healthy")
    assert (tmp_path / "copy").read_text().split() == list(NAMES)
    assert load(tmp_path / "saved") == HEALTHY
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)
    assert stat.S_ISCHR(os.lstat("/dev/null").st_mode)

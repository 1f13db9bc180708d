"""The script that fetches logs, run by the shells of hosts."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from doctor.logs.fetch.script import LogRequest, fetch_script
from doctor.logs.fetch.unpack import HostLogs, unpack
from doctor.model import Answer, AnswerEnd
from doctor.probe import new_token
from tests.support.cases import cases

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


def fetched(
    wanted: LogRequest,
    folder: Path,
    shell: str = "sh",
    env: Mapping[str, str] | None = None,
    user: int | None = None,
) -> HostLogs:
    token = new_token()
    script = fetch_script(wanted, token)
    command = [shell, *(["sh"] if shell == "busybox" else []), "-c", script.command]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, **(env or {})},
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    ) as ran:
        assert ran.stdin
        assert ran.stdout
        ran.stdin.write(script.stdin)
        ran.stdin.flush()
        out = b""
        while not out.endswith(script.last_line + b"\n") and (line := ran.stdout.readline()):
            out += line
        ran.stdin.close()
    return unpack(Answer("here", out, b"", 0, AnswerEnd.DONE, 0.0, 1.0), token, folder, wanted.a_host)


def texts(found: HostLogs) -> dict[str, bytes]:
    return {Path(name).name: path.read_bytes() for path, name in found.files.items()}


@pytest.mark.parametrize("shell", SHELLS)
def test_globs_folders_and_odd_names(shell: str, tmp_path: Path) -> None:
    jobs = tmp_path / "my jobs"
    (jobs / "attempt_0" / "3").mkdir(parents=True)
    (jobs / "attempt_0" / "3" / "stderr.log").write_bytes(b"deep\n")
    (jobs / "a $(touch pwned) `id`;*.log").write_bytes(b"odd\xff\n")
    (jobs / "empty.log").touch()
    (jobs / "plain.log").write_bytes(b"no line end")
    found = fetched(
        LogRequest((f"{jobs}/*.log", f"{jobs}/attempt_*", f"{jobs}/*.log")), tmp_path / "out", shell
    )
    assert texts(found) == {
        "stderr.log": b"deep\n",
        "a $(touch pwned) `id`;*.log": b"odd\xff\n",
        "plain.log": b"no line end",
    }
    assert found.missed == found.told == ()
    assert not list(tmp_path.rglob("pwned"))


@cases
def test_a_pattern_is_no_command(pattern: str, tmp_path: Path) -> None:
    found = fetched(LogRequest((pattern,)), tmp_path / "out", env={"PWD": str(tmp_path)})
    assert not found.files
    assert not list(tmp_path.rglob("pwned"))
    assert not Path("pwned").exists()


def test_limits_keep_the_end_of_a_file_and_say_so(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"x" * 5000 + b"\nthe end\n")
    (tmp_path / "b.log").write_bytes(b"y" * 900)
    found = fetched(LogRequest((f"{tmp_path}/?.log",), a_file=1000, a_host=1500), tmp_path / "out")
    ((name, data),) = texts(found).items()
    assert (name, len(data)) == ("a.log", 1000)
    assert data.endswith(b"\nthe end\n")
    cut = "only the last 1000 of its 5009 bytes (--max-mb); its line numbers count from there"
    assert any(cut in why for why in found.told)
    assert any("b.log: over the limit of the host" in why for why in found.missed)


def test_only_what_was_written_since(tmp_path: Path) -> None:
    for name, age in (("new.log", 0), ("old.log", 7200)):
        (tmp_path / name).write_bytes(b"x\n")
        when = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (when, when))
    assert set(texts(fetched(LogRequest((f"{tmp_path}/*.log",), minutes=60), tmp_path / "out"))) == {
        "new.log"
    }


def test_the_usual_places_are_those_of_the_login(tmp_path: Path) -> None:
    (tmp_path / "ascend" / "log" / "debug" / "plog").mkdir(parents=True)
    (tmp_path / "ascend" / "log" / "debug" / "plog" / "plog-1_2.log").write_bytes(b"[ERROR] HCCL\n")
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "log_0.txt").write_bytes(b"x\n")
    wanted = LogRequest(minutes=60, a_host=1_000_000, folders=(str(tmp_path / "job"),))
    found = fetched(wanted, tmp_path / "out", env={"HOME": str(tmp_path)})
    assert {"plog-1_2.log", "log_0.txt"} <= set(texts(found))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"x\n")
    (tmp_path / "a.log").chmod(0)
    found = fetched(LogRequest((f"{tmp_path}/*.log",)), tmp_path / "out")
    assert found.missed == (f"{tmp_path}/a.log: may not be read by this user",)


def test_the_script_ends_with_who_asked(tmp_path: Path) -> None:
    """Nothing reads its output, and its stdin ends: it ends, with everything that it started."""
    fifo = tmp_path / "slow.log"
    fifo.write_bytes(os.urandom(3_000_000))
    script = fetch_script(LogRequest((str(fifo),)), new_token())
    with subprocess.Popen(
        ["sh", "-c", script.command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as ran:
        assert ran.stdin
        ran.stdin.write(script.stdin)
        ran.stdin.close()
        assert ran.wait(20) != 0

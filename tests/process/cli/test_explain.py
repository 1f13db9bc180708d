"""`doctor explain` as people type it: logs, codes, messages, stdin, and anything else."""

import json
import resource
import socket
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.cases import cases, from_cases
from tests.support.commands import doctor
from tests.support.paths import ROOT

IN_USE = from_cases(__file__, "IN_USE", str)
TABLE = '{"version": "1.0", "server_count": "1", "server_list": []}'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "a job" / "rank 0.log"
    path.parent.mkdir()
    path.write_text("it begins\n" + IN_USE.format(port=29579))
    return path


def piped(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "doctor", "explain", *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.main
def test_a_log_a_folder_and_stdin_name_the_same_cause(log: Path) -> None:
    for ran in (
        doctor("explain", str(log)),
        doctor("explain", str(log.parent)),
        piped(log.read_text(), "-"),
        piped(log.read_text()),
    ):
        assert ran.returncode == 1, ran.stderr
        assert "torch-port-in-use" in ran.stdout.splitlines()[-1]
        assert "doctor check HOSTS --only port-in-use" in ran.stdout
        assert "--master-port 29579" in ran.stdout


def test_the_manual_shows_what_is_printed() -> None:
    shown = (ROOT / "docs/explain.md").read_text().partition("```console\n")[2].partition("```")[0]
    ran = doctor("explain", "oom", cwd=ROOT / "tests/samples/logs/jobs", env={"COLUMNS": "90"})
    assert shown == f"$ doctor explain oom\n{ran.stdout}$ echo $?\n{ran.returncode}\n"


def test_a_pasted_text_of_several_lines_is_read_as_a_log() -> None:
    ran = doctor("explain", "it begins\n" + IN_USE.format(port=29579))
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "torch-port-in-use" in ran.stdout


def test_json_html_and_markdown(log: Path, tmp_path: Path) -> None:
    page, marks = tmp_path / "x.html", tmp_path / "x.md"
    ran = doctor("explain", str(log), "--json", "-", "--html", str(page), "--markdown", str(marks), "-q")
    data = json.loads(ran.stdout)
    assert (ran.returncode, data["exit_code"], data["schema"], data["verdict"]) == (1, 1, 2, "faulty")
    (finding,) = data["findings"]
    assert (finding["check"], finding["cause"]) == (None, "torch-port-in-use")
    assert "FAIL" in ran.stderr
    assert "torch-port-in-use" in page.read_text()
    assert "torch-port-in-use" in marks.read_text()


def test_a_log_is_not_overwritten_by_its_report(log: Path) -> None:
    before = log.read_text()
    ran = doctor("explain", str(log), "--json", str(log))
    assert ran.returncode == 2
    assert log.read_text() == before


def test_what_nobody_knows_is_shown_and_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("fine\nERROR: the flux of bank 3 is negative\n")
    ran = doctor("explain", str(path))
    assert ran.returncode == 3
    assert "No rule knows the cause; most telling: ERROR: the flux of bank 3 is negative" in ran.stdout
    assert "the flux of bank 3 is negative" in ran.stdout


def test_nothing_wrong_and_nothing_read(tmp_path: Path) -> None:
    (tmp_path / "fine.log").write_text("it begins\nit ends\n")
    (tmp_path / "empty.log").touch()
    fine, empty = (
        doctor("explain", str(tmp_path / "fine.log")),
        doctor("explain", str(tmp_path / "empty.log")),
    )
    assert fine.returncode == 0
    assert "Nothing in what was read complains." in fine.stdout
    assert empty.returncode == 3
    assert "Nothing could be read" in empty.stdout
    assert "healthy" not in (fine.stdout + empty.stdout).lower()


def test_a_code_a_message_a_symptom_and_a_check() -> None:
    for words, title in (
        (["EI0006"], "hccl-ei0006: a message in logs"),
        (["ei", "0006"], "hccl-ei0006: a message in logs"),
        (["exit", "code", "-9"], "torchrun-killed: a message in logs"),
        ([IN_USE.format(port=1).strip()], "torch-port-in-use: a message in logs; can be the cause."),
        (["torch-port-in-use"], "torch-port-in-use: a message in logs; can be the cause."),
        (["shm-small"], "shm-small: a fault"),
    ):
        ran = doctor("explain", *words)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout.startswith(title)


def test_a_message_that_nobody_knows() -> None:
    ran = doctor("explain", "The flux capacitor of quux is misaligned")
    assert ran.returncode == 3
    assert ran.stdout.startswith("No known message matches: The flux capacitor")


@cases
def test_what_cannot_be_explained(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("fine\n")
    (tmp_path / "hccl.json").write_text(TABLE)
    (tmp_path / "hosts").write_text("node1 slots=8\nnode2 slots=8\n")
    ran = doctor("explain", *arguments, cwd=tmp_path)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert ran.stdout == ""


def test_the_right_option_is_named_for_a_rank_table(tmp_path: Path) -> None:
    (tmp_path / "hccl.json").write_text(TABLE)
    ran = doctor("check", "-F", "hccl.json", cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr == "doctor: hccl.json is a rank table. Type: doctor ranktable check hccl.json\n"


def test_own_symptoms(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "quux-misaligned:\n  title: the capacitor is misaligned\n  role: root\n"
        "  any:\n    - [The flux capacitor of quux is misaligned]\n"
        "  example: The flux capacitor of quux is misaligned\n"
    )
    ran = doctor("explain", "--symptoms", str(tmp_path), "The flux capacitor of quux is misaligned")
    assert ran.returncode == 0
    assert ran.stdout.startswith("quux-misaligned: a message in logs; can be the cause.")


def listening() -> socket.socket:
    """A port below those that the kernel gives away: one of those would itself be a fault."""
    for port in range(21_000, 21_100):
        with suppress(OSError):
            return socket.create_server(("", port))
    raise AssertionError("no port is free")


def test_the_checks_are_made_on_a_host(log: Path) -> None:
    with listening() as taken:
        port = taken.getsockname()[1]
        log.write_text(IN_USE.format(port=port))
        proved = doctor("explain", str(log), "--check", "localhost", "-q")
    gone = doctor("explain", str(log), "--check", "localhost", "-q", "--json", "-")
    assert proved.returncode == gone.returncode == 1
    assert f"proved: port-in-use fails on localhost: port {port}" in " ".join(proved.stdout.split())
    data = json.loads(gone.stdout)
    assert data["findings"][0]["logs"]["proved"]["on_hosts"] in ("not seen any more", "not examined")


@pytest.mark.usefixtures("log")
def test_logs_are_fetched_and_nothing_stays(tmp_path: Path) -> None:
    pattern = str(tmp_path / "*" / "rank*.log")
    env = {"TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    ran = doctor("logs", "--local", "--path", pattern, env=env)
    assert ran.returncode == 1, ran.stderr
    assert "rank 0.log:2:" in "".join(ran.stdout.split()).replace("rank0", "rank 0")
    assert not list((tmp_path / "tmp").iterdir())


def test_fetched_logs_are_kept(log: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    ran = doctor("logs", "--local", "--path", str(log), "--save", str(kept), "-q")
    assert ran.returncode == 1
    (copy,) = [path for path in kept.rglob("*") if path.is_file()]
    assert copy.read_text() == log.read_text()
    again = doctor("logs", "--local", "--path", str(log), "--save", str(kept))
    assert again.returncode == 2
    assert "is not empty" in again.stderr


def test_a_log_that_was_not_fetched_is_no_all_clear(tmp_path: Path) -> None:
    for number in range(12):
        lines = [f"step {step} loss {2 / step:.4f}" for step in range(1, 500)]
        (tmp_path / f"rank{number}.log").write_text("\n".join(lines) + "\n")
    whole = doctor("logs", "--local", "--path", str(tmp_path / "rank*.log"))
    assert (whole.returncode, whole.stderr) == (0, "")
    part = doctor("logs", "--local", "--path", str(tmp_path / "rank*.log"), "--max-mb", "0.01")
    assert part.returncode == 3
    assert "Nothing complains, but not all was read" in part.stdout
    assert "over the limit of the host (--max-mb)" in " ".join(part.stdout.split())


def test_no_log_is_found(tmp_path: Path) -> None:
    ran = doctor("logs", "--local", "--path", str(tmp_path / "none*"))
    assert ran.returncode == 3
    assert "No log of a job was found" in ran.stdout
    assert f"looked in {tmp_path}/none*" in " ".join(ran.stdout.split())


@pytest.mark.parametrize("byte", [pytest.param(b"x", marks=pytest.mark.long), b"\0"])
def test_a_small_archive_of_gigabytes_is_soon_left(tmp_path: Path, byte: bytes) -> None:
    """Its content may complain: the report says that it was not read to its end, and gives no all-clear."""
    bomb = tmp_path / "logs.zip"
    packed = zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED)
    with packed as archive, archive.open("train.log", "w", force_zip64=True) as log:
        for _ in range(1 << 10):
            log.write(byte * (1 << 20))
    assert bomb.stat().st_size < 2 << 20
    ran = subprocess.run(
        ["timeout", "120", sys.executable, "-m", "doctor", "explain", str(bomb)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 3, ran.stderr
    assert "train.log: unpacks to more than 400 times its size" in ran.stdout


def test_reading_ends_at_the_deadline(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"step {step} loss {2 / step:.4f}\n" for step in range(1, 1_000_000)))
    ran = doctor("explain", str(path), "--deadline", "1")
    assert ran.returncode == 3
    assert "train.log: the --deadline came before its end" in ran.stdout


def test_a_folder_without_a_log_of_a_job_is_not_clean(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("How to build it\n")
    run = doctor("explain", str(tmp_path))
    assert run.returncode == 3
    assert "UNKNOWN  No log of a job was found" in run.stdout
    assert "readme.txt: 1 line" in run.stdout
    (tmp_path / "job.log").write_text("step 1 loss 2.5\nstep 2 loss 2.4\n")
    assert doctor("explain", str(tmp_path)).returncode == 0

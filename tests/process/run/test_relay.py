"""The command under `doctor run` is the same command: words, variables, streams, exit code, signals."""

import contextlib
import json
import os
import signal
import subprocess
import uuid
from functools import partial
from pathlib import Path

import pytest

from tests.support.cases import from_cases
from tests.support.command import (
    AT_ONCE,
    PYTHON,
    SECONDS,
    await_text,
    await_true,
    both,
    ran,
    ready,
    relays,
    started,
)
from tests.support.commands import DOCTOR

FORWARDED = ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "CONT")
ODD = "import os, sys; os.write(1, bytes(range(256)) * 9000); os.write(2, b'\\xff\\0err'); sys.exit(5)"


def test_output_is_equal_byte_for_byte_and_stays_apart() -> None:
    bare, under = both([PYTHON, "-c", ODD])
    assert (under.code, under.out, under.err[: len(bare.err)]) == (bare.code, bare.out, bare.err)
    assert (bare.code, len(bare.out)) == (5, 256 * 9000)


def test_words_variables_folder_and_umask(tmp_path: Path) -> None:
    shown = "import os, sys; print(sys.argv, sorted(os.environb.items()), os.getcwd(), os.umask(0))"
    words = [PYTHON, "-I", "-c", shown, "--help", "", "a b", "{x}", "$HOME", "--", "\udcff\n"]
    env = {"PATH": os.environ["PATH"], "EMPTY": "", "ODD": "\udcfe=\n"}
    bare, under = both(words, env=env, cwd=tmp_path, umask=0o027)
    assert bare.out == under.out
    assert b"--help" in bare.out


def test_the_locale_is_as_it_was() -> None:
    """Python itself sets LC_CTYPE in the C locale."""
    bare, under = both(["env"], env={"PATH": os.environ["PATH"]})
    assert sorted(bare.out.split()) == sorted(under.out.split())


def test_stdin_and_further_descriptors_are_passed_on(tmp_path: Path) -> None:
    given = os.urandom(300_000)
    (tmp_path / "more").write_bytes(b"three")
    with open(tmp_path / "more", "rb") as more:
        shell = f"cat; cat <&{more.fileno()}"
        under = ran([*AT_ONCE, "bash", "-c", shell], given, pass_fds=(more.fileno(),))
    assert under.out == given + b"three"


def test_nobody_else_holds_stdin() -> None:
    """Who writes to a command that reads no more is told so, as without doctor."""
    script = f'({{ yes; echo "$?" >&2; }} | {" ".join(AT_ONCE)} head -1); exit 0'
    under = ran(["bash", "-c", script])
    assert (under.out, under.err.split()[-1]) == (b"y\n", b"141")


def test_a_reader_that_leaves_is_noticed() -> None:
    script = f"{' '.join(AT_ONCE)} yes | head -1; exit ${{PIPESTATUS[0]}}"
    under = ran(["bash", "-c", script])
    assert (under.code, under.out) == (128 + signal.SIGPIPE, b"y\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_command_that_a_signal_ends(number: int) -> None:
    bare, under = both(["sh", "-c", f"kill -{number} $$"])
    assert bare.code == under.code == -number


def test_commands_that_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "not-executable").write_text("echo no")
    (tmp_path / "no-first-line").write_text("echo yes $1")
    (tmp_path / "no-first-line").chmod(0o700)
    for none in ("no-such-program", ""):
        under = ran([*AT_ONCE, none])
        assert (under.code, b"could not be started" in under.err) == (127, True)
    assert ran([*AT_ONCE, str(tmp_path / "not-executable")]).code == 126
    assert ran([*AT_ONCE, str(tmp_path / "no-first-line"), "one"]).out == b"yes one\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_pipe_of_ours(closed: str, tmp_path: Path) -> None:
    """The command neither waits for it nor gets something from it."""
    code = tmp_path / "code"
    shell = f"cat; echo out; echo err >&2; echo over > {tmp_path}/over"
    line = f"{' '.join(AT_ONCE)} sh -c '{shell}' {closed}; echo $? > {code}"
    ran(["sh", "-c", line])
    assert ((tmp_path / "over").read_text(), code.read_text()) == ("over\n", "0\n")


def test_one_pipe_for_both_streams_keeps_their_order() -> None:
    code = "import os\nfor n in range(2000): os.write(1 + n % 2, b'%d\\n' % n)"
    bare, under = both([PYTHON, "-c", code], stderr=subprocess.STDOUT)
    assert bare.out == under.out


def test_a_file_takes_the_output_as_it_is(tmp_path: Path) -> None:
    with open(tmp_path / "log", "wb") as log:
        log.write(b"before\n")
        log.flush()
        words = ["sh", "-c", "test -f /proc/self/fd/1 && echo to the file; echo error >&2"]
        assert ran([*AT_ONCE, *words], stdout=log, stderr=log).code == 0
    assert (tmp_path / "log").read_text() == "before\nto the file\nerror\n"


def test_a_full_disk_is_the_commands_own_matter(tmp_path: Path) -> None:
    script = f'mount -t tmpfs -o size=64k none {tmp_path} && {{ "$@"; }} > {tmp_path}/log; exit $?'
    if ran(["unshare", "-m", "true"]).code:
        pytest.skip("needs root")
    words = ["dd", "if=/dev/zero", "bs=1M", "count=1", "status=none"]
    bare = ran(["unshare", "-m", "sh", "-c", script, "sh", *words])
    under = ran(["unshare", "-m", "sh", "-c", script, "sh", *AT_ONCE, *words])
    assert (
        (bare.code, b"No space left" in bare.err) == (under.code, b"No space left" in under.err) == (1, True)
    )


COUNTER = from_cases(__file__, "COUNTER", str)


@pytest.mark.parametrize("to_group", [False, True], ids=["to doctor alone", "to the whole group"])
def test_a_signal_reaches_the_command_exactly_once(to_group: bool, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with started([*AT_ONCE, PYTHON, "-c", COUNTER, str(log), *FORWARDED]) as doctor:
        await_text(log, "ready")
        for place, name in enumerate(FORWARDED, start=1):
            number = getattr(signal, f"SIG{name}")
            (os.killpg if to_group else os.kill)(doctor.pid, number)
            await_true(partial(has_lines, log, place + 1), name)
        assert log.read_text().split() == ["ready", *(f"SIG{name}" for name in FORWARDED)]


def has_lines(log: Path, number: int) -> bool:
    return len(log.read_text().split()) >= number


def test_a_signal_that_ends_the_command_ends_doctor_in_the_same_way() -> None:
    with started([*AT_ONCE, "sh", "-c", "echo ready; exec sleep 600"]) as doctor:
        ready(doctor)
        doctor.terminate()
        assert doctor.wait(SECONDS) == -signal.SIGTERM


def test_nohup_stays_in_force(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = "import os, signal, sys; print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    words = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *AT_ONCE, PYTHON, "-c", code]
    assert ran(words).out == b"True\n"
    assert not log.exists()


def test_a_killed_doctor_leaves_the_command_and_its_output_alone(tmp_path: Path) -> None:
    mark = f"mark-{uuid.uuid4()}"
    go, out = tmp_path / "go", tmp_path / "out"
    os.mkfifo(go)
    os.mkfifo(out)
    shell = f"echo one; read line < {go}; echo two; echo three >&2"
    reader = os.open(out, os.O_RDONLY | os.O_NONBLOCK)
    with (
        open(out, "wb") as pipe,
        started(
            [*AT_ONCE, "sh", "-c", shell], stdout=pipe, stderr=pipe, env={**os.environ, "MARK": mark}
        ) as doctor,
    ):
        pipe.close()
        os.set_blocking(reader, True)
        assert os.read(reader, 100) == b"one\n"
        doctor.kill()
        doctor.wait(SECONDS)
        go.write_text("on\n")
        said = b""
        while more := os.read(reader, 100):
            said += more
        os.close(reader)
        assert said == b"two\nthree\n"
        await_true(lambda: not relays(mark), "the end of all processes")


def test_doctor_ends_with_the_command_though_others_hold_its_output(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    with started([*AT_ONCE, "sh", "-c", f"(read line < {go}; echo late) & echo early; exit 4"]) as doctor:
        assert doctor.wait(SECONDS) == 4
        go.write_text("on\n")
        assert doctor.stdout is not None
        assert doctor.stdout.read() == b"early\nlate\n"


def test_nothing_is_left(tmp_path: Path) -> None:
    mark = f"mark-{uuid.uuid4()}"
    env = {**os.environ, "MARK": mark, "TMPDIR": str(tmp_path)}
    under = ran([*AT_ONCE, "sh", "-c", "cat {hostfile}; test $(stat -c %a {hostfile}) = 600"], env=env)
    assert under.code == 0
    assert under.out.endswith(b"slots=1\n")
    await_true(lambda: not relays(mark), "the end of all processes")
    assert list(tmp_path.iterdir()) == []


def test_the_first_process_of_a_container_reaps_and_forwards() -> None:
    if ran(["unshare", "-pf", "--mount-proc", "true"]).code:
        pytest.skip("needs root")
    shell = "(sleep 0.01 & exec true); echo ready; while :; do sleep 0.05; done"
    inside = ["unshare", "-pf", "--mount-proc", "--kill-child", *AT_ONCE, "sh", "-c", shell]
    with started(inside) as process:
        ready(process)
        (doctor,) = map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())

        def zombies() -> bool:
            return any(text.rpartition(")")[2].split()[0] == "Z" for text in _of_namespace(doctor))

        await_true(lambda: not zombies(), "the end of zombies")
        os.kill(doctor, signal.SIGTERM)
        assert process.wait(SECONDS) in (128 + signal.SIGTERM, -signal.SIGTERM)


def _of_namespace(first: int) -> list[str]:
    """/proc/PID/stat of each process in the PID namespace of `first`."""
    space = os.stat(f"/proc/{first}/ns/pid")
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it may end meanwhile
            if os.path.samestat(space, os.stat(path / "ns/pid")):
                found.append((path / "stat").read_text())
    return found


def test_whose_exit_code_it_is(tmp_path: Path) -> None:
    files = ("--json", "run.json", "--junit", "run.xml", "--prometheus", "run.prom")
    said = ran([*DOCTOR, "run", "--no-preflight", *files, "--", "sh", "-c", "exit 7"], cwd=tmp_path)
    assert said.code == 7
    assert said.err.decode().splitlines()[-1].startswith("doctor: the exit code 7 is the job's")
    report = json.loads((tmp_path / "run.json").read_text())
    assert (report["exit_code"], report["verdict"], report["around"]["whose"]) == (7, "inconclusive", "job")
    assert [each["exit_code"] for each in report["around"]["attempts"]] == [7]
    assert 'type="inconclusive"' in (tmp_path / "run.xml").read_text()
    assert 'exit_code{command="run"} 7' in (tmp_path / "run.prom").read_text()
    assert ran([*AT_ONCE, "true"]).err == b""


def test_the_code_stays_the_jobs_if_hosts_cannot_be_asked(tmp_path: Path) -> None:
    hosts = ("node1", "--ssh-config", str(tmp_path / "none"))
    under = ran([*DOCTOR, "run", *hosts, "--no-preflight", "--", "sh", "-c", "exit 9"], cwd=tmp_path)
    assert under.code == 9
    assert b"could not be examined" in under.err or b"could not be fetched" in under.err
    assert under.err.decode().splitlines()[-1].startswith("doctor: the exit code 9 is the job's")


def test_a_report_that_cannot_be_written_is_noticed_before_the_command_starts(tmp_path: Path) -> None:
    for file in ("-", str(tmp_path / "none" / "run.json")):
        under = ran([*DOCTOR, "run", "--no-preflight", "--json", file, "--", "echo", "started"])
        assert (under.code, under.out) == (2, b"")
        assert b"--json" in under.err or b"cannot be written" in under.err


def test_a_folder_that_cannot_be_written_is_said_once_and_not_named(tmp_path: Path) -> None:
    (tmp_path / "doctor-runs").write_text("a file")
    under = ran([*DOCTOR, "run", "--no-preflight", "--", "sh", "-c", "exit 3"], cwd=tmp_path)
    said = under.err.decode()
    assert under.code == 3
    assert said.count("doctor-runs cannot be written") == 1
    assert "the report is in" not in said


def test_without_a_command_nothing_is_done() -> None:
    said = ran([*DOCTOR, "run", "torchrun", "train.py"])
    assert said.code == 2
    assert b"doctor run -- python train.py" in said.err

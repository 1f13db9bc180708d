"""The probe's script in real shells: frames, limits, root, and an end that leaves nothing behind."""

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from doctor.api import Ask, Capture, Fact, Group, Read, Run, files
from doctor.facts.memory import SEGMENTS
from doctor.facts.system import DEVICES, IDENTITY
from doctor.judge.engine import Facts
from doctor.model import HostStatus, MissingFact
from doctor.probe import script
from doctor.probe.frames import FRAME, LAST
from tests.support.captures import every_fact
from tests.support.cases import from_cases
from tests.support.probing import HERE, TOKEN, ask, session, start
from tests.support.probing import answer as listen
from tests.support.recordings import heard as healthy
from tests.support.recordings import recording, report

shells = pytest.mark.parametrize("shell", HERE)


def fact(name: str, shell: str, **more: object) -> Fact[str]:
    return Fact(name, Run(shell), lambda capture: capture.stdout, **more)  # type: ignore[arg-type]


def until(condition: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.02)


def command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def program(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


@shells
def test_the_clock_is_read_again_after_all_else(shell: str) -> None:
    """Also after what counts for seconds, and so cannot be asked with the quick rest."""
    asked = [fact("counts", "sleep 1.2; date +%s.%N", cap=1000), fact(LAST, "date +%s.%N")]
    heard = ask(asked, shell)
    counted, last = (float(heard.captures[name].stdout) for name in ("counts", LAST))
    assert counted <= last


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that an ordinary user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@shells
def test_output_and_exit_code_arrive_as_they_are(shell: str) -> None:
    facts = [
        fact("slow", "sleep 0.2; echo later", slow=True),  # in the pipe that is not the stdin of a command
        fact("plain", "echo hello"),
        fact("quoted", "echo 'it'\"'\"'s' \"$((1 + 1))\" \\$HOME; printf '%s\\n' 'a  b'"),
        fact("no-newline", "printf abc"),
        fact("empty", "true"),
        fact("both", "echo out; echo err >&2; exit 3", ok_rc=(3,)),
        fact("chinese", "echo 设备不存在"),
        fact("bytes", "printf 'a\\377\\033[2Jb'"),
        fact("null", "printf 'a\\0b\\n'"),
        fact("blank-lines", "printf '\\n\\nx\\n\\n\\n'"),
        fact("stdin", "cat; echo ended"),
        fact("big", "i=0; while [ $i -lt 9000 ]; do echo 0123456789; i=$((i+1)); done"),
    ]
    heard = ask(facts, shell)
    assert heard.complete
    assert not heard.missing
    texts = {name: capture.stdout for name, capture in heard.captures.items()}
    assert texts.pop("big") == "\n".join(["0123456789"] * 9000)
    assert texts == {
        "slow": "later",
        "plain": "hello",
        "quoted": "it's 2 $HOME\na  b",
        "no-newline": "abc",
        "empty": "",
        "both": "out",
        "chinese": "设备不存在",
        "bytes": "a\ufffd\x1b[2Jb",
        "null": "ab",
        "blank-lines": "\n\nx",
        "stdin": "ended",
    }
    assert (heard.captures["both"].rc, heard.captures["both"].stderr) == (3, "err")


@shells
def test_a_missing_fact_has_its_reason(shell: str) -> None:
    facts = [
        fact("unknown", "nosuch-command-of-ours -x"),
        fact("directory", "/usr/bin"),
        fact("failed", "echo half; echo reason >&2; exit 4"),
        fact("silent", "(exit 5)"),
        fact("hangs", "sleep 60", timeout=1),
        fact("stubborn", "trap '' TERM; sleep 60", timeout=1),
        fact("flood", "yes", cap=1000),
        fact("flood-cut-at-a-line", "yes", cap=1001),
        fact("flood-read", "yes", cap=1000, partial=True),
        fact("capped", "printf 12345", cap=1000),
        fact("after", "echo still here"),
    ]
    began = time.monotonic()
    heard = ask(facts, shell)
    assert time.monotonic() - began < 300
    assert {name: missing.reason for name, missing in heard.missing.items()} == {
        "directory": "its command is a directory, or may not be executed there",
        "unknown": "its command is not installed there",
        "failed": "its command ended with 4: reason",
        "silent": "its command ended with 5",
        "hangs": "its command did not end within 1 s",
        "stubborn": "its command did not end within 1 s",
        "flood": "its output is larger than 1000 bytes",
        "flood-cut-at-a-line": "its output is larger than 1001 bytes",
    }
    assert heard.captures["flood-read"].truncated
    assert heard.captures["capped"] == Capture("capped", 0, "12345")
    assert heard.captures["after"].stdout == "still here"


@shells
def test_a_slow_fact_that_cannot_be_stopped_loses_only_itself(
    shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("ask", "frames"):
        monkeypatch.setattr(f"doctor.probe.{module}.SLOW_LANE_SECONDS", 1)
    facts = [
        fact("dead", "setsid sleep 60 & exit", slow=True, timeout=70),  # no signal of the probe can reach it
        fact("names", "echo names", slow=True),
        fact("quick", "echo quick"),
        fact(LAST, "echo last"),
    ]
    began = time.monotonic()
    heard = ask([fact("early", "echo early", slow=True), *facts], shell)
    assert time.monotonic() - began < 30
    assert heard.complete
    assert {name: c.stdout for name, c in heard.captures.items()} == {
        "early": "early",
        "names": "names",
        "quick": "quick",
        LAST: "last",
    }
    assert "could not be stopped" in heard.missing["dead"].reason


@shells
def test_root_facts_for_an_ordinary_user(shell: str) -> None:
    facts = [fact("rules", "echo secret", needs_root=True), fact("plain", "echo plain")]
    heard = ask(facts, shell, as_root=False)
    assert heard.missing["rules"].reason == "needs root (--sudo uses sudo -n)"
    assert heard.captures["plain"].stdout == "plain"


@shells
@pytest.mark.parametrize("allowed", [True, False])
def test_sudo_is_asked_once(shell: str, allowed: bool, folder: Path) -> None:
    asked = folder / "asked"
    asked.touch()
    asked.chmod(0o666)
    refusal = 'echo "sudo: a password is required" >&2; exit 1'
    program(
        folder, "sudo", f"printf '%s\\n' \"$1\" >>{asked}; shift; " + ('exec "$@"' if allowed else refusal)
    )
    facts = [
        fact("one", "printf 'it'\"'\"'s one'", needs_root=True),
        fact("two", "echo two; echo why >&2; exit 7", needs_root=True),
        fact("many", "yes", needs_root=True, cap=10, partial=True),
        fact("plain", "echo plain"),
    ]
    heard = ask(facts, shell, {"PATH": f"{folder}:{os.environ['PATH']}"}, sudo=True, as_root=False)
    assert asked.read_text() == "-n\n"
    assert heard.captures["plain"].stdout == "plain"
    if allowed:
        assert heard.sudo == "ok"
        assert heard.captures["one"].stdout == "it's one"
        assert heard.missing["two"].reason == "its command ended with 7: why"
        assert heard.captures["many"].truncated
    else:
        assert heard.sudo == "refused"
        assert {heard.missing[name].reason for name in ("one", "two", "many")} == {"sudo was refused there"}


@shells
def test_the_token_is_in_no_command_line_and_no_environment_has_all_of_it(shell: str, folder: Path) -> None:
    """Other users can read command lines, including that of sudo, so any tool would show it to them there."""
    program(folder, "sudo", 'shift; exec "$@"')
    seen = folder / "seen"
    seen.mkdir(mode=0o777)
    seen.chmod(0o777)
    look = "cat /proc/[0-9]*/{} >{} 2>/dev/null; echo looked"
    facts = [
        fact("plain", look.format("cmdline", seen / "plain")),
        fact("slow", look.format("cmdline", seen / "slow"), slow=True),
        fact("root", look.format("cmdline", seen / "root"), needs_root=True),
        fact("tool", look.format("cmdline", seen / "tool"), group=Group("device", ("/proc",), 5)),
        fact("environment", look.format("environ", seen / "environment")),
        fact("of-root", look.format("environ", seen / "of-root"), needs_root=True),
    ]
    heard = ask(facts, shell, {"PATH": f"{folder}:{os.environ['PATH']}"}, sudo=True, as_root=False)
    assert heard.complete
    assert [heard.captures[f.name].stdout for f in facts] == ["looked"] * len(facts)
    assert sorted(os.listdir(seen)) == sorted(f.name for f in facts)
    for place in seen.iterdir():
        secret = TOKEN[FRAME:] if place.name in ("environment", "of-root") else TOKEN[:FRAME]
        assert secret.encode() not in place.read_bytes(), place.name


@shells
@pytest.mark.parametrize("needs_root", [False, True])
def test_a_payload_that_knows_the_token_of_the_frames_does_not_end_the_answer(
    needs_root: bool, shell: str, folder: Path
) -> None:
    program(folder, "sudo", 'shift; exec "$@"')
    lie = f"printf '\\n%s done\\n' {TOKEN[:FRAME]}"
    facts = [
        fact("liar", lie, needs_root=needs_root),
        fact("plain", "echo plain"),
        fact("late", "echo late", slow=True),
    ]
    heard = ask(facts, shell, {"PATH": f"{folder}:{os.environ['PATH']}"}, sudo=True, as_root=False)
    assert heard.complete
    assert not heard.missing
    assert heard.captures["liar"].stdout == f"\n{TOKEN[:FRAME]} done"
    assert (heard.captures["plain"].stdout, heard.captures["late"].stdout) == ("plain", "late")


@shells
@pytest.mark.parametrize("tools", ["usual", "busybox"])
def test_a_name_with_line_breaks_makes_up_no_file(tools: str, shell: str, folder: Path) -> None:
    if tools == "busybox":
        for applet in ("ls", "env"):
            (folder / applet).symlink_to(str(shutil.which("busybox")))
    name = f"doctor-test-{os.getpid()}"
    odd = Path("/dev/shm", f"{name}\n-rw-r--r-- 1 root root 99999999999 Jan 1 00:00 {name}-2")
    odd.touch()
    try:
        heard = ask([SEGMENTS], shell, {"PATH": f"{folder}:{os.environ['PATH']}"})
    finally:
        odd.unlink()
    found = [segment for segment in SEGMENTS.parse(heard.captures[SEGMENTS.name]) if name in segment.name]
    assert [segment.size for segment in found] == [0]


@shells
def test_a_lost_controller_ends_everything(shell: str) -> None:
    facts = [
        fact("slow", "sleep 61", slow=True, timeout=90),
        fact("stubborn", "trap '' TERM; sleep 62", timeout=90),
    ]
    process = start(facts, shell)
    until(lambda: [command(pid) for pid in session(process.pid)].count("sleep") == 2)  # in two lanes
    process.communicate()  # closes its stdin
    until(lambda: not session(process.pid))


@shells
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_ends_everything(shell: str, number: signal.Signals) -> None:
    """Including processes that `timeout` put into their own groups."""
    process = start(
        [fact("slow", "sleep 63", slow=True, timeout=90), fact("one", "sleep 64", timeout=90)], shell
    )
    until(lambda: [command(pid) for pid in session(process.pid)].count("sleep") == 2)
    os.killpg(process.pid, number)
    until(lambda: not session(process.pid))
    process.communicate()


@shells
def test_nothing_is_left_after_a_whole_answer(shell: str) -> None:
    process = start(list(every_fact().values()), shell)
    listen(process)
    until(lambda: not session(process.pid))


@shells
def test_nothing_is_written_and_every_fact_is_read(shell: str, tmp_path: Path) -> None:
    facts = every_fact()
    folders = {"HOME": tmp_path / "home", "TMPDIR": tmp_path / "tmp"}
    for folder in folders.values():
        folder.mkdir()
    env = {name: str(folder) for name, folder in folders.items()}
    heard = ask(list(facts.values()), shell, env)
    assert heard.complete
    assert [path for folder in folders.values() for path in folder.iterdir()] == []
    values = Facts({"here": heard})
    for name in ("clock", "identity", "kernel", "ports", "limits", "memory", "spaces", "routes", "devices"):
        value = values.get("here", facts[name])
        assert not isinstance(value, MissingFact), value
    broken = [str(v.reason) for f in facts.values() if isinstance(v := values.get("here", f), MissingFact)]
    assert not [reason for reason in broken if "broke" in reason]


def test_files_are_read_by_one_command() -> None:
    facts = [Fact(f"f{n}", Read((f"/proc/{n}", "/proc/version")), lambda c: c.stdout) for n in range(9)]
    text = script(facts, Ask("h"), TOKEN).stdin.decode()
    assert text.count("grep ") == 1
    assert text.count("/proc/version") == 1


def test_the_command_line_works_in_every_login_shell() -> None:
    """csh and fish must read it too: no quotes, no variables, no redirections."""
    assert script([], Ask("h"), TOKEN).command == "exec sh -s"


@shells
def test_facts_of_a_tool_share_their_time_and_are_absent_where_it_has_nothing_to_do(
    shell: str, tmp_path: Path
) -> None:
    (tmp_path / "device0").touch()
    here = Group("device", (f"{tmp_path}/device[0-9]*",), 3)
    elsewhere = Group("other device", (f"{tmp_path}/other[0-9]*",), 3)
    heard = ask(
        [
            fact("first", "echo first", group=here),
            fact("greedy", "sleep 9", group=here, timeout=9),
            fact("late", "echo late", group=here),
            fact("nothing", "echo nothing", group=elsewhere),
            fact("plain", "echo plain"),
        ],
        shell,
    )
    assert heard.complete
    assert heard.captures["first"].stdout == "first"
    assert heard.captures["plain"].stdout == "plain"
    assert {name: (m.reason, m.absent) for name, m in heard.missing.items()} == {
        "greedy": ("its command did not end within 9 s or what was left of the 3 s for its tool", False),
        "late": ("the 3 s for its tool were used up before it", False),
        "nothing": ("there is no other device", True),
    }


GREPS = from_cases(__file__, "GREPS", dict[str, tuple[str, ...]])


@pytest.mark.parametrize("case", GREPS)
def test_a_host_whose_files_cannot_be_read_is_not_examined(case: str, folder: Path) -> None:
    does, says = GREPS[case]
    program(folder, "grep", does)
    names = ["here", "other"]
    heard = ask([IDENTITY, DEVICES], "dash", {"PATH": f"{folder}:{os.environ['PATH']}"})
    assert heard.complete
    assert says in heard.missing["identity"].reason
    whole = healthy(1, names)
    rest = {fact: own for fact, own in whole.captures.items() if fact not in heard.missing}
    of = report(recording(names, heard={"here": replace(whole, captures=rest, missing=heard.missing)}))
    assert of.exit_code == 3
    assert [host.name for host in of.hosts if host.status is HostStatus.UNEXAMINED] == ["here"]
    (told,) = (
        found for found in of.findings if (found.check, found.status.value) == ("probe-incomplete", "warn")
    )
    assert says in told.summary


def test_a_file_that_is_never_read_to_its_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doctor.probe.ask.FILES_SECONDS", 1)
    program(folder, "grep", "exec sleep 60")
    heard = ask([IDENTITY, DEVICES], "dash", {"PATH": f"{folder}:{os.environ['PATH']}"})
    assert {missing.reason for missing in heard.missing.values()} == {
        "reading files did not end within 10 s, or was killed"
    }


def test_the_rest_is_not_asked_of_a_tool_that_hung(tmp_path: Path) -> None:
    (tmp_path / "device0").touch()
    group = Group("device", (f"{tmp_path}/device0",), 9, "tool")
    hung = fact("hung", "echo '@ all hung 10'", group=group)
    heard = ask([hung, fact("later", "echo later", group=group)], "dash")
    assert heard.captures["hung"].stdout == "@ all hung 10"
    assert heard.missing["later"].reason == "not asked: tool had hung before"


@shells
def test_facts_of_a_tool_that_bears_it_are_asked_at_once(shell: str, tmp_path: Path) -> None:
    """Each waits until all of them run, and prints more than a pipe holds."""
    (tmp_path / "device0").touch()
    group = Group("device", (f"{tmp_path}/device0",), 9, "tool", together=True)
    meet = (
        f"echo > {tmp_path}/seen-$$; until set -- {tmp_path}/seen-* && [ $# = 3 ]; do sleep 0.05; done;"
        " head -c 100000 /dev/zero | tr '\\0' x; echo; echo end"
    )
    several = [fact(name, meet, group=group, timeout=8) for name in ("one", "two", "three")]
    heard = ask([fact("first", "echo first", group=group), *several], shell)
    assert (heard.complete, heard.missing, heard.captures["first"].stdout) == (True, {}, "first")
    assert {heard.captures[each.name].stdout[-5:] for each in several} == {"x\nend"}
    hung = [fact("first", "echo '@ all hung 10'", group=group), *several]
    for seen in tmp_path.glob("seen-*"):
        seen.unlink()
    heard = ask(hung, shell)
    assert {m.reason for m in heard.missing.values()} == {"not asked: tool had hung before"}
    assert len(heard.missing) == 3


def test_classes_of_pci_devices_arrive() -> None:
    """Their paths contain colons, like the separator between a path and a line of its file."""
    here = [*Path("/sys/bus/pci/devices").glob("*/class")]
    text = ask([DEVICES], "dash").captures["devices"].stdout
    read = files(Capture("devices", 0, text))
    assert {path for path in read if path.endswith("/class")} == {str(path) for path in here}
    assert all(read[str(path)] == path.read_text().strip() for path in here)

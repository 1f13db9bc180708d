"""How py-spy gets to hosts: from this installation, and from --pyspy for hosts with another CPU."""

import base64
import json
import math
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from doctor.errors import UsageError
from doctor.hang.advice import advice_of
from doctor.hang.judge import judge
from doctor.hang.report_json import hang_part
from doctor.live import pyspy
from doctor.live.agents import LookAgents, LookHost, LookPatience
from doctor.live.evidence import LiveEvidence
from doctor.live.evidence_file import decoded, encoded
from tests.support.hang.programs import AARCH64, ARM, RISCV, X86_64, elf, wheel
from tests.support.hang.reports import text
from tests.support.hang.written import evidence
from tests.unit.live.test_bounds import Said, member

FETCH = "pip download --platform manylinux2014_aarch64 --only-binary=:all: --no-deps 'py-spy<1'"


ON_KUNPENG = elf(AARCH64, bytes(range(256)) * 1000)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A desk with x86_64."""
    path = tmp_path / "py-spy"
    path.write_bytes(elf(X86_64, bytes(range(256)) * 1000))
    monkeypatch.setattr(pyspy, "find", lambda: path)
    return path


@pytest.fixture
def give(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(data: bytes) -> Path:
        path = tmp_path / "given.whl"
        path.write_bytes(data)
        path.chmod(0o644)
        return path

    return write


def brought(lines: tuple[bytes, ...]) -> bytes:
    told = [json.loads(line) for line in lines]
    assert [each["do"] for each in told] == ["tool"] * len(told)
    assert [each.get("last", False) for each in told] == [False] * (len(told) - 1) + [True]
    assert max(map(len, lines)) < 60_000, "a line of srun is no longer"
    return zlib.decompress(b"".join(base64.b64decode(each["data"]) for each in told))


def test_it_is_sent_in_parts_that_make_it_again(installed: Path) -> None:
    lines, why = pyspy.for_host("x86_64")
    assert (brought(lines), why) == (installed.read_bytes(), "")


@pytest.mark.parametrize("given", [ON_KUNPENG, wheel(ON_KUNPENG)], ids=["program", "wheel"])
def test_a_host_of_another_machine_gets_the_file_that_was_given(
    given: bytes, installed: Path, give: Callable[[bytes], Path]
) -> None:
    files = [give(given)]
    pyspy.check_given(files)
    assert brought(pyspy.for_host("aarch64", files)[0]) == ON_KUNPENG
    assert brought(pyspy.for_host("x86_64", files)[0]) == installed.read_bytes()


def test_why_there_is_none(
    installed: Path, give: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    none = "no py-spy for aarch64 is at hand: "
    own = "the one beside doctor is for x86_64"
    assert pyspy.for_host("aarch64") == ((), none + own)
    wrong = give(elf(X86_64))
    assert pyspy.for_host("aarch64", [wrong]) == ((), f"{none}{wrong} is for x86_64; {own}")
    installed.write_bytes(b"\xcf\xfa\xed\xfe of a Mac")
    pyspy.packed.cache_clear()
    assert pyspy.for_host("aarch64") == (
        (),
        f"{none}{installed} is neither a program for Linux nor a wheel with py-spy for Linux",
    )
    monkeypatch.setattr(pyspy, "find", lambda: None)
    assert pyspy.for_host("aarch64") == ((), none + "none is installed beside doctor")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (b"#!/bin/sh\n", "is neither a program for Linux nor a wheel with py-spy for Linux."),
        (b"", "is neither a program for Linux nor"),
        (elf(ARM, bits=32), "is a program for a machine other than x86_64 and aarch64."),
        (elf(RISCV), "is a program for a machine other than"),
        (wheel(elf(ARM, bits=32)), "is a program for a machine other than"),
        (wheel(b"MZ", "py_spy-0.4.3.data/scripts/py-spy.exe"), "is neither a program for Linux nor a wheel"),
        (wheel(ON_KUNPENG)[:-40], "is a damaged wheel."),
        (wheel(ON_KUNPENG).replace(b"\x08\x00", b"\x0e\x00"), "is a damaged wheel."),
    ],
)
def test_a_file_that_is_of_no_use_is_refused(given: bytes, why: str, give: Callable[[bytes], Path]) -> None:
    path = give(given)
    with pytest.raises(UsageError) as told:
        pyspy.check_given([path])
    assert told.value.message.startswith(f"{path} {why}")
    assert FETCH in told.value.hint


def test_a_file_that_others_can_change_is_refused(give: Callable[[bytes], Path]) -> None:
    path = give(ON_KUNPENG)
    path.chmod(0o666)
    with pytest.raises(UsageError, match="others can write to it, and it would run on the hosts as you"):
        pyspy.check_given([path])


def test_a_file_that_is_swapped_after_it_was_examined_is_refused(
    give: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = give(ON_KUNPENG)
    path.chmod(0o666)
    monkeypatch.setattr(pyspy, "why_not_ours", lambda _: "")  # the target of the name a moment before
    pyspy.packed.cache_clear()
    with pytest.raises(UsageError, match="others can write to it, and it would run on the hosts as you"):
        pyspy.check_given([path])


def seen(given: tuple[Path, ...]) -> tuple[LiveEvidence, list[bytes]]:
    """A host that reports aarch64, with one rank; and what was sent to it."""
    found = b'{"say":"found","ranks":1,"machine":"aarch64","memory":true}'
    looked = b'{"say":"look","which":"b","look":{"pid":5,"state":"S"}}'
    unread = b'"unread":["Python stacks: no py-spy was brought, and the host has none"]'
    last = b'{"say":"seen","at":1.0,"apart":2.0,%s}' % unread
    sent: list[bytes] = []

    class Hears(Said):
        def send(self, host: str, line: bytes) -> None:
            if b'"do":"tool"' in line:
                sent.append(line)
                if b'"last":true' in line:
                    self.heard[host] = iter([b'{"say":"armed"}'])
            super().send(host, line)

    session = Hears({"node1": ((member(5), found), (looked, last))})
    agents = LookAgents[LookHost](session, ("node1",), LookPatience(whole=60.0), math.inf, given)
    agents.find(lambda: None)
    agents.look(2.0, lambda: None)
    host = agents.agents["node1"].evidence()
    return LiveEvidence(started="2026-11-20T09:00:00Z", hosts=(host,), asked=("node1",)), sent


def test_a_report_says_what_to_fetch_for_such_a_host(installed: Path, give: Callable[[bytes], Path]) -> None:
    del installed
    without, sent = seen(())
    assert not sent
    for each in (without, decoded(encoded(without), Path("hang.json"))):
        told = judge(each)
        assert FETCH in advice_of(told).commands
        assert "fetch py-spy for aarch64, then look again with --pyspy FILE" in advice_of(told).do
        rights = hang_part(told).rights
        assert rights is not None
        assert "a py-spy for aarch64 (--pyspy FILE): the line of each rank" in rights.more
        assert f"\n{' ' * 17}{FETCH}\n" in text(told, 80), "in one line, to be copied"
        assert (
            "node1: Python stacks: no py-spy for aarch64 is at hand: the one beside doctor is for x86_64"
            in (" ".join(text(told, 200, verbose=True).split()))
        )
    with_it, sent = seen((give(ON_KUNPENG),))
    assert brought(tuple(sent)) == ON_KUNPENG
    assert FETCH not in advice_of(judge(with_it)).commands


def test_hosts_that_need_none_are_told_nothing_of_it() -> None:
    healthy = evidence(["waits", "sleeps"])
    of_its_own = replace(healthy, hosts=tuple(replace(host, lacks="riscv64; rm") for host in healthy.hosts))
    for each in (healthy, of_its_own):
        assert "pip download" not in str(hang_part(judge(each)))


def test_machines_of_programs() -> None:
    assert [pyspy.elf_machine(elf(number)) for number in (62, 183, 3)] == ["x86_64", "aarch64", ""]
    assert pyspy.elf_machine(b"\x7fELF") == ""

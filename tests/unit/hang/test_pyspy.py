"""py-spy on its way to hosts."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path

import pytest

from doctor.hang import pyspy


def elf(machine: int, rest: bytes = b"") -> bytes:
    return b"\x7fELF\x02\x01" + bytes(12) + struct.pack("<H", machine) + rest


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "py-spy"
    path.write_bytes(elf(62, bytes(range(256)) * 1000))
    monkeypatch.setattr(pyspy, "find", lambda: path)
    pyspy.packed.cache_clear()
    return path


def test_it_is_sent_in_parts_that_make_it_again(program: Path) -> None:
    lines, why = pyspy.packed("x86_64")
    assert not why
    told = [json.loads(line) for line in lines]
    assert [each["do"] for each in told] == ["tool"] * len(told)
    assert [each.get("last", False) for each in told] == [False] * (len(told) - 1) + [True]
    data = b"".join(base64.b64decode(each["data"]) for each in told)
    assert zlib.decompress(data) == program.read_bytes()
    assert max(map(len, lines)) < 60_000, "a line of srun is no longer"


def test_another_machine_gets_none(program: Path) -> None:
    assert pyspy.packed("aarch64") == (
        (),
        "the py-spy beside doctor is for x86_64, the host is aarch64",
    )
    program.write_bytes(b"#!/bin/sh\n")
    pyspy.packed.cache_clear()
    assert "is for another system" in pyspy.packed("x86_64")[1]


def test_without_the_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspy, "find", lambda: None)
    pyspy.packed.cache_clear()
    assert "cluster-doctor[hang]" in pyspy.packed("x86_64")[1]


def test_machines_of_programs() -> None:
    assert [pyspy.elf_machine(elf(number)) for number in (62, 183, 3)] == ["x86_64", "aarch64", ""]
    assert pyspy.elf_machine(b"\x7fELF") == ""

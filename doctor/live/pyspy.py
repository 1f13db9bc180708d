"""How py-spy gets to the hosts: a static program from this installation or `--pyspy`, run from memory."""

import base64
import importlib.metadata
import io
import os
import struct
import sysconfig
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path

from doctor.errors import UsageError
from doctor.text.outfile import why_not_ours, why_others_can_change
from doctor.text.textfile import read_bytes

PART = 48_000
"""Bytes of base64 in one line."""
MOST = 64 * 1024 * 1024
LEVEL = 2
"""The level of zlib: a tenth more bytes than level 6, in a third of the time."""
MACHINES = {62: "x86_64", 183: "aarch64"}
"""Architectures as uname prints them, by the e_machine field of ELF."""
_ELF = b"\x7fELF"


def fetch(machine: str) -> str:
    """The command that downloads the wheel for hosts of this architecture. It works on any machine."""
    return f"pip download --platform manylinux2014_{machine} --only-binary=:all: --no-deps 'py-spy<1'"


_HINT = f"For aarch64 hosts, give the file that this downloads: {fetch('aarch64')}"


def for_host(machine: str, given: Sequence[Path] = ()) -> tuple[tuple[bytes, ...], str]:
    """The agent commands that carry py-spy to a host of this architecture, or why there are none."""
    own = find()
    whys = [] if own else ["none is installed beside doctor"]
    for path in (*given, *([own] if own else ())):
        try:
            of, lines = packed(path, given=path in given)
        except UsageError as error:
            whys.append(error.message.removesuffix("."))
            continue
        if of == machine:
            return lines, ""
        whys.append(f"{'the one beside doctor' if path is own else path} is for {of}")
    return (), f"no py-spy for {machine} is at hand: {'; '.join(whys)}"


def check_given(given: Sequence[Path]) -> None:
    """Raises UsageError if a file of --pyspy cannot be used on any host."""
    for path in given:
        _refuse(path, why_not_ours(path))
        packed(path, given=True)


def _refuse(path: Path, why: str) -> None:
    if why:
        raise UsageError(
            f"--pyspy {path}: {why}, and it would run on the hosts as you.",
            "Give a copy that belongs to you and that nobody else can write to.",
        )


def _refuse_opened(path: Path, about: os.stat_result) -> None:
    _refuse(path, why_others_can_change(about))


@cache
def packed(path: Path, *, given: bool = False) -> tuple[str, tuple[bytes, ...]]:
    """The machine that py-spy from this file is for, and the agent commands that carry it to a host. The file
    is the program itself or its wheel, and is read once. If it was `given` with --pyspy, the opened file is
    examined too: its path may have been changed. Raises UsageError.
    """
    examine = partial(_refuse_opened, path) if given else lambda _: None  # our own is as trusted as we are
    program = read_bytes(path, MOST, magic=b"", opened=examine)
    if program.startswith(b"PK"):
        try:
            with zipfile.ZipFile(io.BytesIO(program)) as wheel:
                program = _program_in(wheel)
        except Exception:  # zipfile breaks in many ways
            raise UsageError(f"{path} is a damaged wheel.", _HINT) from None
    machine = elf_machine(program)
    if not machine:
        said = (
            f"is a program for a machine other than {' and '.join(MACHINES.values())}"
            if program.startswith(_ELF)
            else "is neither a program for Linux nor a wheel with py-spy for Linux"
        )
        raise UsageError(f"{path} {said}.", _HINT)
    text = base64.b64encode(zlib.compress(program, LEVEL))
    parts = [text[at : at + PART] for at in range(0, len(text), PART)]
    lines = [b'{"do":"tool","data":"%s"}' % part for part in parts[:-1]]
    return machine, (*lines, b'{"do":"tool","data":"%s","last":true}' % parts[-1])


def _program_in(wheel: zipfile.ZipFile) -> bytes:
    """py-spy from this wheel; empty if the wheel does not contain it."""
    for each in wheel.infolist():
        if each.filename.endswith(".data/scripts/py-spy") and each.file_size <= MOST:
            return wheel.read(each)
    return b""


def find() -> Path | None:
    """The py-spy of the package that is installed in this environment. PATH is not searched."""
    for path in _places():
        if path.is_file() and 0 < path.stat().st_size <= MOST:
            return path
    return None


def _places() -> Iterator[Path]:
    try:
        files = importlib.metadata.files("py-spy") or ()
    except importlib.metadata.PackageNotFoundError:
        files = ()
    yield from (Path(os.fspath(each.locate())) for each in files if each.name == "py-spy")
    yield Path(sysconfig.get_path("scripts"), "py-spy")


def elf_machine(program: bytes) -> str:
    """The architecture of a 64-bit Linux program; empty for anything else."""
    if not program.startswith(_ELF + b"\x02\x01") or len(program) < 20:
        return ""
    return MACHINES.get(struct.unpack_from("<H", program, 18)[0], "")

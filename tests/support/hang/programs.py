"""Wheels of py-spy, and programs that consist of an ELF header, which names an architecture."""

import io
import struct
import zipfile

X86_64, AARCH64, ARM, RISCV = 62, 183, 40, 243


def elf(machine: int, rest: bytes = b"", bits: int = 64) -> bytes:
    return b"\x7fELF" + bytes([bits // 32, 1]) + bytes(12) + struct.pack("<H", machine) + rest


def wheel(program: bytes, name: str = "py_spy-0.4.3.data/scripts/py-spy") -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("py_spy-0.4.3.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr(name, program)
    return made.getvalue()

"""`build.py WHEEL MACHINE FILE`: the single file of a wheel, for every Python that it supports on a machine.

The packages are those of requirements.lock, in the versions for the oldest Python. Compiled modules have the
Python in their names, so those of all Pythons lie side by side. What shiv makes of them is always
the same to the byte.
"""

import hashlib
import io
import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).parent
TOOLS = Path(sysconfig.get_path("scripts"))
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
UNUSED = ("share", "etc")
PROGRAMS = ("py-spy",)
"""What is kept of bin/: the programs that doctor brings to hosts."""
DAMAGED = "this file is cut short or damaged, and nothing was run. Copy it again."
HEAD = f"""\
#!/bin/sh
damaged='{DAMAGED}
'
[ "$(wc -c <"$0")" -eq %12d ] || {{ printf 'doctor: %%s' "$damaged" >&2; exit 70; }}
exec python3 "$0" "$@"
# sha256 %064x
"""
"""The file begins with it. Python finds the zip file that follows by its end, and does not read this. If the
end is missing, Python takes the file for a script: it stops at the second line, and shows it.
"""


def main(wheel: Path, machine: str, file: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        oldest, *newer = PYTHONS
        install(machine, oldest, site, "-c", ROOT / "requirements.lock", wheel)
        pinned = tuple(compiled(site))
        for python in newer:
            own = Path(folder) / python
            install(machine, python, own, "--no-deps", *pinned)
            for module in own.rglob("*.cpython-*.so"):
                target = site / module.relative_to(own)
                if not target.exists():
                    target.write_bytes(module.read_bytes())
        tidy(site)
        pack(site, machine, file)


def install(machine: str, python: str, site: Path, *what: object) -> None:
    platform = ("--python-platform", f"{machine}-manylinux_2_28", "--python-version", python)
    run("uv", "pip", "install", "-q", *platform, "--only-binary", ":all:", "--target", site, *what)


def compiled(site: Path) -> Iterator[str]:
    """The packages that have modules for one Python, with their versions."""
    for module in sorted({module.relative_to(site) for module in site.rglob("*.cpython-*.so")}):
        (record,) = (
            each for each in site.glob("*.dist-info/RECORD") if f"\n{module}," in f"\n{each.read_text()}"
        )
        about = HeaderParser().parsestr((record.parent / "METADATA").read_text())
        yield f"{about['Name']}=={about['Version']}"


def tidy(site: Path) -> None:
    """Leaves out what nothing here runs, and what says how and where this copy was installed."""
    for path in sorted(site.rglob("*"), reverse=True):
        top, *rest = path.relative_to(site).parts
        unused = top in UNUSED or (top == "bin" and rest and rest[0] not in PROGRAMS)
        here = path.name in (".lock", "direct_url.json", "uv_cache.json", "REQUESTED", "INSTALLER")
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif unused or here or path.suffix == ".pyc":
            path.unlink()
    for record in site.glob("*.dist-info/RECORD"):
        lines = record.read_text().splitlines(keepends=True)
        record.write_text("".join(line for line in lines if (site / line.partition(",")[0]).exists()))


def pack(site: Path, machine: str, file: Path) -> None:
    """Has shiv make the file; then our start takes the place of its own."""
    made = site.parent / "made.pyz"
    form = ("--compressed", "--reproducible", "--entry-point", "doctor.__main__:main")
    run("shiv", "--site-packages", site, *form, "--output-file", made)
    start = (HERE / "start.py").read_text().replace("@MACHINE@", machine).replace("@DAMAGED@", DAMAGED)
    body = io.BytesIO((HEAD % (0, 0)).encode())
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(body, "a") as packed:
        for info in old.infolist():
            data = start.encode() if info.filename == "__main__.py" else old.read(info)
            runs = info.external_attr >> 16 & 0o100
            info.external_attr = (0o100755 if runs else 0o100644) << 16  # whatever the umask was
            packed.writestr(info, data, info.compress_type)
    file.write_bytes(signed(body.getvalue()))
    file.chmod(0o755)


def signed(whole: bytes) -> bytes:
    """With its length and its checksum, which leaves out the line that holds it."""
    head, mark, digest = (HEAD % (len(whole), 0)).partition("# sha256 ")
    rest = whole[len(head + mark + digest) :]
    digest = hashlib.sha256(head.encode() + rest).hexdigest()
    return f"{head}{mark}{digest}\n".encode() + rest


def run(*words: object) -> None:
    program, *rest = map(str, words)
    environ = {**os.environ, "SOURCE_DATE_EPOCH": "315532800"}  # 1980, the first day of a zip file
    done = subprocess.run([TOOLS / program, *rest], env=environ, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{program} failed: {(done.stderr or done.stdout).strip()[-2000:]}")


if __name__ == "__main__":
    wheel, machine, file = sys.argv[1:]
    main(Path(wheel), machine, Path(file))

"""`make release`: everything that belongs to a version, in release/VERSION/. It is all there, or nothing is.

`release.py VENV`: its Python runs the tests of demos and docs. The version is that of doctor/__init__.py.
Wheel, sdist and single files are built twice and must be the same to the byte. The tag is made by hand:
docs/releasing.md. Any Python can run this: what it needs is installed once the tree is known to be ready.
"""

import gzip
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from contextlib import suppress
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".venv-release/bin"
MACHINES = ("x86_64", "aarch64")
SHELLS = ("bash", "zsh", "fish")
CURRENT = ("tests/unit/test_readmes.py", "tests/unit/test_quoted_commands.py", "tests/process/test_demo.py")
"""The tests that fail if a demo or a command in the docs is behind."""
WHEN = 315532800
"""1980, the first day of a zip file: the time of every file inside."""
OUTSIDE = {
    "the disk is full": "No space left on device|os error 28",
    "packages could not be fetched (is there a network?)": "Failed to fetch|[Ff]ailed to resolve|"
    "NewConnectionError|error sending request|Could not find a version|No matching distribution",
}
"""What is not the fault of the tree, and what shows it in the words of the tools."""


class Refusal(Exception):
    """Why there is no release, and what to do."""


def main(venv: str) -> None:
    version = own_version()
    target = ROOT / "release" / version
    refuse_unready(version, target)
    target.parent.mkdir(exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as folder:
            made = Path(folder) / version
            make(made, version, venv)
            made.rename(target)
    finally:
        with suppress(OSError):  # not empty, or a place where something is mounted
            target.parent.rmdir()
    print(f"{target.relative_to(ROOT)}: {', '.join(sorted(path.name for path in target.iterdir()))}")


def own_version() -> str:
    (version,) = re.findall(r'^__version__ = "(.+)"$', (ROOT / "doctor/__init__.py").read_text(), re.M)
    return str(version)


def refuse_unready(version: str, target: Path) -> None:
    changed = said("git", "status", "--porcelain").splitlines()
    if changed:
        raise Refusal(f"The tree is not clean ({changed[0][3:]}): commit the change, or take it back.")
    if said("git", "tag", "--list", f"v{version}"):
        raise Refusal(f"v{version} exists: write the new version into doctor/__init__.py.")
    if not re.search(rf"^## {re.escape(version)}$", (ROOT / "CHANGELOG.md").read_text(), re.M):
        raise Refusal(f"CHANGELOG.md has no heading '## {version}': write what is new in it.")
    if target.exists():
        raise Refusal(f"{target.relative_to(ROOT)} is in the way: move it elsewhere.")


def make(made: Path, version: str, venv: str) -> None:
    ready = (f"{venv}/.ready", ".venv-release/.installed", ".venv-docs/.installed")
    step("packages", "make", "--no-print-directory", f"VENV={venv}", *ready)
    step(
        "demos and docs", ROOT / venv / "bin/python", "-m", "pytest", "-p", "no:cacheprovider", "-q", *CURRENT
    )
    python = TOOLS / "python"
    twice = (made, made.with_name("again"))
    for folder in twice:
        folder.mkdir()
        step("wheel and sdist", python, "-m", "build", "--no-isolation", "--outdir", folder)
        (wheel,) = folder.glob("*.whl")
        for machine in MACHINES:
            file = folder / f"cluster-doctor-{version}-linux-{machine}.pyz"
            step(file.name, python, "scripts/onefile/build.py", wheel, machine, file)
    for path in sorted(twice[0].iterdir()):
        if path.read_bytes() != (twice[1] / path.name).read_bytes():
            raise Refusal(f"{path.name} was built twice, and differs: it is not reproducible.")
    (made / "doctor.1").write_text(said(python, "-m", "doctor", "help", "--man"))
    for shell in SHELLS:
        (made / f"doctor.{shell}").write_text(said(python, "-m", "doctor", "completion", shell))
    locked = made.with_name("inside.txt")
    locked.write_text(entries({inside(file) for file in made.glob("*.pyz")}))
    sbom = ("requirements", locked, "--pyproject", "pyproject.toml", "--output-reproducible")
    step("SBOM", TOOLS / "cyclonedx-py", *sbom, "--output-file", made / "sbom.cdx.json")
    name_version(made / "sbom.cdx.json", version)
    step("site", "make", "docs")
    pack(ROOT / "site", made / "site.tar.gz")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made.iterdir()]
    (made / "SHA256SUMS").write_text("".join(sorted(sums, key=lambda line: line.split()[1])))


def inside(file: Path) -> frozenset[str]:
    """The packages in a single file besides doctor, as the lock writes them."""
    with zipfile.ZipFile(file) as packed:
        about = [
            HeaderParser().parsestr(packed.read(name).decode())
            for name in packed.namelist()
            if re.fullmatch(r"site-packages/[^/]+\.dist-info/METADATA", name)
        ]
    found = {f"{re.sub('[-_.]+', '-', each['Name']).lower()}=={each['Version']}" for each in about}
    return frozenset(each for each in found if not each.startswith("cluster-doctor=="))


def entries(contents: set[frozenset[str]]) -> str:
    """Their entries in the lock, with hashes; all single files have the same packages."""
    (packages,) = contents
    lock = re.split(r"\n(?=\w)", (ROOT / "requirements.lock").read_text())
    kept = {each.split()[0]: each for each in lock if each.split()[0] in packages}
    if more := packages - kept.keys():
        raise Refusal(f"{', '.join(sorted(more))} is in the single file and not in requirements.lock.")
    return "\n".join(kept.values())


def name_version(file: Path, version: str) -> None:
    """The version stands in a source, where the list does not look for it."""
    bom = json.loads(file.read_text())
    bom["metadata"]["component"]["version"] = version
    file.write_text(json.dumps(bom, indent=2, ensure_ascii=False) + "\n")


def pack(folder: Path, file: Path) -> None:
    """Always the same to the byte, whoever packs it, and when."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mtime, info.mode = WHEN, 0o755 if info.isdir() else 0o644
        return info

    with gzip.GzipFile(file, "wb", mtime=WHEN) as stream, tarfile.open(fileobj=stream, mode="w") as packed:
        packed.add(folder, folder.name, filter=plain)


def step(what: str, *words: object) -> None:
    print(f"{what} ...", flush=True)
    said(*words)


def said(*typed: object) -> str:
    """What a command printed; its last lines if it fails."""
    command = [str(word) for word in typed]
    environ = {**os.environ, "SOURCE_DATE_EPOCH": str(WHEN), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    if done.returncode:
        words = done.stdout + done.stderr
        for why, shown in OUTSIDE.items():
            if re.search(shown, words):
                raise Refusal(f"{why}.")
        last = "\n".join(words.strip().splitlines()[-15:])
        raise Refusal(f"{Path(command[0]).name} failed:\n{last}")
    return done.stdout


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main(*sys.argv[1:])
    except Refusal as why:
        sys.exit(f"No release: {why}")
    except OSError as error:
        sys.exit(f"No release: {error.filename or 'the disk'}: {error.strerror}.")
    except KeyboardInterrupt:
        sys.exit("No release: it was ended from outside.")

"""`make release`: everything that belongs to a version, in release/VERSION/. It is all there, or nothing is.

`release.py PYTHON`: that Python runs the tests of demos and docs. The version is that of doctor/__init__.py.
Wheel, sdist and single files are built twice and must be the same to the byte. The tag is made by hand:
docs/releasing.md.
"""

import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = Path(sysconfig.get_path("scripts"))
MACHINES = ("x86_64", "aarch64")
SHELLS = ("bash", "zsh", "fish")
CURRENT = ("tests/unit/test_readmes.py", "tests/unit/test_quoted_commands.py", "tests/process/test_demo.py")
"""The tests that fail if a demo or a command in the docs is behind."""


class Refusal(Exception):
    """Why there is no release, and what to do."""


def main(tester: str) -> None:
    version = own_version()
    target = ROOT / "release" / version
    refuse_unready(version, target)
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as folder:
        made = Path(folder) / version
        make(made, version, tester)
        made.rename(target)
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


def make(made: Path, version: str, tester: str) -> None:
    step("demos and docs", tester, "-m", "pytest", "-q", *CURRENT)
    twice = (made, made.with_name("again"))
    for folder in twice:
        folder.mkdir()
        step("wheel and sdist", sys.executable, "-m", "build", "--no-isolation", "--outdir", folder)
        (wheel,) = folder.glob("*.whl")
        for machine in MACHINES:
            file = folder / f"cluster-doctor-{version}-linux-{machine}.pyz"
            step(file.name, sys.executable, "scripts/onefile/build.py", wheel, machine, file)
    for path in sorted(twice[0].iterdir()):
        if path.read_bytes() != (twice[1] / path.name).read_bytes():
            raise Refusal(f"{path.name} was built twice, and differs: it is not reproducible.")
    (made / "doctor.1").write_text(said(sys.executable, "-m", "doctor", "help", "--man"))
    for shell in SHELLS:
        (made / f"doctor.{shell}").write_text(said(sys.executable, "-m", "doctor", "completion", shell))
    sbom = ("requirements", "requirements.lock", "--pyproject", "pyproject.toml", "--output-reproducible")
    step("SBOM", TOOLS / "cyclonedx-py", *sbom, "--output-file", made / "sbom.cdx.json")
    step("site", "make", "docs")
    with tarfile.open(made / "site.tar.gz", "w:gz") as site:
        site.add(ROOT / "site", "site")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made.iterdir()]
    (made / "SHA256SUMS").write_text("".join(sorted(sums, key=lambda line: line.split()[1])))


def step(what: str, *words: object) -> None:
    print(f"{what} ...", flush=True)
    said(*words)


def said(*words: object) -> str:
    """What a command printed; its last lines if it fails."""
    command = [str(word) for word in words]
    environ = {**os.environ, "SOURCE_DATE_EPOCH": "315532800"}  # 1980, the first day of a zip file
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise Refusal(f"{Path(command[0]).name} failed:\n{last}")
    return done.stdout


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Refusal as why:
        sys.exit(f"No release: {why}")
    except OSError as error:
        sys.exit(f"No release: {error}")

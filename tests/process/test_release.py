"""`make release` refuses a tree that is not ready, in one sentence, and leaves nothing."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.paths import ROOT

VERSION = "9.9.9"
VENV = str(Path(sys.executable).parent.parent)


def git(tree: Path, *words: str) -> None:
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    subprocess.run(["git", *who, *words], cwd=tree, check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small repository that is ready to be released, as far as can be seen before anything is built."""
    tree = tmp_path / "tree"
    (tree / "doctor").mkdir(parents=True)
    (tree / "scripts").mkdir()
    (tree / "doctor/__init__.py").write_text(f'__version__ = "{VERSION}"\n')
    (tree / "CHANGELOG.md").write_text(f"# Changes\n\n## {VERSION}\n\n- new\n")
    (tree / ".gitignore").write_text("/release/\n")
    (tree / "scripts/release.py").write_bytes((ROOT / "scripts/release.py").read_bytes())
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "all")
    return tree


def changed(tree: Path) -> None:
    (tree / "new.py").write_text("")


def exists(tree: Path) -> None:
    git(tree, "tag", f"v{VERSION}")


def unwritten(tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text("# Changes\n\n## Unreleased\n\n- new\n")
    git(tree, "commit", "-q", "-a", "-m", "unwritten")


def in_the_way(tree: Path) -> None:
    (tree / "release" / VERSION).mkdir(parents=True)


def behind(tree: Path) -> None:
    """Its tests fail: there are none."""
    (tree / "Makefile").write_text("%:\n\t@true\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "behind")


def without(words: str) -> Callable[[Path], None]:
    """What a tool prints where it can have no packages or no room, and fails."""

    def spoil(tree: Path) -> None:
        (tree / "words").write_text(words)
        (tree / "Makefile").write_text("%:\n\t@cat words; exit 1\n")
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", "without")

    return spoil


PIP = """\
ERROR: Could not find a version that satisfies the requirement hatchling<2,>=1.24 (from versions: none)
ERROR: No matching distribution found for hatchling<2,>=1.24
"""
UV = "error: Request failed after 3 retries\n  Caused by: Failed to fetch: `https://index.example/simple/rich/`\n"
FULL = "  File 'shutil.py', line 256, in copyfile\nOSError: [Errno 28] No space left on device: 'a' -> 'b'\n"
UV_FULL = "error: Failed to install: rich-15.whl\n  Caused by: No space left on device (os error 28)\n"
NETWORK = "packages could not be fetched (is there a network?).\n"


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (changed, "The tree is not clean (new.py): commit the change, or take it back."),
        (exists, f"v{VERSION} exists: write the new version into doctor/__init__.py."),
        (unwritten, f"CHANGELOG.md has no heading '## {VERSION}': write what is new in it."),
        (in_the_way, f"release/{VERSION} is in the way: move it elsewhere."),
        (behind, "python"),
        (without(PIP), NETWORK),
        (without(UV), NETWORK),
        (without(FULL), "the disk is full.\n"),
        (without(UV_FULL), "the disk is full.\n"),
    ],
)
def test_it_refuses_and_leaves_nothing(spoil: Callable[[Path], None], says: str, tree: Path) -> None:
    spoil(tree)
    here = {path.name for path in tree.iterdir()}
    before = {path: path.stat().st_mtime_ns for path in (tree / "release").glob("*")}
    release = (sys.executable, str(tree / "scripts/release.py"), VENV)
    done = subprocess.run(release, cwd=tree, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(f"No release: {says}"), done.stderr
    assert {path: path.stat().st_mtime_ns for path in (tree / "release").glob("*")} == before
    assert {path.name for path in tree.iterdir()} == here

"""The sources of checks, and what happens to a source that cannot be used."""

import contextlib
import os
import shutil
from pathlib import Path

import pytest

from doctor.errors import EXIT_BROKEN, EXIT_USAGE, DoctorError, InputErrors
from doctor.judge import registry
from doctor.judge.playbook import ESSENTIAL
from doctor.judge.registry import ENTRY_POINTS, NOTHING, BrokenSource, check_ids, find_checks
from doctor.judge.verdict import refuse_without_essentials
from doctor.text import outfile
from tests.support.cases import cases, from_cases

PLUG_IN = from_cases(__file__, "PLUG_IN", str)
BROKEN = from_cases(__file__, "BROKEN", list[tuple[str, ...]])
IDS = [check.id for check in find_checks().checks]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "more"
    made.mkdir()
    (made / "good.py").write_text(PLUG_IN.format(id="plug-in"))
    return made


def test_a_folder_adds_its_checks(folder: Path) -> None:
    (folder / "shared.py").write_text("LIMIT = 3\n")
    found = find_checks([folder])
    assert ([check.id for check in found.checks], found.broken) == ([*IDS, "plug-in"], ())


def test_the_ids_of_the_bundled_checks_stand_in_their_files(folder: Path) -> None:
    assert check_ids() == tuple(IDS)
    assert check_ids([folder]) == (*IDS, "plug-in")


@pytest.mark.parametrize(("text", "said"), BROKEN)
def test_a_named_file_that_cannot_be_used_is_a_mistake(text: str, said: str, folder: Path) -> None:
    (folder / "bad.py").write_text(text)
    with pytest.raises(InputErrors) as caught:
        find_checks([folder])
    assert caught.value.exit_code == EXIT_USAGE
    assert caught.value.message.startswith(f"--checks: {folder}/bad.py: {said}")


def test_all_that_is_wrong_with_the_folders_at_once(folder: Path, tmp_path: Path) -> None:
    for number, (text, _) in enumerate(BROKEN):
        (folder / f"bad{number}.py").write_text(text)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputErrors) as caught:
        find_checks([folder, tmp_path / "empty", tmp_path / "none", folder / "good.py"])
    assert [mistake.message for mistake in caught.value.mistakes[len(BROKEN) :]] == [
        NOTHING,
        "it is not a folder",
        "it is not a folder",
    ]


@pytest.mark.parametrize(("text", "said"), BROKEN)
def test_a_broken_file_of_ours_is_a_broken_installation(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(registry.bundled("checks"), tmp_path / "checks")
    (tmp_path / "checks" / "zzz.py").write_text(text)
    monkeypatch.setattr(registry, "bundled", tmp_path.joinpath)
    with pytest.raises(DoctorError) as caught:
        find_checks()
    assert caught.value.exit_code == EXIT_BROKEN
    assert f"zzz.py could not be loaded: {said}" in caught.value.message
    assert "install cluster-doctor again" in caught.value.hint


def test_no_folder_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "bundled", tmp_path.joinpath)
    with pytest.raises(DoctorError, match="it is not a folder"):
        find_checks()


@pytest.mark.parametrize("lost", ESSENTIAL)
def test_without_an_essential_check_there_is_no_verdict(lost: str) -> None:
    refuse_without_essentials(IDS)
    with pytest.raises(DoctorError, match="These checks are not there"):
        refuse_without_essentials([id for id in IDS if not id.startswith(lost.rstrip("*"))])


def test_a_broken_entry_point_is_returned_with_the_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pip leaves a plug-in that was built for another version."""
    about = tmp_path / "site_checks-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: site-checks\nVersion: 1.0\n")
    points = "good = site_good\ngone = site_gone\nempty = site_empty\nodd = site_good:LIMIT\n"
    (about / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{points}")
    (tmp_path / "site_good.py").write_text("LIMIT = 3\n" + PLUG_IN.format(id="plug-in"))
    (tmp_path / "site_empty.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    found = find_checks()
    assert [check.id for check in found.checks] == [*IDS, "plug-in"]
    assert found.broken == (
        BrokenSource("entry point empty", NOTHING),
        BrokenSource("entry point gone", "ModuleNotFoundError: No module named 'site_gone'"),
        BrokenSource("entry point odd", "TypeError: vars() argument must have __dict__ attribute"),
    )


@cases
def test_checks_that_others_could_have_written_are_not_run(
    permissions: int, said: str, folder: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    (folder / "good.py").write_text(f"open({str(ran)!r}, 'w')\n" + PLUG_IN.format(id="plug-in"))
    folder.chmod(permissions)
    with pytest.raises(InputErrors, match=f"{folder}: {said}"):
        find_checks([folder])
    folder.chmod(0o755)
    (folder / "good.py").chmod(0o666)
    with pytest.raises(InputErrors, match=r"good\.py: others can write to it"):
        find_checks([folder])
    assert not ran.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file away")
def test_checks_of_another_user_are_not_run(folder: Path) -> None:
    os.chown(folder / "good.py", 65534, -1)
    with pytest.raises(InputErrors, match=r"good\.py: it belongs to another user"):
        find_checks([folder])
    os.chown(folder / "good.py", 0, -1)
    os.chown(folder, 65534, -1)
    with pytest.raises(InputErrors, match="more: it belongs to another user"):
        find_checks([folder])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file away")
def test_what_is_exchanged_after_the_question_is_not_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the owner of the folder above can do it, at the last moment."""
    ran = tmp_path / "ran"
    other = tmp_path / "other.py"
    other.write_text(f"open({str(ran)!r}, 'w')\n" + PLUG_IN.format(id="plug-in"))
    os.chown(other, 65534, -1)
    asked = outfile.why_not_ours

    def exchanges(path: Path) -> str:
        why = asked(path)
        if path == folder / "good.py":
            path.rename(tmp_path / "away")
            other.rename(path)
        return why

    monkeypatch.setattr(registry, "why_not_ours", exchanges)
    with contextlib.suppress(InputErrors):
        find_checks([folder])
    assert (tmp_path / "away").exists()
    assert not ran.exists()

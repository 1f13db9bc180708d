"""The files of waivers and the policy of a site: what is read, what is refused, and where it stands."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from doctor import cli
from doctor.errors import InputErrors, UsageError
from doctor.exam import examination, policy
from doctor.exam.policy import refuse_skipped, with_waivers
from doctor.exam.request import ExamFlags, Request, SmokeFlags
from doctor.job.wishes import JobWishes
from doctor.model import Waiver
from doctor.targets.inventoryfile import read_inventory
from tests.support.cases import cases

WHOLE = "check: shm-small, hosts: 'node[1-2]', reason: r, owner: o, until: 2030-01-31"
IDS = ("shm-small", "disk-full")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def writing(text: str, name: str = "w.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return writing


Write = Callable[..., Path]


def mistakes(read: Callable[[], object]) -> list[str]:
    with pytest.raises(InputErrors) as caught:
        read()
    return [str(each)[str(each).index("w.yaml") :] for each in caught.value.mistakes]


def given(path: Path) -> tuple[Waiver, ...]:
    return with_waivers(ExamFlags(waivers=path), JobWishes()).waivers


def test_a_whole_file(write: Write) -> None:
    (found,) = given(write(f"waivers:\n  - {{{WHOLE}, subject: device 3}}\n"))
    assert (found.check, found.hosts, found.subject) == ("shm-small", ("node1", "node2"), "device 3")
    assert found.place.endswith("w.yaml:2:5")
    assert given(write("waivers: []\n")) == ()


@cases
def test_a_file_that_cannot_be_used(write: Write, text: str, said: tuple[str, ...]) -> None:
    found = mistakes(lambda: given(write(text.replace("WHOLE", WHOLE))))
    assert [each.removeprefix("w.yaml") for each in found] == list(said)


@cases
def test_more_files_that_cannot_be_used(write: Write, text: str, said: tuple[str, ...]) -> None:
    path = write(text.replace("WHOLE", WHOLE))
    found = mistakes(lambda: given(path))
    assert len(found) == len(said)
    for each, wanted in zip(found, said, strict=True):
        assert each.startswith(f"w.yaml{wanted.replace('FILE', str(path))}")


def test_an_inventory_has_them_too(write: Write) -> None:
    hosts = "hosts: ['node[1-2]']\ngroups: {all: 'node[1-2]'}\n"
    path = write(f"{hosts}waivers:\n  - {{{WHOLE}}}\n".replace("'node[1-2]', reason", "'@all', reason"))
    assert read_inventory(path).wishes.waivers[0].hosts == ("node1", "node2")
    path = write(f"{hosts}waivers:\n  - {{{WHOLE}}}\n".replace("'node[1-2]', reason", "node3, reason"))
    assert mistakes(lambda: read_inventory(path)) == [
        "w.yaml:4:31: hosts: 'node3' is not one of the hosts; did you mean 'node2'?"
    ]


def test_waivers_may_be_switched_off(write: Write) -> None:
    path = write(f"waivers:\n  - {{{WHOLE}}}\n")
    assert not with_waivers(ExamFlags(waivers=path, no_waivers=True), JobWishes()).waivers


def test_a_mistake_ends_with_2(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write("waivers:\n  - {check: x}\n")
    assert cli.run(["check", "--local", "--waivers", str(path)]) == 2
    assert f"{path}:2:5: this waiver has no hosts, reason, owner, until" in capsys.readouterr().err


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes the policy of this site, as root's."""
    path = tmp_path / "policy.toml"
    monkeypatch.setattr(policy, "POLICY", path)

    def writing(text: str) -> None:
        path.write_text(text)
        path.chmod(0o644)
        if os.geteuid() != 0:
            monkeypatch.setattr(policy, "_refuse_others", lambda _: None)

    return writing


Site = Callable[[str], None]


def test_a_policy_forbids_what_it_names(site: Site, write: Write) -> None:
    site('never-skipped = ["shm-*"]\nnever-waived = ["shm-small"]\n')
    with pytest.raises(UsageError, match="demands shm-small"):
        refuse_skipped(["disk-full", "shm-small"], IDS)
    refuse_skipped(["disk-full"], IDS)
    (said,) = mistakes(lambda: given(write(f"waivers:\n  - {{{WHOLE}}}\n")))
    assert "shm-small cannot be waived: the policy of this site (" in said
    site("")
    refuse_skipped(["shm-small"], IDS)


@cases
def test_whatever_leaves_a_demanded_check_out_is_refused(
    site: Site, words: str, demanded: str, capsys: pytest.CaptureFixture[str]
) -> None:
    site(f'never-skipped = ["{demanded}"]\n')
    assert cli.run(words.split()) == 2
    said = capsys.readouterr().err
    assert f"demands {demanded.replace('*', '')}" in said


@cases
def test_what_a_run_does_not_leave_out_is_no_matter_of_the_policy(
    site: Site, command: str, what: dict[str, Any], smoke: dict[str, Any], demanded: str
) -> None:
    site(f'never-skipped = ["{demanded}"]\n')
    request = Request(command, what=ExamFlags(**what), smoke=SmokeFlags(**smoke))
    assert examination._syllabus(request, None).checks


@cases
def test_a_policy_that_cannot_be_used_is_refused(site: Site, text: str, said: str) -> None:
    site(text)
    with pytest.raises(UsageError) as caught:
        refuse_skipped(["shm-small"], IDS)
    assert said in caught.value.message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize(("owner", "mode"), [(65534, 0o644), (0, 0o666), (0, 0o664)])
def test_a_policy_that_others_can_write_is_refused(site: Site, owner: int, mode: int) -> None:
    site("")
    os.chown(policy.POLICY, owner, 0)
    policy.POLICY.chmod(mode)
    with pytest.raises(UsageError, match="others than root"):
        refuse_skipped(["shm-small"], IDS)

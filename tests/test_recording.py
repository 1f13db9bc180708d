"""A run saved and read back is the same run, holds no secret, and a file that is none says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from doctor.collect import Collection, Order
from doctor.errors import UsageError
from doctor.inventory import JobWishes
from doctor.model import Answer, Backend, End, Host, Missing, Reach, Sourced, Unreached
from doctor.probe import Heard, read
from doctor.recording import Recording, load, save
from doctor.report.json import as_data, as_json
from tests.captures import every_fact
from tests.probing import TOKEN, answer, start
from tests.recordings import heard, mesh, recording, report

NAMES = ["node1", "node2", "node3"]
FULL = recording(
    NAMES,
    hosts=(
        Host("node1", "10.0.0.1", user="root", port=22, jump="gate", data="10.1.0.1", ranks=2),
        Host("node2", "10.0.0.2", enter="docker exec -i job", python="/opt/python", expected={"nofile": "5"}),
        Host("node3", "10.0.0.3"),
    ),
    wishes=JobWishes(Sourced(Backend.NCCL, "--backend"), Sourced("node1", "x"), None, None, {"A": "1"}, {}),
    expect={"somaxconn": "70000"},
    heard={
        "node2": heard(
            2,
            NAMES,
            firewall=Missing("firewall", "needs root"),
            identity={"/proc/sys/kernel/hostname": "node1"},
        )
    },
    unreached={"node3": Unreached("node3", Reach.AUTH, "refused", "add the key", ("ssh-add",), "denied")},
    mesh=mesh(NAMES[:2], ("node1", "node2")),
    unfinished=(),
    notes=("a note",),
)
FULL = replace(FULL, heard={name: FULL.heard[name] for name in NAMES[:2]})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.json"


def test_saved_and_loaded_is_equal(file: Path) -> None:
    save(FULL, file)
    assert load(file) == FULL
    assert file.stat().st_mode & 0o777 == 0o600, "what hosts said is nobody else's business"


def test_the_same_recording_gives_the_same_report(file: Path) -> None:
    save(FULL, file)
    assert as_json(report(load(file))) == as_json(report(FULL))


def test_the_run_is_all_that_differs_between_two_runs_that_heard_the_same() -> None:
    later = replace(FULL, started="2027-01-01T00:00:00Z", seconds=9.9)
    data, other = as_data(report(FULL)), as_data(report(later))
    assert data.pop("run") != other.pop("run")
    assert data == other


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no recording"),
        (b"hello", "is no recording"),
        (b"[1]", "is no recording"),
        (b"{}", "is no recording"),
        (b'{"schema": "one"}', "is no recording"),
        (b'{"schema": 99}', "is a recording of form 99; this version"),
        (b'{"schema": 1}', "is a damaged recording"),
        (b"[" * 100_000, "is no recording"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "is no recording"),
        (b"\xff\xfe\x00", "is no recording"),
    ],
)
def test_a_file_that_is_no_recording(file: Path, content: bytes, message: str) -> None:
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load(file)
    assert str(file) in caught.value.message
    assert message in caught.value.message


@pytest.mark.parametrize("place", ["none", "."])
def test_a_file_that_cannot_be_read(tmp_path: Path, place: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / place)


def test_a_recording_cut_anywhere_is_told_apart(file: Path) -> None:
    save(FULL, file)
    whole = file.read_bytes()
    for end in range(0, len(whole), 997):
        file.write_bytes(whole[:end])
        with pytest.raises(UsageError, match=r"is no recording|is a damaged recording"):
            load(file)


@pytest.mark.parametrize(
    "change",
    [
        {"heard": {"node1": {"captures": 5}}},
        {"hosts": [{"name": "x"}]},
        {"mesh": {"shape": "star"}},
        {"unreached": {"x": {"kind": "tired"}}},
        {"wishes": {"backend": {"value": "mpi", "source": "x"}}},
    ],
)
def test_a_recording_with_a_wrong_part(file: Path, change: dict[str, Any]) -> None:
    save(FULL, file)
    file.write_text(json.dumps(json.loads(file.read_bytes()) | change))
    with pytest.raises(UsageError, match="damaged recording"):
        load(file)


@pytest.mark.parametrize(
    "change",
    [
        {"hosts": []},
        {"hosts": [{"name": "x\n/etc", "address": "a"}]},
        {"hosts": [{"name": "\x1b[31mx", "address": "a"}]},
        {"hosts": [{"name": "x", "address": "a"}, {"name": "x", "address": "b"}]},
        {"hosts": [{"name": "x", "address": "a", "ranks": -1}]},
        {"unfinished": ["stranger"]},
        {"seconds": 1e308},
        {"wishes": {"master_port": {"value": 70000, "source": "x"}}},
        {"wishes": {"head": {"value": "stranger", "source": "x"}}},
    ],
)
def test_a_recording_that_no_run_would_make(file: Path, change: dict[str, Any]) -> None:
    """Its types are right. It may come from anywhere, and its names end up in lists of hosts."""
    save(FULL, file)
    told = json.loads(file.read_bytes()) | {"heard": {}, "unreached": {}, "mesh": None} | change
    file.write_text(json.dumps(told))
    with pytest.raises(UsageError, match="damaged recording"):
        load(file)


class Nobody:
    """A transport that was never asked; a collection needs one."""

    name = "ssh"
    warnings = ("known_hosts could not be written",)


def test_no_secret_is_saved(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what a host printed, nor what the person put into the inventory or the command line."""
    monkeypatch.setenv("HCCL_API_TOKEN", "hunter2")
    monkeypatch.setenv("NCCL_PROXY", "http://u:hunter2@proxy")
    facts = tuple(every_fact().values())
    process = start(facts, "dash")
    said = read(answer(process), facts, TOKEN)
    assert isinstance(said, Heard)
    order = Order(
        command="check",
        exam="preflight",
        hosts=(Host("here", "here", enter="docker exec -e HF_TOKEN=hunter2 job"),),
        wishes=JobWishes(env={"WANDB_API_KEY": "hunter2", "GLOO_SOCKET_IFNAME": "eth0"}),
        expect={},
        facts=facts,
    )
    collection = Collection(order, Nobody(), lambda *_: None)  # type: ignore[arg-type]
    collection.heard["here"] = said
    save(collection.recording(), file)
    text = file.read_text()
    assert "HCCL_API_TOKEN" in text
    assert "GLOO_SOCKET_IFNAME" in text
    assert "hunter2" not in text


def test_an_answer_without_a_frame_hides_secrets_too() -> None:
    lost = read(Answer("h", b"token: hunter2", b"", 1, End.DONE, 0, 0), (), TOKEN)
    assert isinstance(lost, Unreached)
    assert "hunter2" not in repr(lost)


def test_an_older_recording_without_newer_fields(file: Path) -> None:
    save(FULL, file)
    data = json.loads(file.read_bytes())
    for optional in ("notes", "unfinished", "mesh_mode"):
        del data[optional]
    file.write_text(json.dumps(data))
    assert isinstance(load(file), Recording)

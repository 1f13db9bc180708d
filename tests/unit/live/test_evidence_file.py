"""Evidence in files: saved evidence is read back, and anything else is refused with its place."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from doctor.errors import UsageError
from doctor.live.evidence import (
    FileLock,
    Frame,
    HostEvidence,
    JobMember,
    LiveEvidence,
    LockHolder,
    Look,
    PythonThread,
)
from doctor.live.evidence_file import decoded, encoded
from doctor.live.redaction import redacted
from tests.support.cases import cases

SAVED = Path("hang.json")


def a_host(**more: Any) -> HostEvidence:
    frames = (Frame(name="train", file="/job/train.py", line=7, source="login(password='swordfish')"),)
    look = Look(pid=11, state="S", python=(PythonThread(tid=11, frames=frames),), files=("/data/shard",))
    command = "python train.py --api-key swordfish"
    member = JobMember(
        host="node1", pid=11, parent=1, job="node1:29500", rank=0, a=look, b=look, command=command
    )
    return HostEvidence(host="node1", members=(member,), **more)


def evidence() -> LiveEvidence:
    return LiveEvidence(
        started="2026-11-20T09:00:00Z",
        hosts=(a_host(),),
        unreached={"node2": "No route to host."},
        asked=("node1", "node2"),
    )


def test_what_was_saved_is_read_back() -> None:
    assert decoded(encoded(evidence()), SAVED) == evidence()


def test_secrets_are_hidden_before_anything_is_kept() -> None:
    kept = redacted(a_host(unread=("TOKEN=swordfish",)))
    assert "swordfish" not in str(kept)
    assert str(kept).count("[hidden]") >= 3


def test_who_holds_a_lock_shows_no_secret_either() -> None:
    """It may be a process of anybody."""
    holder = LockHolder(pid=99, command="mysqld --password=swordfish")
    lock = FileLock(path="/tmp/token=swordfish.lock", by="kernel", holders=(holder,))
    look = Look(pid=11, state="S", locks=(lock,))
    member = replace(a_host().members[0], a=look, b=look)
    kept = str(redacted(HostEvidence(host="node1", members=(member,))))
    assert "mysqld" in kept
    assert "swordfish" not in kept


def changed(path: str, value: Any) -> bytes:
    data = json.loads(encoded(evidence()))
    *way, last = path.split(".")
    place = data
    for word in way:
        place = place[int(word) if word.isdigit() else word]
    place[last] = value
    return json.dumps(data).encode()


@cases
def test_damage_is_refused_with_its_place(path: str, value: Any, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        decoded(changed(path, value), SAVED)
    assert said in refused.value.message
    assert refused.value.message.startswith("hang.json: ")
    assert "\n" not in refused.value.message


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"schema":1}', b"\xff\xfe", b"[" * 100_000, b"null"])
def test_what_is_no_evidence_is_refused(raw: bytes) -> None:
    with pytest.raises(UsageError, match="is not a recording of doctor hang"):
        decoded(raw, SAVED)

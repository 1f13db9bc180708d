"""What a host answers becomes files in its own folder, however hostile it is."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path

import pytest

from doctor.logs.fetch.unpack import Taken, unpack
from doctor.model import Answer, AnswerEnd
from doctor.probe import new_token
from doctor.probe.frames import FRAME

TOKEN = new_token()
MARK = TOKEN[:FRAME].encode()


def frame(letter: str, words: str, body: bytes = b"") -> bytes:
    return b"\n%s %s %s\n%s" % (MARK, letter.encode(), words.encode(), body)


END = b"\n%s z\n" % MARK


def answer(stdout: bytes, end: AnswerEnd = AnswerEnd.DONE) -> Answer:
    return Answer("node1", stdout, b"", 0, end, 0.0, 1.0)


def packed(raw: bytes) -> bytes:
    text = base64.encodebytes(gzip.compress(raw))
    return b"Welcome!\n\n%s packed\n%s\n%s done\n" % (MARK, text, TOKEN.encode())


def taken(stdout: bytes, folder: Path, end: AnswerEnd = AnswerEnd.DONE) -> Taken:
    return unpack(answer(stdout, end), TOKEN, folder / "node1")


def test_files_and_what_was_left_out(tmp_path: Path) -> None:
    raw = frame("f", "/a/rank 0.log", b"one\n\ntwo") + frame("x", "/b: may not be read") + END
    for stdout in (packed(raw), b"\n%s plain\n%s" % (MARK, raw)):
        found = taken(stdout, tmp_path / str(len(stdout)))
        ((path, name),) = found.files.items()
        assert (name, path.read_bytes()) == ("/a/rank 0.log", b"one\n\ntwo")
        assert found.left_out == ("/b: may not be read",)


@pytest.mark.parametrize(
    "name", ["../../evil", "/../../evil", "a/../../../evil", "..", "", "/", "a\0b", "x" * 500]
)
def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    found = taken(packed(frame("f", name, b"x") + END), tmp_path)
    (path,) = found.files
    assert path.resolve().is_relative_to((tmp_path / "node1").resolve())
    assert path.read_bytes() == b"x"


def test_a_file_and_a_folder_of_one_name_are_both_kept(tmp_path: Path) -> None:
    raw = frame("f", "/a", b"1") + frame("f", "/a/b", b"2") + frame("f", "/a", b"3") + END
    found = taken(packed(raw), tmp_path)
    assert sorted(path.read_bytes() for path in found.files) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("end", [AnswerEnd.TIMEOUT, AnswerEnd.FLOOD, AnswerEnd.LOST])
def test_an_answer_that_breaks_off_counts_as_far_as_it_goes(end: AnswerEnd, tmp_path: Path) -> None:
    raw = frame("f", "/a", b"first\n" * 1000) + frame("f", "/b", bytes(range(256)) * 900) + END
    whole = packed(raw)
    found = taken(whole[: len(whole) // 2], tmp_path, end)
    assert next(iter(found.files.values())) == "/a"
    assert len(found.left_out) == 1


@pytest.mark.parametrize(
    "stdout",
    [b"", b"Welcome\n", packed(b"")[:40], b"\n%s packed\n!!!!" % MARK],
    ids=["nothing", "a banner", "cut off", "no archive"],
)
def test_an_answer_without_files(stdout: bytes, tmp_path: Path) -> None:
    found = taken(stdout, tmp_path)
    assert not found.files
    assert found.left_out == ("its answer broke off",)


def test_a_log_cannot_forge_a_frame(tmp_path: Path) -> None:
    other = new_token()[:FRAME].encode()
    raw = frame("f", "/a", b"\n%s f /etc/passwd\nroot\n" % other) + END
    assert list(taken(packed(raw), tmp_path).files.values()) == ["/a"]

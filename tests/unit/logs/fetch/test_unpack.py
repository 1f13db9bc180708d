"""A host's answer becomes files in its own folder, however hostile it is, within the requested limits."""

import base64
import errno
import gzip
import json
import os
import tracemalloc
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from doctor.logs.fetch import unpack as unpacking
from doctor.logs.fetch.onhost.agent import MOST_FILES
from doctor.logs.fetch.unpack import MOST_FOLDERS, MOST_WORDS, TOO_MUCH, UNREADABLE, HostLogs, unpack
from doctor.model import Answer, AnswerEnd
from doctor.probe.frames import FRAME

TOKEN = "5749b7e10bbd36c5d6beb6deba8de5b0"
MARK = TOKEN[:FRAME].encode()
MEGABYTE = 1_000_000
END = b"z\n"


def line(letter: str, text: str) -> bytes:
    return f"{letter} {json.dumps(text)}\n".encode()


def body(data: bytes) -> bytes:
    return b"d %d\n%s" % (len(data), data)


def logged(name: str, *pieces: bytes) -> bytes:
    return line("f", name) + b"".join(map(body, pieces))


def packed(raw: bytes) -> bytes:
    return sealed(gzip.compress(raw, mtime=0))


def sealed(data: bytes) -> bytes:
    text = base64.encodebytes(data)
    return b"Welcome!\n\n%s packed\n%s\n\n%s done\n" % (MARK, text, TOKEN.encode())


def repeated(parts: Iterable[bytes]) -> bytes:
    """Packed without being held in memory here."""
    zipped = zlib.compressobj(9, zlib.DEFLATED, 31)
    return sealed(b"".join([*map(zipped.compress, parts), zipped.flush()]))


def taken(stdout: bytes, folder: Path, end: AnswerEnd = AnswerEnd.DONE, limit: int = MEGABYTE) -> HostLogs:
    return unpack(Answer("node1", stdout, b"", 0, end, 0.0, 1.0), TOKEN, folder / "node1", limit)


def on_disk(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def test_files_and_what_was_left_out(tmp_path: Path) -> None:
    raw = logged("/a/rank 0.log", b"one\n\nt", b"wo") + line("x", "/b: may not be read") + line("n", "cut")
    found = taken(packed(raw + END), tmp_path)
    ((path, name),) = found.files.items()
    assert (name, path.read_bytes()) == ("/a/rank 0.log", b"one\n\ntwo")
    assert (found.missed, found.told) == (("/b: may not be read",), ("cut",))


ODD_NAMES = [
    "../../evil",
    "/../../evil",
    "a/../../../evil",
    "..",
    "",
    "/",
    "a\0b",
    "a\nb",
    "\ud800\udcff",
    "x" * 500,
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    found = taken(packed(logged(name, b"x") + END), tmp_path)
    (path,) = found.files
    assert path.resolve().is_relative_to((tmp_path / "node1").resolve())
    assert path.read_bytes() == b"x"
    assert found.files[path].isprintable()


def test_names_that_a_disk_has_no_room_for_are_cut(tmp_path: Path) -> None:
    found = taken(
        packed(logged("/" + "日" * 120 + "/" + "𝄞" * 120, b"x") + logged("/b", b"y") + END), tmp_path
    )
    assert [path.read_bytes() for path in found.files] == [b"x", b"y"]
    assert not found.missed


def test_a_file_and_a_folder_of_one_name_are_both_kept(tmp_path: Path) -> None:
    raw = logged("/a", b"1") + logged("/a/b", b"2") + logged("/a", b"3")
    found = taken(packed(raw + END), tmp_path)
    assert sorted(path.read_bytes() for path in found.files) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("end", [AnswerEnd.TIMEOUT, AnswerEnd.FLOOD, AnswerEnd.LOST])
def test_an_answer_that_breaks_off_counts_as_far_as_it_goes(end: AnswerEnd, tmp_path: Path) -> None:
    whole = packed(logged("/a", b"first\n" * 1000) + logged("/b", os.urandom(200_000)) + END)
    found = taken(whole[: len(whole) // 2], tmp_path, end)
    assert list(found.files.values()) == ["/a", "/b"]
    assert len(found.missed) == 1


@pytest.mark.parametrize(
    ("stdout", "why"),
    [
        (b"", "its answer broke off"),
        (b"Welcome\n", "its answer broke off"),
        (packed(b"")[:40], "its answer broke off"),
        (b"\n%s packed\n!!!!" % MARK, UNREADABLE),
        (sealed(b"no archive"), UNREADABLE),
        (packed(b"f nonsense\n" + END), UNREADABLE),
        (packed(b"f 7\n" + END), UNREADABLE),
        (packed(b"f " + b"[" * 60_000 + b"\n" + END), UNREADABLE),
        (packed(b"\n" + END), UNREADABLE),
        (
            b'\n{"say":"none","detail":"no Python 3.6 or later was found"}\n',
            "no Python 3.6 or later was found, which reads logs safely: say where it is with --python",
        ),
    ],
)
def test_an_answer_without_files(stdout: bytes, why: str, tmp_path: Path) -> None:
    found = taken(stdout, tmp_path)
    assert (found.files, found.missed) == ({}, (why,))


FLOODS = {
    "one file of 200 MB": lambda: [line("f", "/a"), *[body(b"x" * 65536)] * 3000],
    "pieces of no length": lambda: [line("f", "/a"), *[b"d 0\n" * 10_000] * 2000],
    "pieces of one byte": lambda: [line("f", "/a"), *[b"d 1\nx" * 10_000] * 2000],
    "a piece of 900 MB": lambda: [line("f", "/a"), b"d 900000000\n", *[b"x" * 65536] * 3000],
    "lines about nothing": lambda: [b'x ""\n' * 10_000] * 2000,
    "a line without an end": lambda: [b"x " * 65536] * 2000,
    "files without a byte": lambda: [line("f", f"/{n}") for n in range(20_000)],
    "names that lie too deep": lambda: [
        line("f", "/".join(f"{n}{d}" for d in range(12))) for n in range(MOST_FILES)
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("flood", FLOODS)
def test_more_than_was_asked_ends_at_its_bound(flood: str, tmp_path: Path) -> None:
    """It uses up neither the memory nor the disk of this machine."""
    stdout = repeated(FLOODS[flood]())
    tracemalloc.start()
    try:
        found = taken(stdout, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.missed[-1] == TOO_MUCH
    assert peak < 16 * MEGABYTE
    assert on_disk(tmp_path) < 4096 * (MOST_FOLDERS + MOST_FILES) + 4 * MEGABYTE


def test_only_some_of_many_words_are_told(tmp_path: Path) -> None:
    raw = b"".join(line("x", f"/{n}: may not be read" + " very" * 1000) for n in range(MOST_WORDS + 7))
    found = taken(packed(raw + END), tmp_path)
    assert found.missed[MOST_WORDS:] == ("7 more were left out",)
    assert all(len(why) <= 1000 for why in found.missed)


@pytest.mark.parametrize("number", [errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.EFBIG])
def test_what_cannot_be_kept_of_one_host_is_told_of_it(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(unpacking, "open", fails, raising=False)
    found = taken(packed(logged("/a", b"x") + logged("/b", b"x") + END), tmp_path)
    assert found.missed == tuple(f"/{name}: could not be kept here: {os.strerror(number)}" for name in "ab")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_disk_without_room_ends_the_run(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(unpacking, "open", fails, raising=False)
    with pytest.raises(OSError, match=os.strerror(number)):
        taken(packed(logged("/a", b"x") + END), tmp_path)

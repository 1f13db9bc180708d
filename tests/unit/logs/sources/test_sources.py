"""What is opened in folders, archives and pipes, including hostile ones; and what is left out, with the
reason.
"""

import bz2
import gzip
import io
import lzma
import os
import socket
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from doctor.errors import EXIT_INCONCLUSIVE
from doctor.logs.explanation import Explanation, why_unknown
from doctor.logs.judge import conclude
from doctor.logs.model import Logs
from doctor.logs.read import read
from doctor.logs.sources import DamagedInput, ReadLimits, Sources, pieces
from doctor.logs.sources.kind import wide
from doctor.logs.sources.limits import CHUNK
from doctor.logs.sources.patience import LATE, TOO_LONG, Patience
from doctor.logs.sources.stream import File, PeekStream, Pipe
from doctor.logs.sources.text import LONGEST
from tests.unit.logs.known import MATCHER, NOW, logs_of, one, seen

LOST = b"Connection lost for good\n"


def names(logs: Logs, top: Path) -> list[str]:
    return [str(Path(file.name).relative_to(top)) for file in logs.files]


def tar(files: dict[str, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), int(NOW)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    for name in ("b.log", "a.log", "sub/deep/c.log", "sub/z.log", "sub2/d.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(LOST)
    assert names(logs_of(tmp_path), tmp_path) == [
        "a.log",
        "b.log",
        "sub/z.log",
        "sub/deep/c.log",
        "sub2/d.log",
    ]


def test_what_is_no_log_is_left_out_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"PK\x03\x04")
    (tmp_path / "core.123").write_bytes(b"\x7fELF" + b"\x00" * 900)
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "w").write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00" + b'{"weights":1}')
    (tmp_path / "train.log").write_bytes(LOST)
    logs = logs_of(tmp_path)
    assert names(logs, tmp_path) == ["train.log"]
    assert logs.left_out == (
        f"{tmp_path}/core.123, {tmp_path}/noise, {tmp_path}/w: not text",
        f"{tmp_path}/model.pt: not a log by its name",
    )


def test_a_text_that_was_named_is_read_whatever_its_name(tmp_path: Path) -> None:
    assert len(one(tmp_path, LOST, "out.py").sightings) == 1


def test_links_pipes_and_sockets_are_left_out(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "secret.log").write_bytes(LOST)
    (tmp_path / "link.log").symlink_to(other / "secret.log")
    (tmp_path / "folder").symlink_to(other)
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        logs = logs_of(tmp_path)
    assert logs.files == ()
    assert [line.rpartition(": ")[2] for line in logs.left_out] == ["a link", "a pipe, a socket or a device"]
    assert logs_of(tmp_path / "pipe").files == ()
    assert len(logs_of(tmp_path / "link.log").files) == 1, "a link that was named is meant"


def test_what_is_not_there_and_what_is_given_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(LOST)
    logs = logs_of(tmp_path / "none.log", path, tmp_path)
    assert len(logs.files) == 1
    assert logs.left_out == (f"{tmp_path}/none.log: there is no such file", f"{path}: given twice")


def test_a_log_that_was_not_read_may_complain(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("all is well\n")
    (tmp_path / "model.bin").write_bytes(b"\x00\x01")
    (tmp_path / "link.log").symlink_to("a.log")
    assert not logs_of(tmp_path).missed
    (tmp_path / "b.log.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100))
    logs = logs_of(tmp_path)
    explained = Explanation(conclude(logs), logs)
    assert explained.exit_code == EXIT_INCONCLUSIVE
    assert why_unknown(explained) == "Nothing complains, but not all was read"


def test_more_files_than_are_looked_at(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / f"{number:04}.log").touch()
    logs = logs_of(tmp_path, limits=ReadLimits(looked_at=100))
    assert len(logs.files) == 100
    assert logs.left_out == (f"{tmp_path}: more than 100 files were given",)
    few = logs_of(tmp_path, limits=ReadLimits(read=5))
    assert len(few.files) == 5
    assert few.left_out[0].endswith("and 2,992 more: more than 5 files")


PACKERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("a.log.gz", gzip.compress),
    ("a.log.bz2", bz2.compress),
    ("a.log.xz", lzma.compress),
    ("two.log.gz", lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:]) + b"\0" * 512),
]


@pytest.mark.parametrize(("name", "packed"), PACKERS)
def test_a_packed_file(tmp_path: Path, name: str, packed: Callable[[bytes], bytes]) -> None:
    logs = one(tmp_path, packed(b"start\n" * 9000 + LOST), name)
    assert [(number, count) for _, _, number, count in seen(logs)] == [(9001, 1)]
    assert (logs.files[0].problem, logs.files[0].size) == ("", 9000 * 6 + len(LOST))


FILES = {"./node1/rank_1.log": LOST, "node2/rank_2.log": b"fine\n" * 200 + LOST, "x/model.pt": b"PK\x03\x04"}


@pytest.mark.parametrize(
    ("name", "archive"),
    [
        ("a.tar", tar(FILES)),
        ("a.tgz", tar(FILES, "w:gz")),
        ("a.tar.bz2", tar(FILES, "w:bz2")),
        ("a.tar.xz", tar(FILES, "w:xz")),
        ("a.zip", zipped(FILES)),
        ("by_its_bytes.log", zipped(FILES)),
    ],
)
def test_an_archive(tmp_path: Path, name: str, archive: bytes) -> None:
    logs = one(tmp_path, archive, name)
    assert [(who.host, who.rank, number) for _, who, number, _ in seen(logs)] == [
        ("node1", 1, 1),
        ("node2", 2, 201),
    ]
    assert names(logs, tmp_path) == [f"{name}/node1/rank_1.log", f"{name}/node2/rank_2.log"]
    assert logs.left_out == (f"{tmp_path}/{name}/x/model.pt: not a log by its name",)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("inner", [tar(FILES, "w:gz"), zipped(FILES)])
@pytest.mark.parametrize("outer", [tar, zipped])
def test_archives_nest_once(tmp_path: Path, outer: Callable[[dict[str, bytes]], bytes], inner: bytes) -> None:
    assert len(one(tmp_path, outer({"logs": inner}), "two").files) == 2
    deep = one(tmp_path, outer({"out": outer({"logs": inner})}), "three")
    assert deep.files == ()
    assert deep.left_out[0].endswith("three/out/logs: an archive in an archive in an archive")


def test_an_archive_that_breaks_off_counts_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = tar({"a.log": LOST * 4, "b.log": LOST + os.urandom(1 << 20).hex().encode()}, "w:gz")
    logs = one(tmp_path, whole[: len(whole) // 2], "cut.tgz")
    assert [file.problem for file in logs.files] == ["", "the archive ends in the middle"]
    assert [count for _, _, _, count in seen(logs)] == [4, 1]
    single = one(tmp_path, gzip.compress(LOST + os.urandom(1 << 18).hex().encode())[:9000], "cut.gz")
    assert single.files[0].problem == "the archive ends in the middle"
    assert len(seen(single)) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"\x1f\x8b" + b"\xff" * 99,
        b"PK\x03\x04" + b"\x00" * 99,
        b"\xfd7zXZ\x00" + b"\xff" * 99,
        b"BZh9" + b"x" * 99,
    ],
)
def test_garbage_behind_a_right_beginning(tmp_path: Path, data: bytes) -> None:
    logs = one(tmp_path, data, "bad")
    assert seen(logs) == []
    assert any("damaged" in text for text in (*logs.left_out, *(file.problem for file in logs.files)))


@pytest.mark.parametrize("form", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_garbage_in_a_file_of_a_zip(tmp_path: Path, form: int) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", form) as box:
        box.writestr("rank0.log", LOST * 200)
    packed = bytearray(out.getvalue())
    packed[60:80] = b"\xff" * 20
    logs = one(tmp_path, bytes(packed), "bad.zip")
    assert any("damaged" in text for text in (*logs.left_out, *(file.problem for file in logs.files)))


@pytest.mark.slow
def test_an_archive_that_unpacks_to_far_more_is_stopped(tmp_path: Path) -> None:
    limits = ReadLimits(free=1 << 20, ratio=50)
    bomb = b"\x00" * (32 << 20)
    path = tmp_path / "bomb"
    for data in (
        gzip.compress(bomb),
        lzma.compress(bomb),
        bz2.compress(bomb),
        tar({"a": bomb}, "w:gz"),
        zipped({"a": bomb}),
    ):
        path.write_bytes(data)
        tracemalloc.start()
        logs = logs_of(path, limits=limits)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert [file.problem for file in logs.files] == ["unpacks to more than 50 times its size"]
        assert most < 24 << 20


def test_the_time_for_reading_is_over(tmp_path: Path) -> None:
    """Within one file that unpacks to a lot, and before the files after it; all may hold complaints."""
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(b"step 1 of 9\n" * 300_000))
    (tmp_path / "b.log").write_bytes(LOST)
    archive = tmp_path / "c.zip"
    archive.write_bytes(zipped({"one.log": LOST, "two.log": LOST}))
    no_time = ReadLimits(seconds=0, seconds_a_megabyte=0)
    logs = logs_of(tmp_path, limits=no_time)
    assert logs.files == ()
    assert logs.missed
    assert logs.left_out == (f"{path}, {tmp_path}/b.log, {archive}: {TOO_LONG}",)
    assert logs_of(tmp_path, limits=replace(no_time, seconds=600)).left_out == ()

    late = read([tmp_path], MATCHER, now=NOW, deadline=-1)
    assert late.missed
    assert late.left_out[0].endswith(f": {LATE}")
    assert read([tmp_path], MATCHER, now=NOW, deadline=600).left_out == ()


def test_the_time_is_over_in_the_middle_of_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was read of it counts; an archive reports it again for the files that were not opened."""
    path = tmp_path / "a.tgz"
    path.write_bytes(tar({"a.log": LOST + b"step 1 of 9\n" * 400_000, "b.log": LOST}, "w:gz"))
    worked = [0.0]
    monkeypatch.setattr("time.process_time", lambda: worked[-1])
    logs = read([path], MATCHER, now=NOW, seen=lambda _: worked.append(1000.0))
    assert [(file.problem, file.lines > 1) for file in logs.files] == [(TOO_LONG, True)]
    assert [each[0] for each in seen(logs)] == ["lost"]
    assert logs.left_out == (f"{path}: {TOO_LONG}; what could be read of it counts",)


def test_how_much_was_read_of_how_much(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"step 1 of 9\n" * 200_000)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.log.gz").write_bytes(gzip.compress(LOST * 9))
    (tmp_path / "link.log").symlink_to("a.log")
    moved: list[tuple[int, int]] = []
    read([tmp_path], MATCHER, now=NOW, moved=lambda done, of: moved.append((done, of)))
    total = sum(path.stat().st_size for path in (tmp_path / "a.log", tmp_path / "in/b.log.gz"))
    assert {of for _, of in moved} == {total}
    assert [done for done, _ in moved] == sorted(done for done, _ in moved)
    assert moved[-1][0] == total
    read([io.BytesIO(LOST)], MATCHER, now=NOW, moved=lambda done, of: moved.append((done, of)))
    assert moved[-1] == (len(LOST), 0), "the size of a pipe is not known"


def test_a_host_takes_the_time_of_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for host in ("node1", "node2"):
        (tmp_path / host).mkdir()
        for name in ("a.log", "b.log"):
            (tmp_path / host / name).write_bytes(LOST)
    worked = [0.0]
    monkeypatch.setattr("time.process_time", lambda: worked[-1])

    def spend(name: str) -> None:
        if name.endswith("node1/a.log"):
            worked.append(1000.0)

    logs = read([tmp_path / "node1", tmp_path / "node2"], MATCHER, now=NOW, apart=True, seen=spend)
    assert {each.first.file for each in logs.sightings} >= {f"{tmp_path}/node2/{each}.log" for each in "ab"}
    assert logs.left_out == (f"{tmp_path}/node1/b.log: {TOO_LONG}",)


def test_readers_at_once_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 10.0
    monkeypatch.setattr(time, "process_time", lambda: clock)
    patience = Patience(ReadLimits(seconds=80.0))
    patience.forked(10.0, os.getppid(), 8)
    clock = 9.0
    assert not patience.over
    clock = 11.0
    assert patience.over == TOO_LONG


def test_time_is_given_for_what_is_read_and_not_for_what_it_unpacks_to(tmp_path: Path) -> None:
    patience = Patience(ReadLimits(seconds=-1e6, seconds_a_megabyte=1e6))
    path = tmp_path / "a.log"
    path.write_bytes(os.urandom(3 << 20))
    assert patience.over
    with path.open("rb") as file:
        stream = File(file, patience)
        while stream.read(1 << 20):
            pass
    assert not patience.over
    hole = tmp_path / "hole.zip"
    with hole.open("wb") as out:
        out.seek(1 << 40)
        out.write(zipped({"a.log": LOST}))
    logs = logs_of(hole, limits=ReadLimits(seconds=-1e6, seconds_a_megabyte=1e6))
    assert logs.left_out == (f"{hole}: {TOO_LONG}",)


def test_a_pipe_without_an_end_ends_at_the_deadline() -> None:
    ours, theirs = os.pipe()
    with open(theirs, "wb", buffering=0) as out, open(ours, "rb") as pipe:
        out.write(LOST)
        logs = read([pipe], MATCHER, now=NOW, deadline=0.2)
    assert [file.problem for file in logs.files] == [LATE]
    assert [each[0] for each in seen(logs)] == ["lost"]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("size", [LONGEST, LONGEST + 1, 3 * LONGEST, CHUNK - 1, 3 * CHUNK + 17])
def test_the_rest_of_a_long_line_is_passed_over(size: int, end: bytes) -> None:
    """Whatever its length and its start; the lines around it stay as they are, and are counted."""
    text = b"before" + end + (b"x" * size + end) * 3 + b"after" + end + b"lost"
    stream = PeekStream(Pipe(io.BytesIO(text), Patience(ReadLimits())), Patience(ReadLimits()))
    passed = b"".join(pieces(stream))
    lines = passed.split(end)
    assert len(lines) == 6
    assert (lines[0], lines[4:]) == (b"before", [b"after", b"lost"])
    assert all(set(line) == {ord("x")} for line in lines[1:4])
    assert all(len(line) == LONGEST for line in lines[1:4])


def test_the_table_of_a_zip_is_as_large_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doctor.logs.sources.archive._MOST_TABLE", 10_000)
    few, many = ({f"{number:04}.log": LOST for number in range(count)} for count in (50, 500))
    assert len(one(tmp_path, zipped(few), "few.zip").files) == 50
    logs = one(tmp_path, zipped(many), "many.zip")
    assert logs.files == ()
    assert logs.missed


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_with_garbage_in_it(tmp_path: Path, packing: int) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as made:
        made.writestr("a.log", os.urandom(20_000).hex())
        made.writestr("b.log", LOST)
    data = bytearray(out.getvalue())
    data[60:4000] = b"\xa5" * 3940
    logs = one(tmp_path, bytes(data), "bad.zip")
    assert [each[0] for each in seen(logs)] == ["lost"]
    assert logs.files[0].problem == "damaged archive"


def test_a_header_of_gigabytes(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 4 << 30
    header = info.tobuf(tarfile.GNU_FORMAT)
    logs = one(tmp_path, header + b"1 a=b\n" * 100_000, "a.tar")
    assert logs.files == ()
    assert "damaged archive" in logs.left_out[0]


def test_headers_without_end(tmp_path: Path) -> None:
    """One inside the other, and an endless list of holes: tarfile would keep all of it in memory."""

    def header(kind: bytes, size: int, *, goes_on: bool = False) -> bytes:
        info = tarfile.TarInfo("a.log")
        info.type, info.size = kind, size
        made = bytearray(info.tobuf(tarfile.GNU_FORMAT))
        made[482] = goes_on
        made[148:156] = b" " * 8
        made[148:156] = b"%06o\0 " % sum(made)
        return bytes(made)

    first = tar({"first.log": LOST})[:1024]
    nested = (header(tarfile.GNUTYPE_LONGNAME, 4) + b"abc\0".ljust(512, b"\0")) * 900
    holes = header(tarfile.GNUTYPE_SPARSE, 0, goes_on=True) + (b"%011o\0" % 1 * 42).ljust(512, b"\1") * 9000
    for data in (nested, holes):
        logs = one(tmp_path, first + data, "a.tar")
        assert [each[0] for each in seen(logs)] == ["lost"]
        assert logs.left_out == (f"{tmp_path}/a.tar: damaged archive; what could be read of it counts",)


def test_names_in_archives_lead_nowhere(tmp_path: Path) -> None:
    logs = one(tmp_path, tar({"../../etc/x.log": LOST, "/root/y.log": LOST}), "a.tar")
    assert len(logs.files) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


def test_standard_input_may_be_a_text_or_an_archive() -> None:
    logs = logs_of(io.BytesIO(LOST))
    assert [(file.name, file.size) for file in logs.files] == [("standard input", len(LOST))]
    for archive in (tar(FILES, "w:gz"), zipped(FILES)):
        assert len(seen(logs_of(io.BytesIO(archive)))) == 2


@pytest.mark.parametrize(
    "data",
    [
        LOST.decode().encode("utf-16"),
        b"\xfe\xff" + LOST.decode().encode("utf-16-be"),
        ("text " * 20 + "\n" + LOST.decode()).encode("utf-16-le"),
        b"\xef\xbb\xbf" + LOST,
        LOST.replace(b"\n", b"\r\n"),
        b"\x00" * 9000 + LOST,
        b"Connection\x00 lost\x00 for good",
        b"\x1b[31mConnection \x1b[1;4mlost\x1b[0m for good\n",
        b"\x1b]0;title\x07Connection lost for good\n",
        b"\xff\xfe\xfa not utf-8 \xc3\x28 Connection lost for good \xf0\x28\n"[2:],
        b"5%\r10%\r20%\rConnection lost for good\r30%\n",
        b"x" * (3 << 20) + b"\n" + LOST,
    ],
)
def test_all_encodings_and_dirt(tmp_path: Path, data: bytes) -> None:
    logs = one(tmp_path, data)
    assert [each[0] for each in seen(logs)] == ["lost"]
    assert all(line.text.isprintable() for line in (logs.sightings[0].first, logs.files[0].last) if line)


def test_line_numbers_are_those_of_an_editor(tmp_path: Path) -> None:
    text = b"a\r\nb\rc\r\n" + b"y" * (2 << 20) + b"\n" + LOST
    assert seen(one(tmp_path, text))[0][2] == 4


def test_what_is_written_meanwhile_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(LOST)
    for opened in Sources([path], ReadLimits(), NOW).files():
        with path.open("ab") as more:
            more.write(LOST * 1000)
        assert b"".join(pieces(opened.stream)) == LOST


def test_a_file_that_became_shorter_was_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(LOST * 200_000)
    for opened in Sources([path], ReadLimits(), NOW).files():
        text = pieces(opened.stream)
        assert next(text).startswith(LOST)
        os.truncate(path, 0)
        with pytest.raises(DamagedInput, match="became shorter"):
            list(text)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "big.log"
    with path.open("wb") as out:
        for block in range(50):
            lines = (
                b"[rank%d]: step %d of 9 loss 1.5 Connection lost for good\n" % (n % 8, n) for n in range(100)
            )
            out.write(b"".join(lines) + b"%d x" % block * (1 << 18) + b"\n")
    assert path.stat().st_size > 50_000_000
    tracemalloc.start()
    logs = logs_of(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(each.count for each in logs.sightings) == 5_000
    assert most < 40 << 20


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("text", "is_wide"),
    [("Connection lost for good", True), ("Äußerst schöne Wörter", True), ("lost", False)],
)
def test_wide_text_without_a_mark_at_its_beginning(codec: str, text: str, is_wide: bool) -> None:
    assert wide(text.encode(codec)) == (codec if is_wide else "")


@pytest.mark.parametrize(
    "head", [LOST, bytes(100), b"", b"ab\0\0" * 30, "连接已断开，重试中".encode("utf-16-le") * 3]
)
def test_what_is_not_wide_text(head: bytes) -> None:
    assert wide(head) == ""

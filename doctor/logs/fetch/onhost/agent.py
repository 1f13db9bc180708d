"""Prints the requested logs packed: base64 of gzip of records, each one line, with bytes after a `d`.

f "NAME"     a file begins; a file that is too long is cut to its end, which shows what ended the job
d 65536      this number of its bytes follows
x "WHY"      a log that may hold complaints was left out
n "WHY"      a note
z            the end
"""

import base64
import json
import os
import pwd
import subprocess
import sys
import time
import zlib
from typing import Any

from doctor.agents.onhost.kernel_words import whole_lines
from doctor.agents.onhost.request import one_request
from doctor.logs.fetch.onhost.places import CLOSED, NOT_READ, Finder, ForeignEntry, OpenFile, user

MOST_FILES = 5000
MOST_WORDS = 5000
"""The most lines about files that were left out."""
HEADS = 4_000_000
"""The most bytes of all lines together."""
PIECE = 65536
KERNEL_LINES = 5000
KERNEL_BYTES = 2_000_000
KERNEL_SECONDS = 10
KERNEL = "kernel-log"
"""The file name for the output of `dmesg`."""
PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"PK\x03\x04", b"\x28\xb5\x2f\xfd")
"""The first bytes of files that cannot be cut: gzip, bzip2, xz, zip, zstd."""
MOST_ALIKE = 10
"""The most places listed for one reason: those of one user must not crowd out those of another."""


def main(program: bytes, head: int) -> None:
    del program, head
    wanted = one_request()
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin:/usr/local/bin"
    out = Packer(wanted["token"])
    Fetch(wanted, out).run()
    out.end()


class Packer:
    def __init__(self, token: str) -> None:
        self._token = token
        self._zip = zlib.compressobj(6, zlib.DEFLATED, 31)
        self._begun = b""
        self._heads = 0
        self._words: set[str] = set()
        sys.stdout.buffer.write(f"\n{token[: len(token) // 2]} packed\n".encode())

    def file(self, name: str) -> bool:
        """Begin a file; False if there is no room for its name."""
        return self._line("f " + json.dumps(name))

    def piece(self, data: bytes) -> None:
        self._put(f"d {len(data)}\n".encode("ascii") + data)

    def left_out(self, path: str, why: str, note: bool = False) -> None:
        line = ("n " if note else "x ") + json.dumps(f"{path}: {why}" if path else why)
        if line not in self._words and len(self._words) < MOST_WORDS:
            self._words.add(line)
            self._line(line)

    def end(self) -> None:
        self._put(b"z\n")
        self._begun += self._zip.flush()
        self._print(self._begun)
        sys.stdout.buffer.write(f"\n\n{self._token} done\n".encode())
        sys.stdout.buffer.flush()

    def _line(self, text: str) -> bool:
        data = (text + "\n").encode("ascii")
        self._heads += len(data)
        if self._heads <= HEADS:
            self._put(data)
        return self._heads <= HEADS

    def _put(self, data: bytes) -> None:
        self._begun += self._zip.compress(data)
        whole = len(self._begun) // 3 * 3
        self._print(self._begun[:whole])
        self._begun = self._begun[whole:]

    def _print(self, data: bytes) -> None:
        if data:
            sys.stdout.buffer.write(base64.b64encode(data) + b"\n")


class Fetch:
    def __init__(self, wanted: "dict[str, Any]", out: Packer) -> None:
        self.wanted, self.out = wanted, out
        login, home = os.geteuid(), os.environ.get("HOME", "")
        if wanted["sudo"] and login == 0 and os.environ.get("SUDO_UID", "").isdigit():
            login, home = int(os.environ["SUDO_UID"]), ""
        self.finder = Finder(home or _home(login), login, self._rank_user_ids())
        self.since = time.time() - 60 * wanted["minutes"] if wanted["minutes"] is not None else 0.0
        self.left: int = wanted["a_host"]
        self.files = 0
        self.seen: set[tuple[int, int]] = set()

    def run(self) -> None:
        for path in self.wanted["outputs"]:
            self._output(path)
        for pattern in self.wanted["globs"]:
            for found in self.finder.find(pattern):
                if found.about.st_mtime >= self.since:
                    self._found(found, found.path)
        self._refused()
        of_users: dict[int, list[ForeignEntry]] = {}
        for each in self.finder.foreign:
            if each.files or each.hidden:
                of_users.setdefault(each.owner, []).append(each)
        for places in of_users.values():
            for each in places[:MOST_ALIKE]:
                self.out.left_out("", _foreign(each))
            if len(places) > MOST_ALIKE:
                more = "{} more places belong to {} and were not read"
                self.out.left_out("", more.format(len(places) - MOST_ALIKE, user(places[0].owner)))
        if self.wanted["kernel"]:
            self._kernel()

    def _refused(self) -> None:
        """Report places that could not be read. A usual place is only a note: it need not hold any logs."""
        alike: dict[tuple[str, bool], list[str]] = {}
        for path, why in dict.fromkeys(self.finder.refused):
            system = path.startswith("/var/log/") and why == NOT_READ
            alike.setdefault((why, system or (why == CLOSED and self.wanted["kernel"])), []).append(path)
        for (why, note), paths in alike.items():
            for path in paths[:MOST_ALIKE]:
                self.out.left_out(path, why, note)
            if len(paths) > MOST_ALIKE:
                self.out.left_out(f"{len(paths) - MOST_ALIKE} more places", why, note)

    def _rank_user_ids(self) -> "set[int]":
        name = self.wanted["rank_user"]
        if not name:
            return set()
        try:
            return {pwd.getpwnam(name).pw_uid}
        except KeyError:
            if name.isdigit():
                return {int(name)}
        self.out.left_out("", f"there is no user {name} here (--rank-user)", note=True)
        return set()

    def _output(self, path: str) -> None:
        """A file of the job. It keeps the name that the scheduler gave, wherever links lead."""
        refused = len(self.finder.refused)
        exists = False
        for found in self.finder.find(path, exact=True):
            exists = True
            if not self.wanted["reads_outputs"]:
                self.seen.add((found.about.st_dev, found.about.st_ino))
            elif found.about.st_size:
                self._found(found, path)
            else:
                self.out.left_out(path, "is empty", note=True)
        ways = self.finder.refused[refused:]
        del self.finder.refused[refused:]
        if not exists and self.wanted["reads_outputs"]:
            why = "{} {}".format(*ways[-1]) if ways else "there is no such file"
            self.out.left_out(path, f"the job writes there, but {why}")

    def _found(self, found: OpenFile, name: str) -> None:
        key = (found.about.st_dev, found.about.st_ino)
        if key in self.seen or not found.about.st_size:
            return
        if found.foreign:
            found.foreign.files += 1
            return
        self.seen.add(key)
        try:
            fd = self.finder.read(found.fd)
        except OSError:
            self.out.left_out(name, NOT_READ, note=name.startswith("/var/log/"))
            return
        try:
            self._take(fd, name)
        except OSError as error:
            self.out.left_out(name, f"could not be read: {error.strerror}")
        finally:
            os.close(fd)

    def _take(self, fd: int, path: str) -> None:
        size = os.fstat(fd).st_size
        most = min(size, self.wanted["a_file"])
        if most < size and os.pread(fd, 8, 0).startswith(PACKED):
            self.out.left_out(path, f"has {size} bytes and is packed, so it was not cut: raise --max-mb")
            return
        if most > self.left:
            self.out.left_out(path, "over the limit of the host (--max-mb)")
            return
        if self.files >= MOST_FILES or not self.out.file(path):
            self.out.left_out(
                "", "there are more files than one answer can hold: name fewer (--path, --since)"
            )
            return
        self.files += 1
        self.left -= most
        if most < size:
            cut = "only the last {} of its {} bytes (--max-mb); its line numbers count from there"
            self.out.left_out(path, cut.format(most, size), note=True)
            os.lseek(fd, size - most, os.SEEK_SET)
        while most > 0:
            data = os.read(fd, min(PIECE, most))
            if not data:
                break
            most -= len(data)
            self.out.piece(data)

    def _kernel(self) -> None:
        for words in (["dmesg", "--time-format", "iso"], ["dmesg"]):
            try:
                said = subprocess.run(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    timeout=KERNEL_SECONDS,
                ).stdout
            except (OSError, subprocess.SubprocessError):
                continue
            text = said.decode("utf-8", "surrogateescape").splitlines(True)[-KERNEL_LINES:]
            lines = "".join(whole_lines(text)).encode("utf-8", "surrogateescape")[-KERNEL_BYTES:]
            if lines and self.out.file(KERNEL):
                for start in range(0, len(lines), PIECE):
                    self.out.piece(lines[start : start + PIECE])
                return


def _foreign(of: ForeignEntry) -> str:
    files = "" if not of.files else " (1 file)" if of.files == 1 else f" ({of.files} files)"
    owner = user(of.owner)
    told = "{}{} belongs to {} and was not read: --rank-user {}"
    return told.format(of.path, files, owner, owner.split()[-1])


def _home(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return "/"

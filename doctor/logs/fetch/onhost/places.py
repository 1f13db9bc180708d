"""Finds files by patterns in a way that lets nobody else choose what the reader reads.

Each step opens an entry of an open folder without following links, and examines the open descriptors, so that
nothing can be exchanged between looking and reading. Only a regular file is ever opened for reading.

Root, the reader and the login are trusted. A link is followed only if it belongs to one of them and nobody
else could have put it there. In a world-writable folder such as /tmp, only entries of these users and of the
named user count. If the reader is root, an entry in somebody else's folder must belong to the owner of that
folder or be readable by those that the folder is for; if others can rename entries, files for root alone do
not count. So root reads nothing there that the user who chose its name could not read.
"""

import errno
import fnmatch
import grp
import os
import pwd
import re
import stat
from collections.abc import Iterator
from itertools import islice
from typing import Any

DEPTH = 8
MOST_SEEN = 100_000
"""The most entries that are examined for one pattern."""
MOST_COUNTED = 20_000
"""The most entries examined in folders of others, who must not keep users from getting their own logs."""
MOST_LINKS = 20
NOT_READ = "may not be read by this user"
CLOSED = "may not be looked into by this user"
"""The reason for a folder on the way to a requested file."""
MAGIC = re.compile(r"[*?[]")
LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class OpenFolder:
    """An open folder, and properties of the path to it."""

    def __init__(self, fd: int, path: str, up: "OpenFolder | None" = None) -> None:
        self.fd, self.path, self.up = fd, path, up
        self.about = os.fstat(fd)
        self.shared = False
        """It is below a world-writable folder."""
        self.loose = False
        """It is below a folder in which others can rename entries that are not theirs."""
        self.foreign: ForeignEntry | None = None


class ForeignEntry:
    """A place in a world-writable folder that belongs to a user who was not named."""

    def __init__(self, path: str, owner: int) -> None:
        self.path, self.owner = path, owner
        self.files = 0
        self.hidden = False


class OpenFile:
    """A regular file. `fd` is open until the next file is found."""

    def __init__(self, fd: int, path: str, about: os.stat_result, foreign: "ForeignEntry | None") -> None:
        self.fd, self.path, self.about, self.foreign = fd, path, about, foreign


class EntryRefusal(Exception):
    """Why an entry is not read."""


class Finder:
    """Finds files. If root may not open one, as in a home on NFS, it tries with the rights of `login`."""

    def __init__(self, home: str, login: int, named: "set[int]") -> None:
        self.home = home
        self.login = login
        self.root = os.geteuid() == 0
        self.trusted = {0, os.geteuid(), login}
        self.allowed = self.trusted | named
        self.refused: list[tuple[str, str]] = []
        self.foreign: list[ForeignEntry] = []
        self._left = 0
        self._counted = 0

    def find(self, pattern: str, exact: bool = False) -> "Iterator[OpenFile]":
        """`exact`: it is the name of one file, whatever characters are in it."""
        self._left = MOST_SEEN
        if pattern.startswith("~/") and not exact:
            pattern = pattern[2:]
        parts = [(part, bool(MAGIC.search(part)) and not exact) for part in _parts(pattern)]
        if not pattern.startswith("/"):
            parts = [(part, False) for part in _parts(self.home)] + parts
        top = OpenFolder(os.open("/", LOOK | os.O_DIRECTORY), "/")
        try:
            yield from self._follow(top, parts, 0)
        finally:
            os.close(top.fd)
        if self._left <= 0:
            self.refused.append((pattern, "it has too many entries to examine: name fewer files (--path)"))

    def read(self, fd: int, flags: int = 0) -> int:
        """Open a found entry for reading. Raises OSError."""
        return self._open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | flags)

    def _follow(self, place: OpenFolder, parts: "list[tuple[str, bool]]", links: int) -> "Iterator[OpenFile]":
        if not parts:
            yield from self._all(place, DEPTH)
            return
        (part, magic), rest = parts[0], parts[1:]
        if part == "..":
            yield from self._follow(place.up or place, rest, links)
            return
        names = [part] if not magic else [name for name in self._names(place, False) if _fits(name, part)]
        for name in names:
            yield from self._enter(place, name, rest, links)

    def _enter(
        self, place: OpenFolder, name: str, rest: "list[tuple[str, bool]]", links: int
    ) -> "Iterator[OpenFile]":
        path = os.path.join(place.path, name)
        try:
            fd = self._open(name, LOOK, place.fd)
        except OSError as error:
            self._not_opened(place, path, CLOSED, error)
            return
        try:
            about = os.fstat(fd)
            try:
                if stat.S_ISLNK(about.st_mode):
                    target = self._target(place, fd, about, links)
                    start, parts = place, [(part, False) for part in _parts(target)] + rest
                    while target.startswith("/") and start.up:
                        start = start.up
                    below = self._follow(start, parts, links + 1)
                elif stat.S_ISDIR(about.st_mode):
                    below = self._follow(self._step_into(place, fd, path), rest, links)
                elif stat.S_ISREG(about.st_mode) and not rest:
                    below = iter((OpenFile(fd, path, about, self._judge(place, about, path)[2]),))
                else:
                    return
            except (EntryRefusal, OSError) as error:
                self.refused.append((path, str(error)))
                return
            yield from below
        finally:
            os.close(fd)

    def _all(self, place: OpenFolder, depth: int) -> "Iterator[OpenFile]":
        for name in self._names(place, True):
            yield from self._below(place, name, depth)

    def _below(self, place: OpenFolder, name: str, depth: int) -> "Iterator[OpenFile]":
        """The files of an entry of a matched folder. Links in it are skipped, as `find` does."""
        path = os.path.join(place.path, name)
        try:
            fd = self._open(name, LOOK, place.fd)
        except OSError as error:
            self._not_opened(place, path, NOT_READ, error)
            return
        try:
            about = os.fstat(fd)
            if stat.S_ISDIR(about.st_mode) and depth > 1:
                yield from self._all(self._step_into(place, fd, path), depth - 1)
            elif stat.S_ISREG(about.st_mode):
                yield OpenFile(fd, path, about, self._judge(place, about, path)[2])
        except EntryRefusal as error:
            self.refused.append((path, str(error)))
        finally:
            os.close(fd)

    def _names(self, place: OpenFolder, matched: bool) -> "list[str]":
        try:
            fd = self.read(place.fd, os.O_DIRECTORY)
        except OSError as error:
            self._not_opened(place, place.path, NOT_READ if matched else CLOSED, error)
            return []
        try:
            with os.scandir(f"/proc/self/fd/{fd}") as entries:
                most = MOST_COUNTED - self._counted if place.foreign else self._left
                names = [entry.name for entry in islice(entries, max(0, most))]
        except OSError as error:
            self._not_opened(place, place.path, NOT_READ, error)
            names = []
        finally:
            os.close(fd)
        if place.foreign:
            self._counted += len(names)
            place.foreign.hidden |= self._counted >= MOST_COUNTED
        else:
            self._left -= len(names)
        return sorted(names)

    def _not_opened(self, place: OpenFolder, path: str, why: str, error: OSError) -> None:
        """Note that an entry could not be opened; an entry that does not exist is ignored."""
        if error.errno == errno.ENOENT:
            return
        if place.foreign:
            place.foreign.hidden = True
        elif isinstance(error, PermissionError):
            self.refused.append((place.path, why))
        else:
            self.refused.append((path, f"could not be opened: {error.strerror}"))

    def _step_into(self, place: OpenFolder, fd: int, path: str) -> OpenFolder:
        inside = OpenFolder(fd, path, place)
        inside.shared, inside.loose, inside.foreign = self._judge(place, inside.about, path)
        return inside

    def _judge(
        self, place: OpenFolder, about: os.stat_result, path: str
    ) -> "tuple[bool, bool, ForeignEntry | None]":
        """`shared`, `loose` and `foreign` of an entry. Raises EntryRefusal if others may have chosen it."""
        shared, loose, foreign = place.shared, place.loose, place.foreign
        over, owner = place.about, about.st_uid
        writable = over.st_mode & (stat.S_IWOTH | stat.S_IWGRP)
        if self.root and writable and stat.S_ISDIR(about.st_mode) and about.st_dev != over.st_dev:
            raise EntryRefusal("is another file system, in a folder where others could have mounted it")
        if foreign:
            return shared, loose, foreign
        loose = loose or self._can_rename(over)
        if over.st_mode & stat.S_IWOTH:
            shared = True
            if owner not in self.allowed:
                foreign = ForeignEntry(path, owner)
                self.foreign.append(foreign)
                return shared, loose, foreign
        elif self.root and over.st_uid not in self.trusted and owner != over.st_uid:
            if not _seen_by_all(about, over) or about.st_dev != over.st_dev:
                raise EntryRefusal(f"belongs to {user(owner)}, in a folder of {user(over.st_uid)}")
            loose = True
        if writable and stat.S_ISREG(about.st_mode) and about.st_nlink > 1 and (self.root or shared):
            raise EntryRefusal("has other names, in a folder that others can write to")
        others = stat.S_IROTH | (stat.S_IRGRP if about.st_gid else 0)  # such as the group adm
        if self.root and loose and owner == 0 and not about.st_mode & others:
            raise EntryRefusal("is for root alone, below a folder in which others could have renamed it")
        return shared, loose, None

    def _can_rename(self, over: os.stat_result) -> bool:
        """Whether others can rename entries of a folder that do not belong to them."""
        return _by_others(over) and (not over.st_mode & stat.S_ISVTX or over.st_uid not in self.trusted)

    def _target(self, place: OpenFolder, fd: int, about: os.stat_result, links: int) -> str:
        """The target of a link. Raises EntryRefusal, OSError."""
        over = place.about
        if about.st_uid not in self.trusted:
            raise EntryRefusal(f"is a link of {user(about.st_uid)}, which is not followed")
        open_to_all = over.st_mode & stat.S_IWOTH and not over.st_mode & stat.S_ISVTX
        of_others = self.root and (place.loose or self._can_rename(over) or over.st_uid not in self.trusted)
        if open_to_all or of_others or about.st_nlink > 1:
            raise EntryRefusal("is a link that others could have put there, which is not followed")
        if links >= MOST_LINKS:
            raise EntryRefusal("leads through too many links")
        return os.readlink("", dir_fd=fd)

    def _open(self, path: str, flags: int, folder: "int | None" = None) -> int:
        try:
            return os.open(path, flags | os.O_CLOEXEC, dir_fd=folder)
        except PermissionError:
            if not self.root or self.login == 0:
                raise
        os.seteuid(self.login)
        try:
            return os.open(path, flags | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.seteuid(0)


def user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _by_others(folder: os.stat_result) -> bool:
    """Whether users other than its owner can write to it. The owner's private group does not count."""
    if not folder.st_mode & stat.S_IWGRP or folder.st_gid == 0:
        return bool(folder.st_mode & stat.S_IWOTH)
    try:
        private = grp.getgrgid(folder.st_gid).gr_name == pwd.getpwuid(folder.st_uid).pw_name
    except KeyError:
        private = False
    return not private or bool(folder.st_mode & stat.S_IWOTH)


def _seen_by_all(about: os.stat_result, over: os.stat_result) -> bool:
    """Whether all users, or the group of its folder, can read it, and it is not a file with other names."""
    group = about.st_gid == over.st_gid != 0
    if stat.S_ISDIR(about.st_mode):
        return about.st_mode & 0o005 == 0o005 or (group and about.st_mode & 0o050 == 0o050)
    return bool(about.st_mode & (stat.S_IROTH | (stat.S_IRGRP if group else 0))) and about.st_nlink == 1


def _parts(path: str) -> "list[str]":
    return [part for part in path.split("/") if part not in ("", ".")]


def _fits(name: str, pattern: str) -> Any:
    return (not name.startswith(".") or pattern.startswith(".")) and fnmatch.fnmatchcase(name, pattern)

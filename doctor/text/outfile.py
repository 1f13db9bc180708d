"""Writes output files completely or not at all, readable only by their owner unless they are meant for all.

A new file replaces the old one in one step: after a full disk or a crash the old one is still whole, and a
link in its place is never followed. Streams (a pipe, /dev/null, a descriptor such as /dev/stdout) are written
to directly.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
import re
import stat
from collections.abc import Mapping
from pathlib import Path

MOST_TRIES = 1000
MOST_LINKS = 10
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
PUBLIC_FILE = 0o644
_NEW = os.O_WRONLY | os.O_CLOEXEC
_DESCRIPTORS = re.compile(r"/proc/(\d+)(?:/task/\d+)?/fd")


def write_file(path: Path, data: bytes, *, for_all: bool = False) -> None:
    """Writes the file; if it raises OSError, the old one is unchanged. A file `for_all` is readable by all
    users, unless the umask forbids it.
    """
    stream = _stream(path)
    if stream is not None:
        with open(_opened(stream), "wb") as file:
            file.write(data)
        return
    with _Draft(path.parent, data, PUBLIC_FILE if for_all else PRIVATE_FILE) as draft:
        draft.replace(path)


def add_files(folder: Path, name: str, contents: Mapping[str, bytes]) -> dict[str, Path]:
    """Writes one file per suffix, all with the same unused stem. Raises OSError."""
    for number in range(1, MOST_TRIES):
        stem = name if number == 1 else f"{name}.{number}"
        made: list[Path] = []
        try:
            for suffix, data in contents.items():
                with _Draft(folder, data) as draft:
                    draft.publish(folder / f"{stem}{suffix}")
                made.append(folder / f"{stem}{suffix}")
        except BaseException as error:
            _take_back(made)
            if not isinstance(error, FileExistsError):
                raise
        else:
            return dict(zip(contents, made, strict=True))
    raise FileExistsError(errno.EEXIST, "every name for it is taken")


def append_line(path: Path, line: bytes) -> None:
    """Adds a line to a file of ours, in one piece even if others add theirs at the same time; none adds
    nothing, but makes the file. Raises OSError.
    """
    handle = os.open(path, _NEW | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, PRIVATE_FILE)
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1 or why_others_can_change(about):
            raise OSError(errno.EPERM, "it is not a file of ours alone")
        if os.write(handle, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(handle)


def make_folder(path: Path) -> None:
    """Creates the folder and its missing parents, accessible only to their owner whatever the umask."""
    if not os.path.isdir(path):
        if path.parent != path:
            make_folder(path.parent)
        with contextlib.suppress(FileExistsError):  # another rank or run made it just now
            path.mkdir(PRIVATE_FOLDER)
            path.chmod(PRIVATE_FOLDER)


def hold_folder(name: str, inside: int | Path) -> int:
    """A descriptor of a folder that our own mkdir makes, or that is ours alone. Raises OSError if it is not:
    in a folder that others may write to, anybody can have made that name. `inside`: the folder that has it.
    """
    if isinstance(inside, Path):
        make_folder(inside)
        inside = os.open(inside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    else:
        inside = os.dup(inside)
    try:
        made = True
        try:
            os.mkdir(name, PRIVATE_FOLDER, dir_fd=inside)
        except FileExistsError:
            made = False
        return open_own(name, inside, made=made)
    finally:
        os.close(inside)


def open_own(name: str, inside: int, *, made: bool = False, folder: bool = True) -> int:
    """A descriptor of a folder or a regular file, if it is ours alone; `made`: we have just made it. No link
    is followed. Raises OSError.
    """
    kind = os.O_DIRECTORY if folder else os.O_NONBLOCK
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=inside)
    about = os.fstat(handle)
    why = "" if made else why_others_can_change(about)
    if not folder and (not stat.S_ISREG(about.st_mode) or about.st_nlink != 1):
        why = "it is not a file of ours alone"
    if why or about.st_mode & stat.S_IWOTH:
        os.close(handle)
        raise OSError(errno.EPERM, why or "others can write to it")
    return handle


def is_stream(path: Path) -> bool:
    """Whether the path is a stream, which is written to and never replaced."""
    return _stream(path) is not None


def why_not(path: Path) -> str:
    """Why `write_file` would fail, as far as can be known beforehand; empty if it should work."""
    if is_stream(path):
        return ""
    if os.path.islink(path):
        return "it is a symbolic link, which is not followed"
    if os.path.isdir(path):
        return "it is a folder"
    if not os.path.isdir(path.parent):
        return "there is no such folder"
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return "its folder is not writable"
    if os.path.exists(path):
        if not os.access(path, os.W_OK):
            return "the file is not writable"
        folder = path.parent.stat()
        if folder.st_mode & stat.S_ISVTX and os.geteuid() not in (0, path.stat().st_uid, folder.st_uid):
            return "the file belongs to another user"
    return ""


def why_not_ours(folder: Path) -> str:
    """Why others could change what we keep in this folder: they own it, can write to it, or own a link that
    leads there. Empty if it is ours alone, or does not exist yet. Raises no OSError.
    """
    try:
        about = _behind_links_of_ours(folder).lstat()
    except _LinkOfAnother as link:
        return str(link)
    except OSError:  # it does not exist yet: we will create it
        return ""
    return why_others_can_change(about)


def why_others_can_change(about: os.stat_result) -> str:
    """Why others could change the file or folder with this status; empty if it is ours alone."""
    if not _trusted(about.st_uid):
        return f"it belongs to another user ({user_name(about.st_uid)})"
    return "others can write to it" if _open_to_others(about) else ""


class _LinkOfAnother(Exception):
    pass


def _behind_links_of_ours(folder: Path) -> Path:
    """The folder with links of ours resolved. Raises _LinkOfAnother and OSError."""
    links, path = 0, Path("/")
    ahead = list(reversed(folder.absolute().parts[1:]))
    while ahead:
        part = ahead.pop()
        path = path.parent if part == ".." else path / part
        about = path.lstat()
        if not stat.S_ISLNK(about.st_mode):
            continue
        if not _trusted(about.st_uid):
            raise _LinkOfAnother(f"{path} is a link of another user ({user_name(about.st_uid)})")
        if (links := links + 1) > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = path.readlink()
        ahead.extend(reversed([part for part in target.parts if part != "/"]))
        path = Path("/") if target.is_absolute() else path.parent
    return path


def _trusted(owner: int) -> bool:
    return owner in (0, os.geteuid())


def _open_to_others(about: os.stat_result) -> bool:
    """Whether others can replace files in the folder; in a sticky folder, such as /tmp, they cannot. The
    user's private group, which many distributions create, does not count as others.
    """
    if about.st_mode & stat.S_ISVTX:
        return False
    own = about.st_gid == os.getegid() and user_name(about.st_uid) == _group(about.st_gid)
    return bool(about.st_mode & (stat.S_IWOTH if own else stat.S_IWOTH | stat.S_IWGRP))


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return f"gid {gid}"


def _stream(path: Path) -> Path | None:
    """The stream at the path, or None. Only links in /dev are followed: elsewhere anybody may make links."""
    for _ in range(MOST_LINKS):
        folder = os.path.realpath(path.parent)
        path = Path(folder, path.name)
        if _DESCRIPTORS.fullmatch(folder):
            return path
        try:
            mode = path.lstat().st_mode
        except (OSError, ValueError):
            return None
        if not stat.S_ISLNK(mode):
            return None if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else path
        if folder != "/dev":
            return None
        path = Path(folder, path.readlink())
    return None


def _opened(stream: Path) -> int:
    """A descriptor for the stream; one of our own is duplicated, which keeps append mode and sockets."""
    of = _DESCRIPTORS.fullmatch(str(stream.parent))
    if of and int(of[1]) == os.getpid() and stream.name.isdecimal():
        return os.dup(int(stream.name))
    return os.open(stream, _NEW | os.O_NOCTTY)


def _take_back(paths: list[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


class _Draft:
    """A hidden file, which gets its name when it is complete."""

    def __init__(self, folder: Path, data: bytes, mode: int = PRIVATE_FILE) -> None:
        self._path = folder / f".doctor-{os.urandom(8).hex()}.tmp"
        handle = os.open(self._path, os.O_CREAT | os.O_EXCL | _NEW, mode)
        try:
            if mode == PRIVATE_FILE:
                with contextlib.suppress(OSError):  # only needed if the umask removes even the owner's rights
                    os.fchmod(handle, PRIVATE_FILE)
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(handle)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> _Draft:
        return self

    def __exit__(self, *_: object) -> None:
        _take_back([self._path])

    def replace(self, path: Path) -> None:
        """Puts the file in the place of whatever has that name."""
        os.replace(self._path, path)

    def publish(self, path: Path) -> None:
        """Gives the file its name in one step; raises FileExistsError if the name is taken."""
        try:
            os.link(self._path, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links: an empty file takes the name first
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | _NEW, PRIVATE_FILE))
            os.replace(self._path, path)

"""The known_hosts files: read once, queried for each host, appended to when a new key is accepted."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hmac
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path

from paramiko import HostKeys

from doctor.errors import InputErrors
from doctor.text.textfile import read_bytes
from doctor.transport.errors import shortage

LARGEST = 200_000_000
"""Bytes: several keys of 100,000 hosts."""

# A host with a known key of one of these kinds must show one of them; this orders what we ask for.
ALGORITHMS = {
    "ssh-ed25519": ("ssh-ed25519",),
    "ecdsa-sha2-nistp256": ("ecdsa-sha2-nistp256",),
    "ecdsa-sha2-nistp384": ("ecdsa-sha2-nistp384",),
    "ecdsa-sha2-nistp521": ("ecdsa-sha2-nistp521",),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256"),
}


class KeyMark(str, Enum):
    NONE = ""
    REVOKED = "@revoked"
    AUTHORITY = "@cert-authority"


@dataclass(frozen=True, slots=True)
class KnownHost:
    """One line. `names` is as written: a list of patterns, or one hash."""

    names: str
    kind: str
    key: bytes
    mark: KeyMark
    file: str
    line: int


class KeyJudgement(str, Enum):
    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """What the files say about one host."""

    entries: tuple[KnownHost, ...]

    def algorithms(self) -> tuple[str, ...]:
        """What to ask the host for first, so that it shows a known key."""
        kinds = dict.fromkeys(e.kind for e in self.entries if e.mark is KeyMark.NONE)
        order = [kind for kind in ALGORITHMS if kind in kinds]
        return tuple(name for kind in order for name in ALGORITHMS[kind])

    def judge(self, key: bytes) -> tuple[KeyJudgement, KnownHost | None]:
        for entry in self.entries:
            if entry.mark is KeyMark.REVOKED and entry.key == key:
                return KeyJudgement.REVOKED, entry
        plain = [e for e in self.entries if e.mark is KeyMark.NONE]
        for entry in plain:
            if entry.key == key:
                return KeyJudgement.KNOWN, entry
        if plain:
            kind = key[4 : 4 + int.from_bytes(key[:4], "big")].decode("ascii", "replace")
            return KeyJudgement.CHANGED, next((e for e in plain if e.kind == kind), plain[0])
        return KeyJudgement.UNKNOWN, None

    def only_authority(self) -> bool:
        return any(e.mark is KeyMark.AUTHORITY for e in self.entries)


class KnownHosts:
    """All known_hosts files. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._books: dict[str, _Book] = {}

    def known(self, names: Sequence[str], files: Iterable[str]) -> KnownKeys:
        """What `files` say about a host that is known by any of `names` (as `known_as` writes them)."""
        return KnownKeys(tuple(entry for file in files for entry in self._book(file).about(names)))

    def add(self, name: str, kind: str, key: bytes, file: str, hashed: bool) -> None:
        """Append a key, once. Raises OSError if the file cannot be written."""
        book = self._book(file)
        with self._lock:
            if any(e.key == key and e.mark is KeyMark.NONE for e in book.about([name])):
                return
            written = HostKeys.hash_host(name.lower()) if hashed else name.lower()
            line = f"{written} {kind} {base64.b64encode(key).decode()}\n"
            book.add(KnownHost(written, kind, key, KeyMark.NONE, file, book.lines + 1))
            _append(Path(file), line)

    def _book(self, file: str) -> _Book:
        with self._lock:
            if file not in self._books:
                self._books[file] = _Book(file)
            return self._books[file]


class _Book:
    """One file. Plain names are found by one lookup, patterns and hashes by trying each."""

    def __init__(self, file: str) -> None:
        self._plain: dict[str, list[KnownHost]] = {}
        self._patterns: list[KnownHost] = []
        self._hashed: list[tuple[bytes, bytes, KnownHost]] = []
        self.lines = 0
        try:
            text = read_bytes(Path(file), LARGEST).decode("utf-8", "replace")
        except InputErrors as error:
            if isinstance(error.__cause__, OSError) and shortage(error.__cause__) is not None:
                raise error.__cause__ from None  # otherwise a known key would be taken for a new one
            text = ""
        for number, line in enumerate(text.splitlines(), 1):
            self.lines = number
            entry = _parse(line, file, number)
            if entry is not None:
                self.add(entry)

    def add(self, entry: KnownHost) -> None:
        if entry.names.startswith("|1|"):
            with contextlib.suppress(ValueError):
                _, _, salt, digest = entry.names.split("|")
                self._hashed.append((base64.b64decode(salt), base64.b64decode(digest), entry))
        elif any(character in entry.names for character in "*?!"):
            self._patterns.append(entry)
        else:
            for name in entry.names.lower().split(","):
                self._plain.setdefault(name, []).append(entry)

    def about(self, names: Sequence[str]) -> list[KnownHost]:
        found: dict[int, KnownHost] = {}
        for name in (n.lower() for n in names):
            found.update((id(e), e) for e in self._plain.get(name, ()))
            found.update((id(e), e) for e in self._patterns if _matches(e.names.lower(), name))
            raw = name.encode()
            for salt, digest, entry in self._hashed:
                if hmac.digest(salt, raw, "sha1") == digest:
                    found[id(entry)] = entry
        return sorted(found.values(), key=lambda e: e.line)


def known_as(address: str, port: int) -> str:
    """How known_hosts writes a host: [address]:port if the port is not 22."""
    return address if port == 22 else f"[{address}]:{port}"


def fingerprint(key: bytes) -> str:
    from hashlib import sha256

    return "SHA256:" + base64.b64encode(sha256(key).digest()).decode().rstrip("=")


def _parse(line: str, file: str, number: int) -> KnownHost | None:
    words = line.split()
    if not words or words[0].startswith("#"):
        return None
    with contextlib.suppress(ValueError):  # an unknown mark, too few words, or no base64
        mark = KeyMark(words.pop(0) if words[0].startswith("@") else "")
        names, kind, key, *_ = words
        return KnownHost(names, kind, base64.b64decode(key, validate=True), mark, file, number)
    return None


def _matches(patterns: str, name: str) -> bool:
    matched = False
    for pattern in patterns.split(","):
        # [ and ] are literal in known_hosts, where they enclose a host that has a port.
        if fnmatchcase(name, pattern.lstrip("!").replace("[", "[[]")):
            if pattern.startswith("!"):
                return False
            matched = True
    return matched


def _append(path: Path, line: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "rb+", buffering=0) as file:
        # Another doctor may be adding keys to the same file.
        fcntl.flock(file, fcntl.LOCK_EX)
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            line = line if file.read(1) == b"\n" else "\n" + line
        file.write(line.encode())

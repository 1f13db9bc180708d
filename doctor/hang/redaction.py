"""Removes secrets from what hosts sent: command lines, source code, file names, library output."""

from __future__ import annotations

from functools import lru_cache

from msgspec.structs import replace

from doctor.hang.evidence import (
    LONGEST_LIBRARY_TEXT,
    FileLock,
    Frame,
    HangMember,
    HostEvidence,
    LibraryText,
    Look,
)
from doctor.text.redact import redact

LONGEST = 4_096
"""The most characters of a redacted text, which may be longer than the original."""


@lru_cache(maxsize=20_000)
def _clean(text: str) -> str:
    return redact(text)[:LONGEST]


def redacted(seen: HostEvidence) -> HostEvidence:
    return replace(
        seen,
        members=tuple(map(_member, seen.members)),
        unread=tuple(map(_clean, seen.unread)),
        libraries=tuple(map(_library, seen.libraries)),
    )


def _library(said: LibraryText) -> LibraryText:
    text = redact(said.text)[:LONGEST_LIBRARY_TEXT]
    return replace(said, name=_clean(said.name), text=text, problem=_clean(said.problem))


def _member(member: HangMember) -> HangMember:
    a, b = (look and _look(look) for look in (member.a, member.b))
    return replace(
        member, command=_clean(member.command), a=a, between=tuple(map(_look, member.between)), b=b
    )


def _look(look: Look) -> Look:
    python = tuple(replace(thread, frames=tuple(map(_frame, thread.frames))) for thread in look.python)
    return replace(
        look,
        python=python,
        files=tuple(map(_clean, look.files)),
        locks=tuple(map(_lock, look.locks)),
        unread=tuple(map(_clean, look.unread)),
    )


def _lock(lock: FileLock) -> FileLock:
    holders = tuple(replace(each, command=_clean(each.command)) for each in lock.holders)
    return replace(lock, path=_clean(lock.path), holders=holders)


def _frame(frame: Frame) -> Frame:
    return replace(frame, file=_clean(frame.file), source=_clean(frame.source))

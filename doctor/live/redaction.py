"""Removes secrets from what hosts sent: command lines, source code, file names, library output."""

from functools import lru_cache

from msgspec.structs import replace

from doctor.job.launch.command import kept_words
from doctor.live import evidence
from doctor.text.redact import redact

LONGEST = 4_096
"""The most characters of a redacted text, which may be longer than the original."""


@lru_cache(maxsize=20_000)
def clean(text: str) -> str:
    return redact(text)[:LONGEST]


def redacted(seen: evidence.HostEvidence) -> evidence.HostEvidence:
    return replace(
        seen,
        members=tuple(map(_member, seen.members)),
        starters=tuple(map(_member, seen.starters)),
        unread=tuple(map(clean, seen.unread)),
        libraries=tuple(map(_library, seen.libraries)),
    )


def _library(said: evidence.LibraryText) -> evidence.LibraryText:
    text = redact(said.text)[: evidence.LONGEST_LIBRARY_TEXT]
    return replace(said, name=clean(said.name), text=text, problem=clean(said.problem))


def _member(member: evidence.JobMember) -> evidence.JobMember:
    a, b = (look and _look(look) for look in (member.a, member.b))
    return replace(
        member,
        command=clean(member.command),
        words=kept_words(member.words),
        env={name: clean(value)[:256] for name, value in member.env.items()},
        a=a,
        between=tuple(map(_look, member.between)),
        b=b,
    )


def _look(look: evidence.Look) -> evidence.Look:
    python = tuple(replace(thread, frames=tuple(map(clean_frame, thread.frames))) for thread in look.python)
    threads = (replace(each, asks=tuple(clean(name)[:256] for name in each.asks)) for each in look.threads)
    return replace(
        look,
        threads=tuple(threads),
        python=python,
        files=tuple(map(clean, look.files)),
        locks=tuple(map(_lock, look.locks)),
        unread=tuple(map(clean, look.unread)),
    )


def _lock(lock: evidence.FileLock) -> evidence.FileLock:
    holders = tuple(replace(each, command=clean(each.command)) for each in lock.holders)
    return replace(lock, path=clean(lock.path), holders=holders)


def clean_frame(frame: evidence.Frame) -> evidence.Frame:
    return replace(frame, file=clean(frame.file), source=clean(frame.source))

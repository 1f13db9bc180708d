"""What doctor tells the relay to start, as bytes: the command may have any bytes in its words."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

PASS, PIPE, TERMINAL = "pass", "pipe", "terminal"
"""How a stream of the command is made: as it is, as a pipe that is copied, or as a terminal of its own."""
_SIZE = struct.Struct("!Q")


@dataclass(frozen=True)
class CommandOrder:
    words: tuple[bytes, ...]
    environment: tuple[bytes, ...]
    """`NAME=value`, as this program was given them."""
    streams: tuple[str, str, str]
    """How stdin, stdout and stderr are made."""
    together: bool
    """Whether stdout and stderr are one stream."""
    reaps: bool
    """Whether orphans of the command are ours to reap, because doctor is the first process of a container."""
    front: bool
    """Whether doctor is in the foreground of its terminal."""
    remove: bytes = b""
    """A file that goes when the command has ended."""

    def copied(self) -> list[tuple[int, str]]:
        """The streams that are copied, each with its kind. The terminal is one, and comes first."""
        screen = next((at for at in (1, 2, 0) if self.streams[at] == TERMINAL), None)
        pipes = [at for at in (1, 2) if self.streams[at] == PIPE and not (at == 2 and self.together)]
        return [*([(screen, TERMINAL)] if screen is not None else []), *((at, PIPE) for at in pipes)]

    def sent(self) -> bytes:
        flags = b"".join(b"1" if each else b"0" for each in (self.together, self.reaps, self.front))
        parts = [flags, *(each.encode() for each in self.streams), b"%d" % len(self.words), self.remove]
        text = b"\0".join([*parts, *self.words, *self.environment])
        return _SIZE.pack(len(text)) + text


def received(pipe: int) -> CommandOrder:
    (size,) = _SIZE.unpack(_exactly(pipe, _SIZE.size))
    flags, *rest = _exactly(pipe, size).split(b"\0")
    one, two, three = (each.decode() for each in rest[:3])
    many = int(rest[3])
    together, reaps, front = (each == ord("1") for each in flags)
    words, environment = rest[5 : 5 + many], rest[5 + many :]
    return CommandOrder(tuple(words), tuple(environment), (one, two, three), together, reaps, front, rest[4])


def _exactly(pipe: int, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        more = os.read(pipe, size - len(got))
        if not more:
            raise EOFError
        got += more
    return bytes(got)

"""What doctor tells the relay to start, as bytes: the command may have any bytes in its words."""

import marshal
import os
import struct
from dataclasses import dataclass, fields

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
        text = marshal.dumps(tuple(getattr(self, each.name) for each in fields(self)))
        return _SIZE.pack(len(text)) + text


def received(pipe: int) -> CommandOrder:
    (size,) = _SIZE.unpack(_exactly(pipe, _SIZE.size))
    return CommandOrder(*marshal.loads(_exactly(pipe, size)))


def _exactly(pipe: int, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        more = os.read(pipe, size - len(got))
        if not more:
            raise EOFError
        got += more
    return bytes(got)

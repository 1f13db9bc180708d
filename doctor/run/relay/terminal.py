"""The terminal of the command: one of its own, which the real one shows byte for byte."""

import contextlib
import fcntl
import os
import select
import signal
import struct
import termios
import threading
import tty
from collections.abc import Callable

_SIZE = struct.Struct("4H")


class Terminal:
    """A pseudo terminal like the real one, which is open as `real`. This process becomes the leader of its
    session: the kernel would not stop the command at Ctrl-Z without a parent in its session.
    """

    def __init__(self, real: int, typed: Callable[[int], object]) -> None:
        """`typed` is told the signals that keys send to the command."""
        self.real = os.dup(real)
        self._typed = typed
        self.master, self.slave = os.openpty()
        self._before = termios.tcgetattr(real)
        termios.tcsetattr(self.slave, termios.TCSANOW, self._before)
        self.resize()
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        self._keys: _Keys | None = None
        self._raw = False

    def resize(self) -> None:
        with contextlib.suppress(OSError):
            size = fcntl.ioctl(self.real, termios.TIOCGWINSZ, bytes(_SIZE.size))
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def take(self) -> None:
        """Pass on every key, as the real terminal is in the foreground."""
        with contextlib.suppress(termios.error):
            if not self._raw:
                tty.setraw(self.real, termios.TCSADRAIN)
                self._raw = True
        if self._keys is None:
            self._keys = _Keys(self.real, self.master, self._typed)
            self._keys.start()

    def give_back(self) -> None:
        """Leave the real terminal to others, as it was."""
        if self._keys is not None:
            self._keys.stop()
            self._keys = None
        with contextlib.suppress(termios.error):
            if self._raw:
                termios.tcsetattr(self.real, termios.TCSADRAIN, self._before)
                self._raw = False

    def foreground(self, group: int) -> None:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(self.slave, group)


def _signals_of(typed: bytes, terminal: int) -> list[int]:
    """The signals that the terminal sends for these keys: none if the program in it reads every key."""
    flags, keys = termios.tcgetattr(terminal)[3::3]
    if not flags & termios.ISIG:
        return []
    sends = ((termios.VINTR, signal.SIGINT), (termios.VQUIT, signal.SIGQUIT))
    return [number for place, number in sends if keys[place] != b"\0" and keys[place] in typed]


class _Keys(threading.Thread):
    """Copies what is typed."""

    def __init__(self, real: int, master: int, typed: Callable[[int], object]) -> None:
        super().__init__(daemon=True)
        self._real, self._master, self._typed = real, master, typed
        self._bell, self._ring = os.pipe()

    def stop(self) -> None:
        os.close(self._ring)
        self.join(1.0)

    def run(self) -> None:
        try:
            while True:
                if self._bell in select.select([self._real, self._bell], [], [])[0]:
                    return
                typed = os.read(self._real, 4096)
                if not typed:
                    return
                for number in _signals_of(typed, self._master):
                    self._typed(number)
                os.write(self._master, typed)
        except OSError:  # the terminal or the command is gone
            return
        finally:
            os.close(self._bell)

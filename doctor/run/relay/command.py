"""Starts the command as a shell would: its words, environment, streams, and what signals do."""

import errno
import os
import signal
from collections.abc import Sequence

from doctor.run.relay.order import CommandOrder
from doctor.run.relay.terminal import Terminal

NOT_FOUND, NOT_STARTED = 127, 126
"""The exit codes of a shell."""


def start(
    order: CommandOrder, streams: Sequence[int], terminal: Terminal | None, caught: Sequence[int]
) -> int:
    """The PID of the command. `streams` become its stdin, stdout and stderr; `caught` are our signals."""
    said, says = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if terminal is not None:
                os.setpgid(0, 0)
                signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                terminal.foreground(os.getpid())
            _place(streams)
            signal.set_wakeup_fd(-1)
            for number in (*caught, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTOU):
                signal.signal(number, signal.SIG_DFL)
            _execute(order)
        except (OSError, ValueError) as error:  # ValueError: the first word is empty
            os.write(says, b"%d" % (getattr(error, "errno", None) or errno.ENOENT))
        finally:
            os._exit(NOT_FOUND)
    os.close(says)
    if why := os.read(said, 16):
        os.waitpid(pid, 0)
        raise OSError(int(why), os.strerror(int(why)))
    os.close(said)
    return pid


def _place(streams: Sequence[int]) -> None:
    apart = [os.dup(each) for each in streams]  # so that none overwrites another
    for number, each in enumerate(apart):
        os.dup2(each, number, inheritable=True)


def _execute(order: CommandOrder) -> None:
    pairs = (each.partition(b"=") for each in order.environment if b"=" in each)
    environment = {name: value for name, _, value in pairs}
    try:
        os.execvpe(order.words[0], order.words, environment)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        os.execve("/bin/sh", (b"/bin/sh", *order.words), environment)  # a script without its first line

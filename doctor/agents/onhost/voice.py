"""The life of an agent: it reports in lines of JSON, never waits for its controller, and always ends."""

import contextlib
import json
import os
import select
import signal
import time
from typing import Any

from doctor.agents.onhost.lifeline import Lifeline

LAST_SECONDS = 1.0
"""Seconds that an agent has to send its last messages."""
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def parse(line: bytes) -> "dict[str, Any] | None":
    """The JSON object of a line, or None; NaN and infinity, which are not JSON, become None."""
    try:
        value = json.loads(line.decode("utf-8", "replace"), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class HostAgent:
    """Subclasses do their work in `serve` while `goes_on()` is true, and clean up in `end`."""

    def __init__(self, grace: float = 0.0) -> None:
        self.lifeline = Lifeline(grace)
        self.unsaid = bytearray()
        self.over = False

    def serve(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    def live(self) -> None:
        """Run the agent until it ends. This does not return."""
        try:
            self.lifeline.start()
            os.set_blocking(1, False)
            for number in ENDING:
                signal.signal(number, self._end_on_signal)
            self.serve()
        finally:
            self.end()
            self.say("bye")
            self._say_the_rest()
            os.set_blocking(1, True)
        os._exit(0)

    def _end_on_signal(self, *_: Any) -> None:
        self.over = True

    def goes_on(self) -> bool:
        self.over = self.over or self.lifeline.cut or time.monotonic() >= self.lifeline.deadline
        return not self.over

    def hold(self, lease: Any) -> None:
        """Set the lease, in seconds, that each line renews; an invalid value changes nothing."""
        with contextlib.suppress(TypeError, ValueError):
            self.lifeline.hold(min(max(float(lease), 0.1), 3600.0))

    def say(self, say: str, **words: Any) -> None:
        self.unsaid += json.dumps(dict(say=say, **words), separators=(",", ":")).encode("ascii") + b"\n"
        self.flush()

    def flush(self) -> None:
        try:
            while self.unsaid:
                del self.unsaid[: os.write(1, self.unsaid[:65536])]
        except BlockingIOError:
            pass
        except OSError:
            self.unsaid.clear()
            self.over = True

    def _say_the_rest(self) -> None:
        until = time.monotonic() + LAST_SECONDS
        while self.unsaid and time.monotonic() < until:
            waiting = select.poll()
            waiting.register(1, select.POLLOUT)
            waiting.poll(100)
            self.flush()

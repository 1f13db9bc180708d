"""The hosts of a request, and the way to them, which stays open from one call to the next."""

import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from doctor.exam.choose_transport import choose_transport
from doctor.exam.examination import hosts_of, targets_of
from doctor.exam.progress import ProgressLine, progress_line
from doctor.exam.request import Request
from doctor.exam.signals import stop_on_signals
from doctor.exam.way import way_of
from doctor.model import Host
from doctor.targets.inventory import Targets
from doctor.text.announce import announce
from doctor.text.redact import redact
from doctor.transport import Transport
from doctor.transport.way import Way


@dataclass(slots=True)
class HostSession:
    request: Request
    targets: Targets
    hosts: tuple[Host, ...]
    transport: Transport
    environ: Mapping[str, str]
    until: float
    line: ProgressLine
    closed: bool = False

    @property
    def way(self) -> Way:
        """The way to record."""
        return way_of(self.request, self.targets, self.transport.name, self.environ)

    def close(self) -> None:
        """Close the way to the hosts. May be called more than once."""
        self.line.clear()
        if not self.closed:
            self.closed = True
            with suppress(KeyboardInterrupt):
                self.transport.close()
            for warning in map(redact, self.transport.warnings):
                announce(warning)


def open_session(request: Request, environ: Mapping[str, str]) -> HostSession:
    """Open the way to the hosts. `environ` names the Slurm job, if the request means its nodes."""
    way = request.way
    until = math.inf if way.deadline is None else time.monotonic() + way.deadline
    targets = targets_of(request, environ)
    hosts = hosts_of(request, targets)
    transport = choose_transport(way, targets, hosts, environ)
    stop_on_signals()
    return HostSession(request, targets, hosts, transport, environ, until, progress_line(request.outputs))

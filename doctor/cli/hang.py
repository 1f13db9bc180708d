"""`doctor hang`: the job that runs on the hosts right now, and the rank that everybody waits for."""

from __future__ import annotations

import math
import sys
import time
from contextlib import suppress
from dataclasses import replace

from doctor.cli.defaults import with_defaults
from doctor.errors import EXIT_INCONCLUSIVE, DoctorError
from doctor.hang.agents import HangPatience
from doctor.hang.choose import chosen
from doctor.hang.evidence import Evidence
from doctor.hang.run import see
from doctor.hang.saved import load, save
from doctor.report.formats import STDOUT
from doctor.report.outputs import refuse_unwritable
from doctor.run.choose_transport import choose_transport
from doctor.run.examination import targets_of
from doctor.run.progress import progress_line
from doctor.run.request import Request
from doctor.run.signals import stop_on_signals
from doctor.text.printable import clean_line
from doctor.text.terminal import put, tell
from doctor.transport.containers import enter_all


def hang(request: Request, apart: float, pid: int | None, port: int | None) -> int:
    """The exit code: 1 a culprit is named, 0 the job moves, 3 it is not decided, or there is no job."""
    refuse_unwritable(request.outputs, {"--save": request.save}, request.inputs())
    request = with_defaults(request)
    if request.defaults and not request.outputs.quiet:
        tell(f"doctor: defaults from {clean_line(request.defaults)}\n")
    evidence = load(request.replay) if request.replay else _seen(request, apart)
    if request.save is not None:
        try:
            save(evidence, request.save)
        except OSError as error:
            raise DoctorError(f"{request.save} could not be written: {error.strerror}.") from None
    return _tell(chosen(evidence, pid, port), request)


def _seen(request: Request, apart: float) -> Evidence:
    way = request.way
    until = math.inf if way.deadline is None else time.monotonic() + way.deadline
    targets = targets_of(request)
    hosts = enter_all(targets.hosts, way.enter)
    if request.smoke.python is not None:
        hosts = tuple(replace(host, python=request.smoke.python) for host in hosts)
    transport = choose_transport(way, targets, hosts)
    line = progress_line(request.outputs)
    stop_on_signals()
    try:
        patience = HangPatience(start=way.timeout, look=way.timeout)
        return see(
            hosts, transport, apart, sudo=way.sudo, until=until, patience=patience, progress=line
        ).evidence
    finally:
        line.clear()
        with suppress(KeyboardInterrupt):
            transport.close()
        for warning in transport.warnings:
            tell(f"doctor: {clean_line(warning)}\n")


def _tell(evidence: Evidence, request: Request) -> int:
    out = sys.stderr if request.outputs.json == STDOUT else sys.stdout
    for host in evidence.hosts:
        for member in host.members:
            if member.helps is None:
                place = f"{member.host}  pid {member.pid}  {member.job}"
                put(
                    f"rank {'?' if member.rank is None else member.rank}  {place}  {member.command[:60]}\n",
                    out,
                )
    for name, why in evidence.unreached.items():
        put(f"{name}: {why}\n", out)
    return EXIT_INCONCLUSIVE

"""`doctor hang`: the job that runs on the hosts right now, and the rank that everybody waits for."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from doctor.cli.defaults import with_defaults
from doctor.cli.slurmjob import of_slurm
from doctor.errors import DoctorError
from doctor.hang.agents import HangPatience
from doctor.hang.asked import HangWishes
from doctor.hang.evidence import Evidence
from doctor.hang.judge import judge
from doctor.hang.report import print_judgement
from doctor.hang.report_json import report_json
from doctor.hang.run import Sight, see
from doctor.hang.saved import encoded, load
from doctor.model import Unreached
from doctor.report.formats import STDOUT
from doctor.report.outputs import refuse_unwritable
from doctor.run.choose_transport import choose_transport
from doctor.run.examination import targets_of
from doctor.run.progress import progress_line
from doctor.run.request import Request
from doctor.run.signals import stop_on_signals
from doctor.text.console import drawn
from doctor.text.nodeset import fold
from doctor.text.outfile import write_file
from doctor.text.printable import clean_line, escaped
from doctor.text.terminal import coloured, put, tell, width
from doctor.transport.containers import enter_all


def hang(request: Request, wishes: HangWishes) -> int:
    """The exit code: 1 a culprit is named, 0 the job moves, 3 it is not decided, or there is no job."""
    refuse_unwritable(request.outputs, {"--save": request.save}, request.inputs())
    request = with_defaults(request)
    if request.defaults and not request.outputs.quiet:
        tell(f"doctor: defaults from {clean_line(request.defaults)}\n")
    environ: Mapping[str, str] = os.environ
    if wishes.slurm_job is not None and not request.replay:
        request, wishes, environ = of_slurm(request, wishes)
    sight = Sight(load(request.replay)) if request.replay else _seen(request, wishes.apart, environ)
    evidence = sight.evidence
    if request.save is not None:
        _write(request.save, encoded(evidence))
    code = _tell(evidence, request, wishes)
    _tell_remedies(sight.reasons)
    return code


def _seen(request: Request, apart: float, environ: Mapping[str, str]) -> Sight:
    way = request.way
    until = math.inf if way.deadline is None else time.monotonic() + way.deadline
    targets = targets_of(request, environ)
    hosts = enter_all(targets.hosts, way.enter)
    if request.smoke.python is not None:
        hosts = tuple(replace(host, python=request.smoke.python) for host in hosts)
    transport = choose_transport(way, targets, hosts, environ)
    line = progress_line(request.outputs)
    stop_on_signals()
    try:
        patience = HangPatience(start=way.timeout, look=way.timeout)
        return see(hosts, transport, apart, sudo=way.sudo, until=until, patience=patience, progress=line)
    finally:
        line.clear()
        with suppress(KeyboardInterrupt):
            transport.close()
        for warning in transport.warnings:
            tell(f"doctor: {clean_line(warning)}\n")


def _tell(evidence: Evidence, request: Request, wishes: HangWishes) -> int:
    outputs = request.outputs
    judgement = judge(
        evidence,
        pid=wishes.pid,
        master_port=wishes.master_port,
        slurm_job=wishes.slurm_job,
        user=wishes.user,
        limit=wishes.limit,
    )
    out = sys.stderr if outputs.json == STDOUT else sys.stdout
    show = partial(print_judgement, judgement, verbose=outputs.verbose, quiet=outputs.quiet)
    put(drawn(show, width(out), colour=coloured(out, outputs.colours)), out, drawn=True)
    if outputs.json is not None:
        data = escaped(json.dumps(report_json(judgement), indent=2, ensure_ascii=False)) + "\n"
        if outputs.json == STDOUT:
            put(data, sys.stdout)
        else:
            _write(outputs.json, data.encode())
    if judgement.job is None:
        _tell_unread(evidence)
    return judgement.exit_code


def _tell_unread(evidence: Evidence) -> None:
    """Why a job may not have been found."""
    hosts: dict[str, list[str]] = {}
    for seen in evidence.hosts:
        for why in seen.unread:
            hosts.setdefault(why, []).append(seen.host)
    for why, names in hosts.items():
        tell(f"doctor: {clean_line(fold(names))}: {clean_line(why)}\n")


def _write(path: Path, data: bytes) -> None:
    try:
        write_file(path, data)
    except OSError as error:
        raise DoctorError(f"{path} could not be written: {error.strerror}.") from None


def _tell_remedies(reasons: Mapping[str, Unreached]) -> None:
    """What to do about hosts that could not be asked; alike ones once."""
    alike: dict[str, list[Unreached]] = {}
    for why in reasons.values():
        alike.setdefault(why.remedy, []).append(why)
    for remedy, all_of in alike.items():
        names = fold([why.host for why in all_of])
        tell(f"doctor: {clean_line(names)}: {clean_line(remedy)}\n")
        for command in all_of[0].commands:
            tell(f"        {clean_line(command)}\n")

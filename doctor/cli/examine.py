"""`doctor check`, `doctor smoke` and `doctor preflight`: one command line, without what does not apply."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace

from doctor.cli.options import split
from doctor.errors import UsageError
from doctor.run.request import Request
from doctor.text.option import refuse_conflicts
from doctor.text.terminal import put, tell

GONE_IN = 15
"""Seconds after which nothing is left on a host that has lost its controller."""


def examine(request: Request) -> int:
    from doctor.report.outputs import empty_lists

    if not request.in_job:  # there rank 0 alone writes
        empty_lists(request.outputs, request.inputs())
    smoke = request.smoke
    if smoke.inject:
        from doctor.cli.faults import HELP, check_faults, listed

        faults = split(smoke.inject)
        if HELP in faults:
            put(f"{listed()}\n", sys.stdout)
            return 0
        check_faults(smoke.inject, faults, smoke.steps)
        smoke = replace(smoke, inject=faults)
    if smoke.python is not None:
        smoke = replace(smoke, python=_interpreter(smoke.python, request.who.local))
    try:
        refuse_conflicts(request)
    except UsageError:
        empty_lists(request.outputs, request.inputs())
        raise
    request = replace(request, smoke=smoke)
    from doctor.run.examination import run_and_report

    try:
        if request.in_job:
            from doctor.run.in_job import in_job

            return in_job(request)
        return run_and_report(request)
    except KeyboardInterrupt as stop:  # a second one, or one outside the run
        tell("doctor: interrupted before the report was made.\n")
        tell(f"        What it began on the hosts ends there by itself, within {GONE_IN} s.\n")
        return 128 + getattr(stop, "number", int(signal.SIGINT))


def _interpreter(path: str, local: bool) -> str:
    """A relative path is valid here only: programs on the hosts start in another folder."""
    if not path.strip():
        raise UsageError("--python names no interpreter.", "For instance --python /opt/train/bin/python.")
    if "/" not in path or path.startswith("/"):
        return path
    here = os.path.abspath(path)  # not resolved: an environment is known by its own link
    if local:
        return here
    raise UsageError(f"--python {path}: give the whole path, as it is on the hosts.", f"Here it is {here}.")

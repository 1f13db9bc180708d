"""`doctor run -- COMMAND`: the options of the pre-flight, and the command behind them."""

from __future__ import annotations

from dataclasses import replace

import typer

from doctor.around.options import AroundWishes
from doctor.cli.examine import interpreter
from doctor.errors import UsageError
from doctor.run.request import Request
from doctor.text.option import refuse_conflicts


def run_command(context: typer.Context, request: Request, wishes: AroundWishes) -> int:
    if not context.obj:
        hint = "It goes after --: doctor run -- python train.py"
        raise UsageError("No command is named.", hint)
    from doctor.around.run import run_around
    from doctor.cli.defaults import with_defaults

    request = with_defaults(request)
    if (python := request.smoke.python) is not None:
        named = interpreter(python, request.who.local)
        request = replace(request, smoke=replace(request.smoke, python=named))
    refuse_conflicts(request, wishes)
    return run_around(context.obj, request, wishes)

"""`doctor run -- COMMAND`: the options of the pre-flight, and the command behind them."""

import typer

from doctor.cli.examine import with_interpreter
from doctor.errors import UsageError
from doctor.exam.request import Request
from doctor.run.options import RunWishes
from doctor.text.option import refuse_conflicts


def run_command(context: typer.Context, request: Request, wishes: RunWishes) -> int:
    if not context.obj:
        raise UsageError("No command is named.", "It goes after --: doctor run -- python train.py")
    from doctor.cli.defaults import with_defaults
    from doctor.run.run import run_watched

    request = with_interpreter(with_defaults(request))
    refuse_conflicts(request, wishes)
    return run_watched(context.obj, request, wishes)

"""`doctor ranktable make` and `doctor ranktable check`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from doctor.cli.examine import examine
from doctor.cli.options import group, takes
from doctor.run.request import JobFlags, Request

app = group()
HOSTS = ("HOSTS", "--hostfile", "--inventory", "--local")
SSH = ("--user", "--port", "--identity", "--jump", "--ssh-config", "--accept-new", "--sudo", "--enter")


@app.command("make", help="Write a rank table from the live devices; refuses where they are faulty.")
@takes(*HOSTS, "--exclude", *SSH, "--connect-timeout", "--timeout", "--expect", "--quiet")
def make(
    *,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Where to; - or none is stdout.")
    ] = None,
    form: Annotated[
        str,
        typer.Option("--format", metavar="1.0|legacy|1.2", help="legacy: with board_id; 1.2: super pods."),
    ] = "1.0",
    request: Request,
) -> int:
    from doctor.cli.table import make_table_of

    what = replace(request.what, exam="host", only=("device-*",), skip=("device-busy",), mesh="none")
    request = replace(request, command="ranktable make", job=JobFlags(backend="hccl"), what=what)
    return make_table_of(request, form, output)


@app.command("check", help="Check a rank table, alone or (with HOSTS) against the live devices.")
@takes(*HOSTS, *SSH, "--json", "--quiet", "--verbose", "--no-color")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The rank table.")], request: Request
) -> int:
    who = request.who
    if not (who.hosts or who.hostfile or who.inventory or who.local):
        from doctor.cli.table import check_table

        return check_table(file, request.outputs)
    what = replace(request.what, only=("rank-table-*",))
    return examine(
        replace(request, who=replace(who, rank_table=file), job=JobFlags(backend="hccl"), what=what)
    )

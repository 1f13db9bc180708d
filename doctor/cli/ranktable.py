"""`doctor ranktable make` and `doctor ranktable check`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from doctor.cli.examine import examine
from doctor.cli.options import a_path, group, takes
from doctor.errors import UsageError
from doctor.run.request import JobFlags, Request

app = group()
HOSTS = ("HOSTS", "--hostfile", "--inventory", "--local")
IN_A_TABLE = ("device-missing", "device-ip-missing", "device-ip-duplicate")
"""What must be decided before a table is written. A fault that any other check finds prevents it, too."""
SSH = ("--user", "--port", "--identity", "--jump", "--ssh-config", "--accept-new", "--sudo", "--enter")


@app.command("make", help="Write a rank table of the live devices, if all are healthy.")
@takes(*HOSTS, "--exclude", *SSH, "--connect-timeout", "--timeout", "--expect", "--quiet")
def make(
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", metavar="FILE", help="Where to; - or none is stdout.", parser=partial(a_path, Path)
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option("--format", metavar="1.0|legacy|1.2", help="legacy: with board_id; 1.2: super pods."),
    ] = "1.0",
    request: Request,
) -> int:
    from doctor.cli.table import make_table_of

    what = replace(request.what, exam="host", only=("device-*",), skip=("device-busy",), mesh="none")
    request = replace(
        request, command="ranktable make", job=JobFlags(backend="hccl"), what=what, essential=IN_A_TABLE
    )
    return make_table_of(request, form, output)


@app.command("check", help="Check a rank table, alone or (with HOSTS) against the live devices.")
@takes(*HOSTS, *SSH, "--json", "--quiet", "--verbose", "--color", "--no-color")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The rank table.")],
    *,
    product: Annotated[
        str | None,
        typer.Option("--product", metavar="NAME", help="Without HOSTS: atlas-training, -a2, -a3 or -950."),
    ] = None,
    request: Request,
) -> int:
    who = request.who
    if not (who.hosts or who.hostfile or who.inventory or who.local):
        from doctor.cli.table import check_table

        return check_table(file, request.outputs, product)
    if product:
        raise UsageError("--product is for a table alone.", "Where hosts are named, their devices tell it.")
    what = replace(request.what, only=("rank-table-*",))
    who = replace(who, rank_table=file)
    return examine(
        replace(request, command="ranktable check", who=who, job=JobFlags(backend="hccl"), what=what)
    )

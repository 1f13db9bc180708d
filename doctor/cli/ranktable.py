"""`doctor ranktable make` and `doctor ranktable check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doctor.cli import options as o

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("make", help="Write a rank table from the live devices; refuses where they are faulty.")
def make(
    hosts: o.Hosts = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Where to; - or none is stdout.")
    ] = None,
    form: Annotated[
        str,
        typer.Option("--format", metavar="1.0|legacy|1.2", help="legacy: with board_id; 1.2: super pods."),
    ] = "1.0",
    hostfile: o.Hostfile = None,
    inventory: o.Inventory = None,
    local: o.Local = False,
    exclude: o.Exclude = None,
    user: o.User = None,
    port: o.Port = None,
    identity: o.Identity = None,
    jump: o.Jump = None,
    ssh_config: o.SshConfig = None,
    accept_new: o.AcceptNew = False,
    sudo: o.Sudo = False,
    enter: o.Enter = None,
    connect_timeout: o.ConnectTimeout = None,
    timeout: o.Timeout = 60.0,
    expect: o.Expect = None,
    quiet: o.Quiet = False,
) -> int:
    from doctor.cli.table import make_table_of
    from doctor.run.request import Job, Request, Way, What, Who

    request = Request(
        command="ranktable make",
        who=Who(tuple(hosts or ()), hostfile, inventory, None, local, tuple(exclude or ())),
        way=Way(
            user=user,
            port=port,
            identities=tuple(identity or ()),
            jump=jump,
            ssh_config=ssh_config,
            accept_new=accept_new,
            sudo=sudo,
            enter=enter,
            connect_timeout=connect_timeout,
            timeout=timeout,
        ),
        job=Job(backend="hccl"),
        what=What(
            exam="host", only=("device-*",), skip=("device-busy",), expect=o.words(expect), mesh="none"
        ),
        quiet=quiet,
    )
    return make_table_of(request, form, output)


@app.command("check", help="Check a rank table, alone or (with HOSTS) against the live devices.")
def check(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The rank table.")],
    hosts: o.Hosts = None,
    hostfile: o.Hostfile = None,
    inventory: o.Inventory = None,
    local: o.Local = False,
    user: o.User = None,
    port: o.Port = None,
    identity: o.Identity = None,
    jump: o.Jump = None,
    ssh_config: o.SshConfig = None,
    accept_new: o.AcceptNew = False,
    sudo: o.Sudo = False,
    enter: o.Enter = None,
    json: o.Json = None,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
    no_color: o.NoColor = False,
) -> int:
    if not (hosts or hostfile or inventory or local):
        from doctor.cli.table import check_table
        from doctor.report.outputs import Outputs

        return check_table(file, Outputs(json=json, quiet=quiet, verbose=verbose, no_color=no_color))
    from doctor.cli.examine import examine

    return examine(
        context,
        hosts,
        hostfile,
        inventory,
        file,
        local,
        backend="hccl",
        user=user,
        port=port,
        identity=identity,
        jump=jump,
        ssh_config=ssh_config,
        accept_new=accept_new,
        sudo=sudo,
        enter=enter,
        only=["rank-table-*"],
        json=json,
        quiet=quiet,
        verbose=verbose,
        no_color=no_color,
    )

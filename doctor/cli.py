"""Options -> calls -> render -> exit. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from doctor import __version__
from doctor.errors import DoctorError, UsageError

EXIT_USAGE, EXIT_BROKEN = 2, 70

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Examine a training cluster: which host, device, port or rank is at fault, how it is known, what to type.",
)


def run(arguments: Sequence[str]) -> int:
    """Run the command line; errors of ours become sentences here and nowhere else."""
    try:
        code = app(list(arguments), prog_name="doctor", standalone_mode=False)
    except DoctorError as error:
        print(f"doctor: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"        {error.hint}", file=sys.stderr)
        return EXIT_USAGE if isinstance(error, UsageError) else EXIT_BROKEN
    except typer.Exit as leave:
        return leave.exit_code
    except Exception as error:
        shown = getattr(error, "show", None)  # click's own errors know how to show themselves
        if shown is None:
            raise
        shown()
        return int(getattr(error, "exit_code", EXIT_USAGE))
    return int(code or 0)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"cluster-doctor {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


Hosts = Annotated[
    list[str] | None,
    typer.Argument(metavar="[HOSTS]...", help="Node sets: node[01-16,20] gpu7. None: Slurm, else here."),
]


def _opt(*names: str, help: str, panel: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


TARGETS, JOB, SSH, WHAT, OUT = "Targets", "The job", "SSH", "What to examine", "Output"


def _examine(
    context: typer.Context,
    hosts: Hosts = None,
    hostfile: Annotated[
        Path | None,
        _opt("-F", "--hostfile", help="Hosts from a file (plain, OpenMPI, MPICH).", panel=TARGETS),
    ] = None,
    inventory: Annotated[Path | None, _opt("--inventory", help="Inventory in YAML.", panel=TARGETS)] = None,
    local: Annotated[bool, _opt("--local", help="This machine only.", panel=TARGETS)] = False,
    exclude: Annotated[
        list[str] | None, _opt("--exclude", metavar="NODESET", help="Take hosts out.", panel=TARGETS)
    ] = None,
    backend: Annotated[
        str, _opt("--backend", help="auto, gloo, nccl or hccl.", metavar="NAME", panel=JOB)
    ] = "auto",
    master_port: Annotated[
        int | None, _opt("--master-port", min=1, max=65535, help="The port of the rendezvous.", panel=JOB)
    ] = None,
    ranks_per_host: Annotated[
        int | None, _opt("--ranks-per-host", min=1, max=1024, help="Default: one a device.", panel=JOB)
    ] = None,
    user: Annotated[str | None, _opt("--user", help="Log in as.", panel=SSH)] = None,
    port: Annotated[int | None, _opt("--port", min=1, max=65535, help="SSH port.", panel=SSH)] = None,
    identity: Annotated[
        list[str] | None, _opt("-i", "--identity", metavar="FILE", help="Private key.", panel=SSH)
    ] = None,
    jump: Annotated[
        str | None, _opt("-J", "--jump", metavar="HOST", help="Jump host, or several: a,b.", panel=SSH)
    ] = None,
    ssh_config: Annotated[
        str | None, _opt("--ssh-config", metavar="FILE", help="Default: ~/.ssh/config.", panel=SSH)
    ] = None,
    accept_new: Annotated[
        bool, _opt("--accept-new", help="Trust unknown host keys once; never changed ones.", panel=SSH)
    ] = False,
    sudo: Annotated[
        bool, _opt("--sudo", help="Read what only root may read, by sudo -n.", panel=SSH)
    ] = False,
    enter: Annotated[
        str | None,
        _opt("--enter", metavar="COMMAND", help="Look inside: 'docker exec -i NAME'.", panel=SSH),
    ] = None,
    transport: Annotated[
        str, _opt("--transport", metavar="NAME", help="auto, ssh or local.", panel=SSH)
    ] = "auto",
    fanout: Annotated[
        int, _opt("--fanout", min=1, max=4096, help="Connections being made at once.", panel=SSH)
    ] = 64,
    connect_timeout: Annotated[
        float | None, _opt("--connect-timeout", min=0.1, metavar="S", help="Default: 10 s.", panel=SSH)
    ] = None,
    timeout: Annotated[float, _opt("--timeout", min=0.1, metavar="S", help="For a host.", panel=SSH)] = 60.0,
    deadline: Annotated[
        float | None, _opt("--deadline", min=0.1, metavar="S", help="For the whole run.", panel=SSH)
    ] = None,
    exam: Annotated[
        str | None, _opt("--exam", metavar="NAME|FILE", help="What to examine (doctor list).", panel=WHAT)
    ] = None,
    only: Annotated[
        list[str] | None, _opt("--only", metavar="GLOB", help="Only these checks.", panel=WHAT)
    ] = None,
    skip: Annotated[
        list[str] | None, _opt("--skip", metavar="GLOB", help="Not these checks.", panel=WHAT)
    ] = None,
    checks: Annotated[
        list[Path] | None, _opt("--checks", metavar="DIR", help="More checks, from a folder.", panel=WHAT)
    ] = None,
    expect: Annotated[
        list[str] | None, _opt("--expect", metavar="KEY=VALUE", help="What must be there.", panel=WHAT)
    ] = None,
    strict: Annotated[bool, _opt("--strict", help="A warning counts as a fault.", panel=WHAT)] = False,
    mesh: Annotated[
        str | None,
        _opt("--mesh", metavar="SHAPE", help="Who connects to whom: auto, full, ring, none.", panel=WHAT),
    ] = None,
    need_hosts: Annotated[
        int | None, _opt("--need-hosts", min=1, help="0 if so many healthy hosts remain.", panel=WHAT)
    ] = None,
    save: Annotated[Path | None, _opt("--save", help="Keep a recording of the run.", panel=WHAT)] = None,
    replay: Annotated[
        Path | None, _opt("--replay", help="Judge a recording; touches no host.", panel=WHAT)
    ] = None,
    json: Annotated[
        str | None, _opt("--json", metavar="FILE", help="The report as JSON; - is stdout.", panel=OUT)
    ] = None,
    healthy_hosts: Annotated[
        Path | None, _opt("--healthy-hosts", help="Write the healthy hosts' names.", panel=OUT)
    ] = None,
    faulty_hosts: Annotated[
        Path | None, _opt("--faulty-hosts", help="Write the names of all other hosts.", panel=OUT)
    ] = None,
    quiet: Annotated[bool, _opt("-q", "--quiet", help="Only what is wrong.", panel=OUT)] = False,
    verbose: Annotated[bool, _opt("-v", "--verbose", help="With evidence.", panel=OUT)] = False,
    no_color: Annotated[bool, _opt("--no-color", help="As NO_COLOR does.", panel=OUT)] = False,
) -> int:
    from doctor.session import Request, conduct

    return conduct(
        Request(
            command=context.info_name or "check",
            hosts=tuple(hosts or ()),
            hostfile=hostfile,
            inventory=inventory,
            local=local,
            exclude=tuple(exclude or ()),
            backend=backend,
            master_port=master_port,
            ranks_per_host=ranks_per_host,
            user=user,
            port=port,
            identities=tuple(identity or ()),
            jump=jump,
            ssh_config=ssh_config,
            accept_new=accept_new,
            sudo=sudo,
            enter=enter,
            transport=transport,
            fanout=fanout,
            connect_timeout=connect_timeout,
            timeout=timeout,
            deadline=deadline,
            exam=exam,
            only=tuple(only or ()),
            skip=tuple(skip or ()),
            checks=tuple(checks or ()),
            expect=tuple(expect or ()),
            strict=strict,
            mesh=mesh,
            need_hosts=need_hosts,
            save=save,
            replay=replay,
            json=json,
            healthy_hosts=healthy_hosts,
            faulty_hosts=faulty_hosts,
            quiet=quiet,
            verbose=verbose,
            no_color=no_color,
        )
    )


app.command("check", help="Ask every host, judge, report.")(_examine)
app.command("preflight", help="What a job script runs first: everything that must be right before the job.")(
    _examine
)


@app.command("list", help="The checks and exams, and where each comes from.")
def _list(
    checks: Annotated[
        list[Path] | None, typer.Option("--checks", metavar="DIR", help="More checks, from a folder.")
    ] = None,
) -> int:
    from doctor.manual import print_list

    return print_list(tuple(checks or ()))


@app.command("explain", help="The manual page of a check.")
def _explain(
    id: Annotated[str, typer.Argument(metavar="ID", help="The id of a check.")],
    checks: Annotated[
        list[Path] | None, typer.Option("--checks", metavar="DIR", help="More checks, from a folder.")
    ] = None,
) -> int:
    from doctor.manual import print_page

    return print_page(id, tuple(checks or ()))

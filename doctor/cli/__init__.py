"""Options -> calls -> render -> exit. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from doctor import __version__
from doctor.errors import DoctorError, UsageError
from doctor.terminal import prepare

EXIT_USAGE, EXIT_BROKEN = 2, 70

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Examine a training cluster: which host, port or pair is at fault, how it is known, what to type.",
)


def run(arguments: Sequence[str]) -> int:
    """Run the command line; errors of ours become sentences here and nowhere else."""
    prepare()
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
    typer.Argument(metavar="HOSTS", help="Node sets: node[01-16,20] gpu7. None: Slurm, else here."),
]


def _examine(
    context: typer.Context,
    hosts: Hosts = None,
    hostfile: Annotated[
        Path | None,
        typer.Option("-F", "--hostfile", metavar="FILE", help="Hosts from a file (plain, OpenMPI, MPICH)."),
    ] = None,
    inventory: Annotated[
        Path | None, typer.Option("--inventory", metavar="FILE", help="Inventory in YAML.")
    ] = None,
    local: Annotated[bool, typer.Option("--local", help="This machine only.")] = False,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", metavar="NODESET", help="Take hosts out.")
    ] = None,
    backend: Annotated[
        str, typer.Option("--backend", help="auto, gloo, nccl or hccl.", metavar="NAME")
    ] = "auto",
    master_port: Annotated[
        int | None,
        typer.Option("--master-port", metavar="PORT", min=1, max=65535, help="The port of the rendezvous."),
    ] = None,
    ranks_per_host: Annotated[
        int | None,
        typer.Option("--ranks-per-host", metavar="N", min=1, max=1024, help="Default: one a device."),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="Log in as.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="PORT", min=1, max=65535, help="SSH port.")
    ] = None,
    identity: Annotated[
        list[str] | None, typer.Option("-i", "--identity", metavar="FILE", help="Private key.")
    ] = None,
    jump: Annotated[
        str | None, typer.Option("-J", "--jump", metavar="HOST", help="Jump host, or several: a,b.")
    ] = None,
    ssh_config: Annotated[
        str | None, typer.Option("--ssh-config", metavar="FILE", help="Default: ~/.ssh/config.")
    ] = None,
    accept_new: Annotated[
        bool, typer.Option("--accept-new", help="Trust unknown host keys once; never changed ones.")
    ] = False,
    sudo: Annotated[bool, typer.Option("--sudo", help="Read what only root may read, by sudo -n.")] = False,
    enter: Annotated[
        str | None,
        typer.Option("--enter", metavar="COMMAND", help="Look inside: 'docker exec -i NAME'."),
    ] = None,
    transport: Annotated[
        str, typer.Option("--transport", metavar="NAME", help="auto, ssh or local.")
    ] = "auto",
    fanout: Annotated[
        int, typer.Option("--fanout", metavar="N", min=1, max=4096, help="Connections being made at once.")
    ] = 64,
    connect_timeout: Annotated[
        float | None, typer.Option("--connect-timeout", min=0.1, metavar="S", help="Default: 10 s.")
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, metavar="S", help="For a host.")] = 60.0,
    deadline: Annotated[
        float | None, typer.Option("--deadline", min=0.1, metavar="S", help="For the whole run.")
    ] = None,
    exam: Annotated[
        str | None, typer.Option("--exam", metavar="NAME|FILE", help="What to examine (doctor list).")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="GLOB,...", help="Only these checks.")
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option("--skip", metavar="GLOB,...", help="Not these checks.")
    ] = None,
    checks: Annotated[
        list[Path] | None, typer.Option("--checks", metavar="DIR", help="More checks, from a folder.")
    ] = None,
    expect: Annotated[
        list[str] | None, typer.Option("--expect", metavar="KEY=VALUE", help="What must be there.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="A warning counts as a fault.")] = False,
    mesh: Annotated[
        str | None,
        typer.Option("--mesh", metavar="SHAPE", help="Who connects to whom: auto, full, ring, none."),
    ] = None,
    need_hosts: Annotated[
        int | None,
        typer.Option("--need-hosts", metavar="N", min=1, help="0 if so many healthy hosts remain."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Keep a recording of the run.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="FILE", help="Judge a recording; touches no host.")
    ] = None,
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="The report as JSON; - is stdout.")
    ] = None,
    healthy_hosts: Annotated[
        Path | None, typer.Option("--healthy-hosts", metavar="FILE", help="Write the healthy hosts' names.")
    ] = None,
    faulty_hosts: Annotated[
        Path | None,
        typer.Option("--faulty-hosts", metavar="FILE", help="Write the names of all other hosts."),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only what is wrong.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="With evidence.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="As NO_COLOR does.")] = False,
) -> int:
    from doctor.deliver import Outputs
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
            only=_words(only),
            skip=_words(skip),
            checks=tuple(checks or ()),
            expect=_words(expect),
            strict=strict,
            mesh=mesh,
            need_hosts=need_hosts,
            replay=replay,
            outputs=Outputs(save, json, healthy_hosts, faulty_hosts, quiet, verbose, no_color),
        )
    )


def _words(texts: list[str] | None) -> tuple[str, ...]:
    """An option given several times, or once with commas."""
    return tuple(word.strip() for text in texts or () for word in text.split(",") if word.strip())


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

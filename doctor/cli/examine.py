"""`doctor check`, `doctor smoke` and `doctor preflight`: one command line, without what does not apply."""

from __future__ import annotations

import functools
import inspect
import os
import signal
import sys
from collections.abc import Callable

import typer

from doctor.cli import options as o
from doctor.errors import UsageError
from doctor.text.terminal import put

SMOKE = ("steps", "tp", "smoke_timeout", "inject", "no_smoke")
GONE_IN = 15
"""Seconds after which a host that nobody speaks to any more is clean."""


def without(*names: str) -> Callable[..., int]:
    """The command that lacks these options."""

    @functools.wraps(examine)
    def command(*args: object, **options: object) -> int:
        return examine(*args, **options)  # type: ignore[arg-type]  # typer fills in what the signature says

    signature = inspect.signature(examine, eval_str=True)
    kept = [each for name, each in signature.parameters.items() if name not in names]
    command.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return command


def _interpreter(path: str, local: bool) -> str:
    """A path from this folder means something here only: hosts start elsewhere."""
    if not path.strip():
        raise UsageError("--python names no interpreter.", "For instance --python /opt/train/bin/python.")
    if "/" not in path or path.startswith("/"):
        return path
    here = os.path.abspath(path)  # not resolved: an environment is known by its own link
    if local:
        return here
    raise UsageError(f"--python {path}: give the whole path, as it is on the hosts.", f"Here it is {here}.")


def examine(
    context: typer.Context,
    hosts: o.Hosts = None,
    hostfile: o.Hostfile = None,
    inventory: o.Inventory = None,
    rank_table: o.RankTable = None,
    local: o.Local = False,
    exclude: o.Exclude = None,
    backend: o.Backend = "auto",
    master_port: o.MasterPort = None,
    ranks_per_host: o.RanksPerHost = None,
    launch: o.Launch = None,
    plan: o.Plan = None,
    user: o.User = None,
    port: o.Port = None,
    identity: o.Identity = None,
    jump: o.Jump = None,
    ssh_config: o.SshConfig = None,
    accept_new: o.AcceptNew = False,
    sudo: o.Sudo = False,
    enter: o.Enter = None,
    transport: o.Transport = "auto",
    fanout: o.Fanout = 64,
    connect_timeout: o.ConnectTimeout = None,
    timeout: o.Timeout = 60.0,
    deadline: o.Deadline = None,
    exam: o.Exam = None,
    only: o.Only = None,
    skip: o.Skip = None,
    checks: o.Checks = None,
    expect: o.Expect = None,
    strict: o.Strict = False,
    mesh: o.Mesh = None,
    on_busy: o.OnBusy = "skip",
    need_hosts: o.NeedHosts = None,
    python: o.Python = None,
    steps: o.Steps = None,
    tp: o.Tp = None,
    smoke_timeout: o.SmokeTimeout = None,
    inject: o.Inject = None,
    no_smoke: o.NoSmoke = False,
    in_job: o.InJob = False,
    save: o.Save = None,
    replay: o.Replay = None,
    json: o.Json = None,
    healthy_hosts: o.HealthyHosts = None,
    faulty_hosts: o.FaultyHosts = None,
    print_launch: o.Print = None,
    report_dir: o.ReportDir = None,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
    no_color: o.NoColor = False,
) -> int:
    from doctor.report.outputs import Outputs
    from doctor.run.examination import conduct
    from doctor.run.request import Job, Request, Smoke, Way, What, Who

    faults = o.words(inject)
    if inject:
        from doctor.cli.faults import HELP, check_faults, listed

        if HELP in faults:
            put(f"{listed()}\n", sys.stdout)
            return 0
        check_faults(inject, faults, steps)
    if python is not None:
        python = _interpreter(python, local)
    name = context.info_name or "check"
    request = Request(
        command=name,
        who=Who(tuple(hosts or ()), hostfile, inventory, rank_table, local, tuple(exclude or ())),
        way=Way(
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
        ),
        job=Job(backend, master_port, ranks_per_host, tuple(launch or ()), tuple(plan or ())),
        what=What(
            exam=exam,
            only=o.words(only),
            skip=o.words(skip),
            checks=tuple(checks or ()),
            expect=o.words(expect),
            strict=strict,
            mesh=mesh,
            on_busy=on_busy,
            need_hosts=need_hosts,
            replay=replay,
        ),
        smoke=Smoke(
            wanted=name != "check",
            python=python,
            steps=steps,
            tp=tp,
            timeout=smoke_timeout,
            inject=faults,
            refused=no_smoke,
        ),
        verbose=verbose,
        quiet=quiet,
    )
    outputs = Outputs(
        save, json, healthy_hosts, faulty_hosts, quiet, verbose, no_color, print_launch, report_dir
    )
    try:
        if in_job:
            from doctor.run.in_job import in_job as conduct_in_job

            return conduct_in_job(request, outputs)
        return conduct(request, outputs)
    except KeyboardInterrupt as stop:  # a second one, or one outside the run
        put("doctor: interrupted before the report was made.\n", sys.stderr)
        put(f"        What it began on the hosts ends there by itself, within {GONE_IN} s.\n", sys.stderr)
        return 128 + getattr(stop, "number", int(signal.SIGINT))

"""The options that commands share, each in one place: what it is called, what it takes, what it is for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def _option(*names: str, metavar: str = "", help: str, **more: Any) -> Any:
    return typer.Option(*names, metavar=metavar or None, help=help, **more)


def words(texts: list[str] | None) -> tuple[str, ...]:
    """An option given several times, or once with commas."""
    return tuple(word.strip() for text in texts or () for word in text.split(",") if word.strip())


Texts = list[str] | None
Paths = list[Path] | None

Hosts = Annotated[
    Texts, typer.Argument(metavar="HOSTS", help="Node sets: node[01-16,20] gpu7. None: Slurm, else here.")
]
Hostfile = Annotated[
    Path | None,
    _option("-F", "--hostfile", metavar="FILE", help="Hosts from a file (plain, OpenMPI, MPICH)."),
]
Inventory = Annotated[Path | None, _option("--inventory", metavar="FILE", help="Inventory in YAML.")]
RankTable = Annotated[
    Path | None,
    _option("--rank-table", metavar="FILE", help="The job's rank table; its servers are the hosts."),
]
Local = Annotated[bool, _option("--local", help="This machine only.")]
Exclude = Annotated[Texts, _option("--exclude", metavar="NODESET", help="Take hosts out.")]

Backend = Annotated[str, _option("--backend", metavar="NAME", help="auto, gloo, nccl or hccl.")]
MasterPort = Annotated[
    int | None, _option("--master-port", metavar="PORT", min=1, max=65535, help="The port of the rendezvous.")
]
RanksPerHost = Annotated[
    int | None,
    _option(
        "--ranks-per-host", metavar="N", min=1, max=1024, help="Default: one a device; 2 where there is none."
    ),
]
Launch = Annotated[
    Paths,
    _option(
        "--launch", metavar="FILE...", help="What ranks are told: env or shell files, a dump of each rank."
    ),
]
Plan = Annotated[
    Texts, _option("--plan", metavar="KEY=VALUE,...", help="How the model is spread: dp=4,tp=2,pp=1,...")
]

User = Annotated[str | None, _option("--user", metavar="NAME", help="Log in as.")]
Port = Annotated[int | None, _option("--port", metavar="PORT", min=1, max=65535, help="SSH port.")]
Identity = Annotated[Texts, _option("-i", "--identity", metavar="FILE", help="Private key.")]
Jump = Annotated[str | None, _option("-J", "--jump", metavar="HOST", help="Jump host, or several: a,b.")]
SshConfig = Annotated[str | None, _option("--ssh-config", metavar="FILE", help="Default: ~/.ssh/config.")]
AcceptNew = Annotated[bool, _option("--accept-new", help="Trust unknown host keys once; never changed ones.")]
Sudo = Annotated[bool, _option("--sudo", help="Read what only root may read, by sudo -n.")]
Enter = Annotated[
    str | None, _option("--enter", metavar="COMMAND", help="Look inside: 'docker exec -i NAME'.")
]
Transport = Annotated[str, _option("--transport", metavar="NAME", help="auto, ssh, srun or local.")]
Fanout = Annotated[
    int, _option("--fanout", metavar="N", min=1, max=4096, help="Connections being made at once.")
]
ConnectTimeout = Annotated[
    float | None, _option("--connect-timeout", min=0.1, metavar="S", help="Default: 10 s.")
]
Timeout = Annotated[float, _option("--timeout", min=0.1, metavar="S", help="For a host's answer.")]
Deadline = Annotated[float | None, _option("--deadline", min=0.1, metavar="S", help="For the whole run.")]

Exam = Annotated[str | None, _option("--exam", metavar="NAME|FILE", help="What to examine (doctor list).")]
Only = Annotated[Texts, _option("--only", metavar="GLOB,...", help="Only these checks.")]
Skip = Annotated[Texts, _option("--skip", metavar="GLOB,...", help="Not these checks.")]
Checks = Annotated[Paths, _option("--checks", metavar="DIR", help="More checks, from a folder.")]
Expect = Annotated[Texts, _option("--expect", metavar="KEY=VALUE", help="What must be there.")]
Strict = Annotated[bool, _option("--strict", help="A warning counts as a fault.")]
Mesh = Annotated[
    str | None, _option("--mesh", metavar="SHAPE", help="Who connects to whom: auto, full, ring, none.")
]
OnBusy = Annotated[
    str, _option("--on-busy", metavar="skip|run", help="Whether devices that are at work are pinged.")
]
NeedHosts = Annotated[
    int | None,
    _option("--need-hosts", metavar="N", min=1, help="Exit with 0 if so many healthy hosts remain."),
]
Replay = Annotated[
    Path | None, _option("--replay", metavar="FILE", help="Judge a recording; touches no host.")
]

Python = Annotated[
    str | None,
    _option("--python", metavar="PATH", help="The job's interpreter on the hosts. Default: python3."),
]
Steps = Annotated[
    int | None, _option("--steps", metavar="N", help="Training steps of the smoke run. Default: 30.")
]
Tp = Annotated[
    int | None, _option("--tp", metavar="N", help="Ranks that share a model: 1, 2 or 4. Default: 2 if even.")
]
SmokeTimeout = Annotated[
    float | None,
    _option("--smoke-timeout", metavar="S", help="For a smoke run. Default: 120; nccl 600, hccl 900."),
]
Inject = Annotated[
    Texts,
    _option("--inject", metavar="KIND@RANK[:STEP]", help="A fault on purpose, to see it found; or help."),
]
NoSmoke = Annotated[bool, _option("--no-smoke", help="Without the smoke run.")]
InJob = Annotated[
    bool, _option("--in-job", help="Inside torchrun, mpirun, msrun or srun: every rank calls it; no SSH.")
]

Save = Annotated[Path | None, _option("--save", metavar="FILE", help="Keep a recording of the run.")]
Json = Annotated[str | None, _option("--json", metavar="FILE", help="The report as JSON; - is stdout.")]
HealthyHosts = Annotated[
    Path | None, _option("--healthy-hosts", metavar="FILE", help="Write the healthy hosts' names.")
]
FaultyHosts = Annotated[
    Path | None, _option("--faulty-hosts", metavar="FILE", help="Write the names of all other hosts.")
]
Print = Annotated[
    str | None,
    _option("--print", metavar="launch[=FORM]", help="On a go, the line to go on with; all else on stderr."),
]
ReportDir = Annotated[
    Path | None, _option("--report-dir", metavar="DIR", help="The whole report, in files of this run alone.")
]
Quiet = Annotated[bool, _option("-q", "--quiet", help="Nothing on a go, else only what is wrong.")]
Verbose = Annotated[bool, _option("-v", "--verbose", help="With evidence.")]
NoColor = Annotated[bool, _option("--no-color", help="As NO_COLOR does.")]

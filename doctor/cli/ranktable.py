"""`doctor ranktable make` and `doctor ranktable check`."""

from dataclasses import MISSING, dataclass, replace
from pathlib import Path

from doctor.cli.examine import examine
from doctor.cli.options import group, takes
from doctor.errors import UsageError
from doctor.exam.request import JobFlags, Request
from doctor.text.option import any_option

app = group()
HOSTS = ("HOSTS", "--hostfile", "--inventory", "--local")
PODS = ("--pods", "--on-nodes", "--namespace", "--container", "--context")
BY_JOB = (*HOSTS, "--job", *PODS)
IN_A_TABLE = ("device-missing", "device-ip-missing", "device-ip-duplicate")
"""The checks that must be decided before a table is written. A fault of any other check prevents it too."""
SSH = (
    *("--user", "--port", "--identity", "--jump", "--via", "--ssh-config", "--accept-new"),
    *("--sudo", "--enter", "--trace"),
)
BY = ("--transport", "--allocate")


@dataclass(frozen=True, slots=True)
class MakeWishes:
    output: Path | None = any_option("--output FILE")
    form: str = any_option("--format 1.0|legacy|1.2", default="1.0")


@dataclass(frozen=True, slots=True)
class CheckWishes:
    file: Path = any_option("FILE", "The rank table.", default=MISSING)
    product: str | None = any_option("--product NAME")


@app.command("make", help="Write a rank table of the live devices, if all are healthy.")
@takes(*BY_JOB, "--exclude", *SSH, *BY, "--connect-timeout", "--timeout", "--expect", "--quiet")
def make(request: Request, wishes: MakeWishes) -> int:
    from doctor.cli.table import make_table_of

    what = replace(request.what, exam="host", only=("device-*",), skip=("device-busy",), mesh="none")
    request = replace(
        request, command="ranktable make", job=JobFlags(backend="hccl"), what=what, essential=IN_A_TABLE
    )
    return make_table_of(request, wishes.form, wishes.output)


@app.command("check", help="Check a rank table, alone or (with HOSTS) against the live devices.")
@takes(*BY_JOB, *SSH, *BY, "--json", "--quiet", "--verbose", "--color", "--no-color")
def check(request: Request, wishes: CheckWishes) -> int:
    who = request.who
    if not (who.hosts or who.hostfile or who.inventory or who.local or who.slurm_job or who.of_cluster):
        from doctor.cli.table import check_table

        return check_table(wishes.file, request.outputs, wishes.product)
    if wishes.product:
        raise UsageError(
            "--product is only for a table without hosts.", "If hosts are named, their devices report it."
        )
    what = replace(request.what, only=("rank-table-*",))
    who = replace(who, rank_table=wishes.file)
    return examine(
        replace(request, command="ranktable check", who=who, job=JobFlags(backend="hccl"), what=what)
    )

"""What the flags, and the files that they name, say about the job; they override the inventory."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from doctor.errors import InputErrors, UsageError
from doctor.exam.request import Request
from doctor.job.launch.process_env import Launch
from doctor.job.launch.table_reference import told_tables
from doctor.job.needs import FolderNeed, read_needs
from doctor.job.parallel import read_layout
from doctor.job.wishes import JobWishes
from doctor.model import Backend, Framework, SourcedValue, TableFile
from doctor.targets.allocation import is_allocated
from doctor.targets.hostfile import read_hostfile
from doctor.targets.inventory import table_file
from doctor.text.option import LIVE
from doctor.text.textfile import read_text

_ONE = "Give one of them; a file of that name is ./live."


def apply_flags(request: Request, wishes: JobWishes) -> JobWishes:
    """All wishes about the job; flags override files."""
    job = request.job
    wishes = replace(wishes, expect={**wishes.expect, **pairs(request.what.expect)})
    if job.backend != "auto":  # a rank table means HCCL, whatever is typed
        who = "a rank table is HCCL's" if request.command.startswith("ranktable") else "--backend"
        wishes = replace(wishes, backend=SourcedValue(Backend(job.backend), who))
    if job.master_port is not None:
        wishes = replace(wishes, master_port=SourcedValue(job.master_port, "--master-port"))
    if job.ranks_per_host is not None:
        wishes = replace(wishes, ranks_per_host=SourcedValue(job.ranks_per_host, "--ranks-per-host"))
    if LIVE in job.launch:
        if len(job.launch) > 1:
            raise UsageError("--launch live is the job that runs, so no file says how it is started.", _ONE)
        wishes = replace(wishes, live=wishes.launch is None)  # inside a job, its ranks have said it already
    elif job.launch:
        from doctor.job.launch.files import read_launch_files

        launch = read_launch_files(job.launch_files, _slots, is_allocated(os.environ))
        wishes = replace(wishes, launch=launch, table=wishes.table or _table_beside(launch))
    if request.smoke.framework != "auto":
        named = cast("Framework", request.smoke.framework)
        wishes = replace(wishes, framework=SourcedValue(named, "--framework"))
    if job.plan:
        wishes = replace(wishes, layout=SourcedValue(read_layout(job.plan), "--plan"))
    if job.needs:
        wishes = replace(wishes, needs=_needs(job.needs))
    return wishes


def _needs(texts: tuple[str, ...]) -> tuple[FolderNeed, ...]:
    try:
        return read_needs(texts)
    except UsageError as error:
        raise UsageError(f"--needs: {error.message}.", error.hint) from None


def _slots(hostfile: Path) -> dict[str, int]:
    """The slots of each host; 0 where a larger number may count."""
    try:
        more = re.search(r"max[-_]slots|slots[-_]max", read_text(hostfile))
        return {host.address: 0 if more else host.ranks or 0 for host in read_hostfile(hostfile)}
    except InputErrors:
        return {}


def _table_beside(launch: Launch) -> TableFile | None:
    """The rank table next to the script, as it is on this machine."""
    told = (table.path for table in told_tables(launch.told) if table.beside)
    paths = [path for path in (*(table.path for table in launch.beside), *told) if Path(path).is_file()]
    return table_file(Path(paths[0]), paths[0]) if paths else None


def pairs(texts: Sequence[str]) -> Mapping[str, str]:
    """The values given with --expect."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"--expect {text!r} is not KEY=VALUE.", "For example: --expect nofile=100000")
        found[key.strip()] = value.strip()
    return found

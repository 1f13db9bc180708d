"""`doctor hang --watch` and `--check` on this machine."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.exam.host_session import open_session
from doctor.exam.request import HostFlags, Request
from doctor.hang.check import HostSuggestion, examine_below
from doctor.live.look import look_at
from doctor.live.options import RunningJobWishes
from tests.support.commands import doctor
from tests.support.hang.ranks import RunningJob, make_job

__all__ = ["make_job"]

pytestmark = pytest.mark.slow


def test_a_job_is_watched_until_it_stands_still(make_job: Callable[..., RunningJob], tmp_path: Path) -> None:
    job = make_job(FAULT="sleep")
    job.hangs()
    limits = ("--for", "1", "--limit", "1")
    told = ("--notify", f'echo "$DOCTOR_SUMMARY" >{tmp_path}/told')
    chosen = ("--master-port", str(job.port), *limits, *told)
    done = doctor("hang", "--local", "--watch", "--check", *chosen, "--json", "-")
    said = json.loads(done.stdout)
    assert (done.returncode, said["hang"]["state"], "check" in said) == (1, "hang", False)
    lines = done.stderr.splitlines()
    assert any(" UTC, look " in line for line in lines)
    assert (tmp_path / "told").read_text().splitlines()[0] == said["headline"]
    assert lines[-1] == "doctor: no check applies: what was seen does not point below Python."


def test_a_check_goes_the_way_of_the_looks() -> None:
    session = open_session(Request("hang", who=HostFlags(local=True)), os.environ)
    here = session.hosts[0].name
    look_at(session, RunningJobWishes(), apart=0.2)
    report = examine_below(HostSuggestion((here,), ("shm-small", "nofile-low")), session)
    assert [host.name for host in report.hosts] == [here]
    assert {result.check for result in report.results} >= {"shm-small"}

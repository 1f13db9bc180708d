"""A mistake in the options of a job script ends the run before any host is asked."""

import pytest

from tests.support.cases import cases
from tests.support.commands import doctor


@pytest.fixture(autouse=True)
def _no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "MS_WORKER_NUM", "MS_SCHED_HOST", "PBS_JOBID"):
        monkeypatch.delenv(name, raising=False)


@cases
def test_a_mistake_is_reported_before_any_host_is_asked(arguments: tuple[str, ...], words: str) -> None:
    ran = doctor("preflight", "nowhere.invalid", *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert words in ran.stderr

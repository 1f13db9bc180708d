"""`doctor logs` in a job of a real Slurm finds what the job printed, wherever its script sent it."""

import json
from collections.abc import Sequence

from tests.lab.slurm import SHARED, Slurm
from tests.lab.slurmjob import Job, environment, submit
from tests.support.cases import cases
from tests.support.command import await_true

ODD = f"{SHARED}/out [%x] %j 100%%.txt"
NAMED = ("--job-name=big run", f"--output={ODD}")
FAULT = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
FAILS = f"echo 'Traceback (most recent call last):'; echo '{FAULT}'"
LOGS = "cd /tmp; doctor logs --json $JOB/report 2> $JOB/errors; echo code $? > $JOB/code\n"


def script(does: str) -> str:
    return f"{does}\n{LOGS}"


def ended(job: Job) -> Job:
    assert job.ended() == 0, job.file("errors")
    return job


def causes(job: Job) -> list[tuple[str, list[str]]]:
    return [(each["cause"], each["hosts"]) for each in json.loads(job.file("report"))["findings"]]


def files(job: Job) -> Sequence[str]:
    return [each["name"] for each in json.loads(job.file("report"))["logs"]["files"]]


def test_the_cause_is_in_the_file_that_slurm_names(slurm: Slurm) -> None:
    """It is read once, although all nodes see it, and it accuses no host, since all of them write there."""
    job = ended(submit(slurm, script(f'srun -n1 -w node2 sh -c "{FAILS}"'), *NAMED, nodes=2))
    assert job.file("code") == "code 1\n", job.file("errors")
    assert causes(job) == [("torch-cuda-memory", [])]
    (name,) = [each for each in files(job) if "100%" in each]
    assert name == f"node1:{SHARED}/out [big run] {job.number} 100%.txt"


def test_so_it_is_in_a_shell_of_the_job(slurm: Slurm) -> None:
    job = submit(slurm, f"{FAILS}; echo over; sleep 600\n", *NAMED, nodes=2)
    enters = ["srun", f"--jobid={job.number}", "--overlap", "-N1", "-n1"]
    await_true(lambda: bool(list(slurm.lab.directory.glob(f"shared/out*{job.number} 100%.txt"))), "output")
    done = slurm.run([*enters, "sh", "-c", "cd /tmp; doctor logs --json -"], env=environment())
    job.cancel()
    said = json.loads(done.stdout)
    assert [(each["cause"], each["hosts"]) for each in said["findings"]] == [("torch-cuda-memory", [])]


def test_nor_is_the_usual_file_read_by_each_node(slurm: Slurm) -> None:
    """The folder in which doctor is called is shared, too."""
    inside = script(f"cd {SHARED}; {FAILS}").replace("cd /tmp; ", "")
    job = ended(submit(slurm, inside, f"--output={SHARED}/slurm-%j.out", nodes=2))
    assert causes(job) == [("torch-cuda-memory", [])]
    assert [each for each in files(job) if "slurm-" in each] == [f"node1:{SHARED}/slurm-{job.number}.out"]


def test_on_one_node_it_is_of_that_node(slurm: Slurm) -> None:
    own = ("--output=/var/tmp/only here", "--error=/var/tmp/errors")
    job = ended(submit(slurm, script(f"{FAILS} >&2"), *own, nodes=1))
    host = job.field("BatchHost")
    assert causes(job) == [("torch-cuda-memory", [host])]
    assert {f"{host}:/var/tmp/errors"} <= set(files(job))


def test_a_healthy_job_does_not_complain(slurm: Slurm) -> None:
    job = ended(submit(slurm, script("echo all is well"), *NAMED, nodes=2))
    assert job.file("code") == "code 0\n", job.file("errors")
    assert causes(job) == []


@cases
def test_what_cannot_be_found_is_said(does: str, options: tuple[str, ...], says: str, slurm: Slurm) -> None:
    logs = LOGS.replace("doctor logs", "doctor logs --local")
    job = ended(submit(slurm, f"{does}\n{logs}", *options, nodes=1))
    assert says.format(job.number) in " ".join(job.file("errors").split())


def test_a_file_that_is_gone_is_no_all_clear(slurm: Slurm) -> None:
    job = ended(submit(slurm, script("rm '/var/tmp/gone'"), "--output=/var/tmp/gone", nodes=1))
    assert job.file("code") == "code 3\n"
    unread = json.loads(job.file("report"))["logs"]["unread"]
    assert any("/var/tmp/gone: the job writes there, but there is no such file" in each for each in unread)


def test_root_reads_nothing_that_the_job_of_another_user_names(slurm: Slurm) -> None:
    """Such a job may even be named like lines of Slurm."""
    name = "--job-name=a\n   UserId=root(0) GroupId=root(0)\n   StdOut=/etc/shadow"
    other = submit(slurm, "sleep 60\n", "--uid=65534", "--gid=65534", name, "--output=/etc/shadow", nodes=1)
    as_other = script(f"export SLURM_JOB_ID={other.number}")
    job = ended(submit(slurm, as_other.replace("doctor logs", "doctor logs --local"), nodes=1))
    other.cancel()
    assert not [each for each in files(job) if "shadow" in each]
    assert f"Slurm job {other.number} is of another user" in " ".join(job.file("errors").split())

"""`doctor preflight` as the first line of an sbatch script, in a real Slurm of four hosts."""

import re

import pytest

from tests.lab import Host
from tests.lab.slurm import DAEMON, Slurm
from tests.lab.slurmjob import submit
from tests.support.cases import from_cases
from tests.support.headlines import failures, headline

SCRIPT = from_cases(__file__, "SCRIPT", str)
FAULTS = from_cases(__file__, "FAULTS", dict[str, tuple[str, ...]])
HANGS = "--inject stuck@5:12"


def script(options: str = "", nodes: int = 4, where: str = "") -> str:
    return SCRIPT.format(options=options, nodes=nodes, where=where)


def firewall(host: Host) -> None:
    """A firewall that passes Slurm but not a rendezvous."""
    host.nft(
        f"""table inet closed {{ chain in {{ type filter hook input priority 0; policy accept;
        iif eth0 tcp dport != {{ 22, {DAEMON} }} ct state new drop; }}
        }}"""
    )


def trained(output: str) -> list[str]:
    return sorted(line.split()[-1] for line in output.splitlines() if line.startswith("trained on"))


@pytest.mark.main
def test_a_healthy_allocation_trains(slurm: Slurm) -> None:
    job = submit(slurm, script(nodes=2), nodes=2)
    assert job.ended() == 0, job.output
    assert trained(job.output) == ["node1", "node2"]
    assert "Healthy: node[1-2]." in job.output
    assert re.search(r"Smoke  4 ranks \(2 hosts × 2\), torch \S+ over gloo", job.output)
    assert "a job runs on" not in job.output, "only the script's own job runs"


def test_three_faults_at_once_are_distinguished_and_nothing_trains(slurm: Slurm) -> None:
    firewall(slurm.lab["node2"])
    slurm.lab["node3"].shm("16m")
    slurm.stop_node(slurm.lab["node4"])
    job = submit(slurm, script("--no-smoke"), "--no-kill")
    assert job.ended() == 1, job.output
    assert trained(job.output) == []
    for who, check in (("node2", "port-unreachable"), ("node3", "shm-small"), ("node4", "host-unreachable")):
        assert headline(job.output, f"FAIL  {who}", check)
    assert failures(job.output) == 4, "with the firewall's own rule"
    assert headline(job.output, "FAIL  node2", "firewall-blocks")


@pytest.mark.long
def test_a_hanging_rank_stops_the_job_unless_three_hosts_suffice(slurm: Slurm) -> None:
    """Both decisions use the same run."""
    job = submit(
        slurm,
        script(f"{HANGS} --need-hosts 3 --save $JOB/run --healthy-hosts $JOB/healthy", 3, "-w $JOB/healthy"),
    )
    assert job.ended() == 0, job.output
    assert headline(job.output, *FAULTS["hang"])
    assert trained(job.output) == ["node1", "node2", "node4"]
    assert "3 healthy hosts remain, 3 are needed: go." in job.output


@pytest.mark.long
@pytest.mark.parametrize("fault", ["firewall", "shm", "slurmd", "power", "hang"])
@pytest.mark.parametrize("need", [None, 3])
def test_one_fault_is_found_and_decides_whether_the_job_trains(
    fault: str, need: int | None, slurm: Slurm
) -> None:
    host = slurm.lab["node3"]
    if fault == "firewall":
        firewall(host)
    elif fault == "shm":
        host.shm("16m")
    elif fault == "slurmd":
        slurm.stop_node(host)
    elif fault == "power":
        host.power_off()
    options = HANGS if fault == "hang" else ""
    options += f" --need-hosts {need} --healthy-hosts $JOB/healthy" if need else ""
    job = submit(slurm, script(options, need or 4, "-w $JOB/healthy" if need else ""), "--no-kill")
    assert job.ended() == (0 if need else 1), job.output
    assert trained(job.output) == (["node1", "node2", "node4"] if need else [])
    assert headline(job.output, *FAULTS[fault])
    for other in ("node1", "node2", "node4"):
        assert f"FAIL  {other}" not in job.output


def test_a_cancelled_job_leaves_nothing_on_any_node(slurm: Slurm) -> None:
    before = {host.name: host.snapshot() for host in slurm.lab}
    job = submit(slurm, "exec doctor smoke -v --steps 1000\n")
    job.await_word("doctor: smoke  ")
    job.cancel()
    job.ended()
    slurm.await_nodes(60)
    assert "Traceback" not in job.output
    for host in slurm.lab:
        left = host.leftovers(before[host.name])
        assert not left.ports
        assert not [each for each in left.processes if "slurm" not in each.command], left
        assert not [each for each in left.files if each.startswith(("/tmp", "/dev/shm"))], left

"""`doctor run` around torchrun on each host: the first one leads, the other passes on and keeps its part."""

import sys
from pathlib import Path

import pytest

from tests.lab import Host, Lab
from tests.support.injob import Job, environment, torchrun_argv
from tests.support.paths import ROOT

pytestmark = pytest.mark.slow
FOLDER = "/tmp/train"
PORT = 29631


def give_logins(lab: Lab, host: Host) -> str:
    """Hosts have a /tmp of their own, so they cannot read the files of the lab."""
    place = lab.ssh_config.parent
    for name in ("ssh_config", "known_hosts", "id_ed25519"):
        text = (place / name).read_text().replace(str(place), "/root/lab")
        host.write(f"/root/lab/{name}", text, 0o600)
    return "/root/lab/ssh_config"


@pytest.mark.main
def test_the_first_host_leads(lab: Lab) -> None:
    hosts, job = lab.hosts[:2], Job()
    try:
        for number, host in enumerate(hosts):
            config = give_logins(lab, host)
            host.do("mkdir -p $1", FOLDER)
            run = [sys.executable, "-m", "doctor", "run", "node[1-2]", "--ssh-config", config]
            run += ["--no-preflight", "--json", "run.json", "--"]
            words = [*torchrun_argv(hosts, 1, number, PORT), str(ROOT / "tests/support/command_job.py")]
            there = ["env", "-C", FOLDER, "FAULT=kill", "VICTIM=1", *run, *words]
            job.start(host.enter(there), environment())
        codes = [each.wait(240) for each in job.starts]
        led, followed = (Path(file.name).read_text(errors="replace") for file in job.files)
        assert codes == [1, 1], led + followed
        assert "rank 1 on node2" in led.rpartition("\ndoctor: ")[0].partition("\ndoctor: ")[2], led
        assert followed.count("doctor: ") == 1
        kept = [host.do('ls "$1"/doctor-runs/*', FOLDER).split() for host in hosts]
        assert "why.txt" in kept[0]
        assert kept[1] == ["part-stdout.log"]
    finally:
        job.close()

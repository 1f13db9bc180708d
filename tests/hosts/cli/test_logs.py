"""`doctor logs` on hosts of the lab: the log of the guilty host is fetched, explained and proved there."""

import json
import subprocess

import pytest

from tests.lab import Lab
from tests.support.cases import from_cases

ALL = "node[1-3]"
PORT = 21_500
IN_USE = from_cases(__file__, "IN_USE", str)


def write_logs(lab: Lab) -> None:
    for host in lab.hosts:
        said = f"it begins\n{IN_USE}" if host.name == "node2" else "it begins"
        host.dirty = True
        script = 'mkdir -p "/tmp/a job"; printf "%s\n" "$1" >"/tmp/a job/train.log"'
        subprocess.run(host.enter(["sh", "-c", script, "sh", said]), check=True, timeout=30)


@pytest.mark.main
def test_logs_are_fetched_from_the_hosts_and_name_one(lab: Lab) -> None:
    write_logs(lab)
    done = lab.doctor("logs", ALL, "--path", "/tmp/a job/*.log", "--json", "-")
    assert done.returncode == 1, done.stderr
    said = json.loads(done.stdout)
    first = said["findings"][0]
    assert (first["cause"], first["hosts"]) == ("torch-port-in-use", ["node2"])
    assert first["evidence"][0]["source"] == "node2:/tmp/a job/train.log:2"
    assert said["logs"]["fetched_from"] == ["node1", "node2", "node3"]
    assert "doctor check node2 --only port-in-use" in said["logs"]["commands"][0]
    assert f"--master-port {PORT}" in said["logs"]["commands"][0]


def test_the_hosts_prove_what_the_logs_say(lab: Lab) -> None:
    write_logs(lab)
    done = lab.doctor("logs", ALL, "--path", "/tmp/a job/*.log", "--check", "--json", "-")
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["findings"][0]["logs"]["proved"]["on_hosts"] == "not seen any more"


def test_logs_that_are_not_of_a_job_are_no_all_clear(lab: Lab) -> None:
    alone = lab.doctor("logs", ALL)
    said = " ".join(alone.stdout.split())
    assert alone.returncode == 3, alone.stdout + alone.stderr
    assert "No log of a job was found on node[1-3]" in said
    assert "/var/log/syslog" in said.partition("looked in")[2]
    assert "--path '/data/run7/*.log'" in said.partition(" do ")[2]
    lab["node2"].do('for n in 1 2 3; do echo "step $n loss 2.$((9 - n))"; done >~/train.log')
    healthy = lab.doctor("logs", ALL)
    assert healthy.returncode == 0, healthy.stdout + healthy.stderr


def test_what_could_not_be_read_is_named_by_its_host(lab: Lab) -> None:
    for name in ("node1", "node2"):
        lab[name].do("mkdir -p /tmp/job; head -c 20000 /dev/urandom >/tmp/job/train.log")
    done = lab.doctor("logs", ALL, "--path", "/tmp/job")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "node1:/tmp/job/train.log, node2:/tmp/job/train.log: not text" in " ".join(done.stdout.split())

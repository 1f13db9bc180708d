"""`--enter`: the examination runs inside what the command enters, and reports that it does."""

import json
import subprocess
from pathlib import Path

from doctor.api import Ask
from doctor.judge.examine import ALWAYS
from doctor.probe import script
from tests.lab import Lab
from tests.support.headlines import headline

# Like a container engine: a separate mount namespace with a small /dev/shm.
ENTER = """unshare -m sh -c 'mount -t tmpfs -o size=64m shm /dev/shm && exec "$@"' enter"""


def test_the_container_has_too_little_and_the_host_enough(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    done = lab.doctor("check", "node[1-2]", "--enter", ENTER, "--json", str(path))
    report = json.loads(path.read_text())
    (finding,) = [f for f in report["findings"] if f["status"] == "fail"]
    assert done.returncode == 1, done.stdout + done.stderr
    assert (finding["check"], finding["hosts"], finding["view"]) == (
        "shm-small",
        ["node1", "node2"],
        "container",
    )
    assert "seen from inside the container" in " ".join(done.stdout.split())
    assert lab.doctor("check", "node[1-2]").returncode == 0


def test_a_host_whose_entry_does_not_exist_is_not_healthy(lab: Lab) -> None:
    done = lab.doctor("check", "node[1-2]", "--enter", "docker exec -i nosuch")
    assert done.returncode == 1, done.stdout
    assert "host-unreachable" in done.stdout


def test_the_controller_can_run_the_entry(lab: Lab, tmp_path: Path) -> None:
    """Like `kubectl exec -i POD --`: no SSH, one command of this machine for each host."""
    inventory = tmp_path / "inventory.yaml"
    pids = {host.name: host.pid for host in lab.hosts[:2]}
    lines = [
        f"  {name}: {{enter_from: controller, enter: 'env HOME=/root nsenter -m -u -n -p -t {pid}'}}"
        for name, pid in pids.items()
    ]
    inventory.write_text("hosts:\n" + "\n".join(lines) + "\n")
    done = lab.doctor("check", "--inventory", str(inventory))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Healthy: " in done.stdout


def test_an_entry_without_its_own_session_ends_no_other_process(lab: Lab) -> None:
    """nsenter keeps the outer session:

    inside, that session has no id, like that of the host's init. The probe's stdin ends at once, so the probe
    ends itself and everything that it started, and nothing else.
    """
    host = lab["node1"]
    text = script(ALWAYS, Ask("node1"), "0123456789abcdef").stdin
    enter = ["nsenter", "-m", "-u", "-n", "-p", "-t", str(host.pid), "sh", "-s"]
    subprocess.run(enter, input=text, capture_output=True, start_new_session=True, timeout=20, check=False)
    assert host.running
    assert lab.ssh("node1", "true").returncode == 0


def test_data_addresses_may_differ_from_those_of_ssh(make_lab: object, tmp_path: Path) -> None:
    """Ranks of this job use a second network; a firewall there is found, one on SSH's is not a fault."""
    assert callable(make_lab)
    lab: Lab = make_lab(3, data=True)
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(
        "hosts:\n" + "".join(f"  {host.name}: {{data: {host.data_address}}}\n" for host in lab)
    )
    chain = "chain i {{\n type filter hook input priority 0\n iif {} tcp dport != 22 drop\n }}\n"
    rules = "table inet f {{\n" + chain + "}}\n"
    lab["node2"].nft(rules.format("eth0"))
    done = lab.doctor("check", "--inventory", str(inventory))
    assert done.returncode == 0, done.stdout + done.stderr
    lab["node2"].nft("flush ruleset\n" + rules.format("eth1"))
    done = lab.doctor("check", "--inventory", str(inventory))
    assert done.returncode == 1
    assert headline(done.stdout, "FAIL  node2", "firewall-blocks")

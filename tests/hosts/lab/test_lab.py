"""The lab itself: its hosts exist, are healthy and separate, can be broken and reset, and leave nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab import Host, Lab, LabError, missing, needs, sweep
from tests.lab.controller import REPOSITORY
from tests.lab.needs import processes_of, without
from tests.support.cases import cases, from_cases

PORT = 29500
DROP_PORT = from_cases(__file__, "DROP_PORT", str)


def answers(source: Host, target: Host, port: int = PORT) -> bool:
    """Whether a connection from one host to another succeeds."""
    return source.ask('timeout 1 bash -c "</dev/tcp/$1/$2"', target.address, str(port)).returncode == 0


def dial(lab: Lab, host: str = "node1", seconds: int = 8) -> str:
    """The error of ssh when it cannot log in."""
    client = ["ssh", "-F", str(lab.ssh_config), "-o", f"ConnectTimeout={seconds}", host, "echo in"]
    done = lab.run(client)
    assert done.returncode == 255, done.stdout
    return done.stderr


def test_missing_says_what_the_lab_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert missing() == "the lab needs root"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(needs, "PROGRAMS", ("sh", "no-such-program"))
    assert missing() == "the lab needs the program 'no-such-program'"


# Hosts exist and are healthy.


@cases
def test_every_user_logs_in_on_every_host(lab: Lab, user: str, uid: str, home: str) -> None:
    client = ["ssh", "-F", str(lab.ssh_config), "-l", user]
    sessions = [lab.popen([*client, host.name, "hostname; id -u; pwd"]) for host in lab]
    for host, session in zip(lab, sessions, strict=True):
        stdout, stderr = session.communicate(timeout=20)
        assert stdout.split() == [host.name, uid, home], stderr


def test_hosts_reach_each_other_by_name(lab: Lab) -> None:
    lab["node2"].listen(PORT)
    assert lab["node1"].ask(f'timeout 1 bash -c "</dev/tcp/node2/{PORT}"').returncode == 0
    assert lab.run(["getent", "hosts", "node3"]).stdout.split() == [lab["node3"].address, "node3"]


def test_hosts_have_a_network_for_data(make_lab: Callable[..., Lab]) -> None:
    first, second = make_lab(2, data=True)
    first.listen(PORT, first.data_address)
    reach = f'timeout 1 bash -c "</dev/tcp/$1/{PORT}"'
    assert second.ask(reach, first.data_address).returncode == 0
    assert second.ask(reach, first.address).returncode != 0
    assert "dev eth1" in second.ask(f"ip route get {first.data_address}").stdout


def test_nothing_leaves_the_machine(lab: Lab) -> None:
    for namespace in (lab["node1"].ask("ip -4 route show default"), lab.run(["ip", "-4", "route"])):
        assert "dev eth0" not in namespace.stdout.replace("via 198.18.0.1 dev eth0", "")


def test_an_idle_host_runs_only_sshd(lab: Lab) -> None:
    host = lab["node1"]
    seen = host.snapshot()
    assert not seen.processes
    assert seen.ports == {22}
    assert host.ask("dmesg").stdout == ""
    assert len(host.ask("cat /proc/swaps").stdout.splitlines()) == 1
    assert host.ask("cat /proc/sys/net/ipv4/neigh/default/gc_thresh3").stdout == "1024\n"


def test_interpreter_of_the_tests_runs_on_hosts(lab: Lab) -> None:
    assert lab["node1"].ask('"$1" -c "print(6 * 7)"', sys.executable, user="trainee").stdout == "42\n"


def test_init_reaps_orphans(lab: Lab) -> None:
    host = lab["node1"]
    host.sh("sh -c 'sleep 0.05 & sleep 0.05 &'")
    time.sleep(0.3)
    assert not host.snapshot().processes


def test_sudo_only_where_granted(lab: Lab) -> None:
    assert lab.ssh("node1", "sudo -n id -u", "trainee").returncode != 0
    lab["node1"].grant_sudo()
    assert lab.ssh("node1", "sudo -n id -u", "trainee").stdout == "0\n"
    assert lab.ssh("node2", "sudo -n id -u", "trainee").returncode != 0


# Apart from each other and from the machine.


@pytest.mark.parametrize(
    ("change", "look"),
    [
        (lambda host: host.sysctl("net.core.somaxconn", 77), "cat /proc/sys/net/core/somaxconn"),
        (lambda host: host.shm("8m"), "df /dev/shm"),
        (lambda host: host.names({"node4": "127.0.1.1"}), "getent hosts node4"),
        (lambda host: host.hostname("other"), "hostname"),
        (lambda host: host.do("touch /etc/new /tmp/new /run/new"), "ls -d /etc/new /tmp/new /run/new 2>&1"),
        (lambda host: host.mtu(1234), "cat /sys/class/net/eth0/mtu"),
        (lambda host: host.link_down(), "cat /sys/class/net/eth0/operstate"),
        (lambda host: host.add_interface("ib0", "10.0.0.1/24"), "ls /sys/class/net"),
        (lambda host: host.kernel_log("NVRM: Xid 79\n"), "dmesg -T"),
        (lambda host: host.shadow("/proc/swaps", "swapped\n"), "cat /proc/swaps"),
        (
            lambda host: host.shadow_dir("/proc/sys/net/ipv4/neigh/default", {"gc_thresh1": "9\n"}),
            "cat /proc/sys/net/ipv4/neigh/default/gc_thresh*",
        ),
        (
            lambda host: host.sysfs_class("infiniband", {"mlx5_0": {"ports": {"1": {"state": "1: DOWN\n"}}}}),
            "cat /sys/class/infiniband/mlx5_0/ports/1/state /sys/class/net/eth0/mtu 2>&1",
        ),
        (lambda host: host.program("npu-smi", "echo two"), "npu-smi 2>&1"),
        (lambda host: host.no_tool("python3"), "command -v python3"),
        (lambda host: host.iptables("-A", "INPUT", "-j", "ACCEPT"), "iptables-nft -S"),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else "",
)
def test_change_is_seen_on_one_host_only_until_reset(
    lab: Lab, change: Callable[[Host], object], look: str
) -> None:
    first, second = lab["node1"], lab["node2"]
    fine, neighbour = first.ask(look).stdout, second.ask(look).stdout
    change(first)
    changed = first.ask(look).stdout
    assert changed != fine
    assert second.ask(look).stdout == neighbour
    assert subprocess.run(["sh", "-c", look], capture_output=True, text=True).stdout != changed
    lab.reset()
    assert first.ask(look).stdout == fine


def test_processes_are_apart(lab: Lab) -> None:
    first, second = lab["node1"], lab["node2"]
    process = first.spawn(["sleep", "1000"])
    assert process.alive
    assert "sleep 1000" in first.ask("ps -e -o args").stdout
    assert "sleep 1000" not in second.ask("ps -e -o args").stdout
    process.stop()
    assert not process.alive


def test_settings_of_the_machine_cannot_be_written(lab: Lab) -> None:
    done = lab["node1"].ask("echo 1 >/proc/sys/vm/swappiness")
    assert "Read-only" in done.stderr


def test_limits_reach_new_logins(lab: Lab) -> None:
    lab["node1"].limits(nofile=1000, memlock=65536)
    assert lab.ssh("node1", "ulimit -n; ulimit -l", "trainee").stdout.split() == ["1000", "64"]
    assert lab.ssh("node2", "ulimit -n", "trainee").stdout.split() != ["1000"]


def test_full_disks(lab: Lab) -> None:
    host = lab["node1"]
    host.shm("64m")
    host.fill("/dev/shm/nccl-abc", "50m")
    host.resize("/tmp", "1m")
    assert host.ask("df -m --output=avail /dev/shm /tmp").stdout.split()[1:] == ["14", "1"]
    with pytest.raises(LabError, match="No space left"):
        host.fill("/tmp/big", "2m")


def test_clock_runs_ahead(lab: Lab) -> None:
    lab["node1"].clock(40.5)
    for options in ("", "-u"):
        ahead = float(lab["node1"].ask(f"date {options} +%s.%N").stdout) - time.time()
        assert ahead == pytest.approx(40.5, abs=0.5)
    assert lab["node1"].ask("date -u -d @0 +%Y").stdout == "1970\n"


# Firewalls.


@pytest.mark.parametrize(
    ("program", "close"),
    [
        ("nft", lambda host: host.nft(DROP_PORT)),
        ("iptables-nft", lambda host: host.iptables("-P", "INPUT", "DROP")),
        ("iptables-legacy", lambda host: host.iptables("-P", "INPUT", "DROP", backend="legacy")),
        ("ufw", lambda host: host.ufw_enable()),
        ("firewalld", lambda host: host.firewalld_start()),
    ],
)
def test_firewall_closes_a_port(lab: Lab, program: str, close: Callable[[Host], None]) -> None:
    if without(program):
        pytest.skip(f"needs {program}")
    server, client = lab["node1"], lab["node2"]
    server.listen(PORT)
    assert answers(client, server)
    close(server)
    assert not answers(client, server)


@pytest.mark.parametrize("program", ["ufw", "firewalld"])
def test_firewall_leaves_ssh_and_allowed_ports_open(lab: Lab, program: str) -> None:
    if without(program):
        pytest.skip(f"needs {program}")
    server, client = lab["node1"], lab["node2"]
    server.listen(PORT)
    if program == "ufw":
        server.ufw_enable(f"allow from {client.address} to any port {PORT} proto tcp")
        assert f"{PORT}/tcp" in server.ask("ufw status").stdout
    else:
        server.firewalld_start(f"--add-port={PORT}/tcp")
        assert f"{PORT}/tcp" in server.ask("firewall-cmd --list-ports").stdout
    assert answers(client, server)
    assert lab.ssh("node1", "echo in").stdout == "in\n"


# SSH that fails.


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (lambda host: host.kill_sshd(), "Connection refused"),
        (lambda host: host.power_off(), "No route to host"),
        (lambda host: host.link_down(), "No route to host"),
        (lambda host: host.refuse_login(), "Permission denied"),
        (lambda host: host.change_key(), "IDENTIFICATION HAS CHANGED"),
        (lambda host: host.shell("none"), "Permission denied"),
    ],
    ids=["refused", "off", "unplugged", "auth", "key", "shell"],
)
def test_ssh_prints_its_own_error(lab: Lab, fault: Callable[[Host], None], says: str) -> None:
    fault(lab["node1"])
    assert says in dial(lab)
    lab.reset()
    assert lab.ssh("node1", "echo in").stdout == "in\n"


@pytest.mark.parametrize(
    "fault",
    [lambda host: host.blackhole(), lambda host: host.no_banner(), lambda host: host.freeze()],
    ids=["blackhole", "banner", "frozen"],
)
def test_ssh_times_out(lab: Lab, fault: Callable[[Host], None]) -> None:
    fault(lab["node1"])
    assert "timed out" in dial(lab, seconds=1)


@pytest.mark.parametrize("kind", ["silent", "flood", "stall"])
def test_a_shell_that_hangs_ends_with_its_connection(lab: Lab, kind: str) -> None:
    host = lab["node1"]
    host.shell(kind, after=3)
    before = host.snapshot()
    session = lab.popen(["ssh", "-F", str(lab.ssh_config), "node1", "echo 123456"])
    assert session.stdout is not None
    if kind != "silent":
        assert session.stdout.read(3) == {"flood": "a s", "stall": "123"}[kind]
    with pytest.raises(subprocess.TimeoutExpired):
        session.wait(0.6)
    assert host.leftovers(before).processes
    session.kill()
    host.await_that(lambda: not host.leftovers(before), "end of the session", 3)


def test_shell_cuts_the_connection(lab: Lab) -> None:
    lab["node1"].shell("cut", "trainee", after=7)
    done = lab.ssh("node1", "echo 123456789", "trainee")
    assert (done.stdout, done.returncode) == ("1234567", 255)


def test_a_shell_prints_a_banner_before_its_output(lab: Lab) -> None:
    lab["node1"].shell("garbage")
    done = lab.ssh("node1", "echo in")
    assert "Authorised use only" in done.stdout
    assert done.stdout.endswith("in\n")


def test_sshd_takes_options(lab: Lab) -> None:
    lab["node1"].sshd(AllowUsers="root")
    assert lab.ssh("node1", "true", "trainee").returncode == 255
    assert lab.ssh("node1", "true").returncode == 0


# Nothing is left behind.


def test_leftovers_are_listed(lab: Lab) -> None:
    host = lab["node1"]
    before = host.snapshot()
    assert not host.leftovers(before)
    host.listen(PORT, user="trainee")
    host.do("touch /dev/shm/a; mkdir -p /opt/b; touch /opt/b/c; touch ~/d")
    found = host.leftovers(before)
    assert [process.command.split()[0] for process in found.processes] == [sys.executable]
    assert {"/dev/shm/a", "/opt/b/c", "/root/d"} <= found.files
    assert found.ports == {PORT}


def test_a_closed_lab_leaves_nothing(make_lab: Callable[..., Lab]) -> None:
    lab = make_lab(2, names=["a", "b"])
    lab["a"].spawn(["sleep", "1000"])
    running, directory = lab.popen(["sleep", "1000"]), lab.directory
    assert lab.ssh("b", "hostname").stdout == "b\n"
    lab.close()
    assert running.poll() is not None
    assert not directory.exists()
    assert str(directory) not in Path("/proc/self/mounts").read_text()
    assert not processes_of(directory)


@pytest.mark.usefixtures("make_lab")
def test_a_killed_lab_is_cleaned_up() -> None:
    script = "from tests.lab import Lab; lab = Lab(2).start(); print(lab.directory, flush=True); input()"
    owner = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        directory = Path(owner.stdout.readline().strip())
        assert processes_of(directory)
        assert directory not in sweep()
        os.kill(owner.pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while processes_of(directory):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert directory in sweep()
    assert not directory.exists()


def test_reset_boots_only_what_was_touched(lab: Lab) -> None:
    pids = {host.name: host.pid for host in lab}
    lab["node2"].sh("true")
    lab["node3"].power_off()
    lab.reset()
    assert {host.name for host in lab if host.pid != pids[host.name]} == {"node2", "node3"}
    assert not lab["node2"].dirty


def test_two_labs_run_side_by_side(lab: Lab, make_lab: Callable[..., Lab]) -> None:
    other = make_lab(1)
    other["node1"].do("touch /tmp/other")
    assert "other" in other.ssh("node1", "ls /tmp").stdout.split()
    assert "other" not in lab.ssh("node1", "ls /tmp").stdout.split()

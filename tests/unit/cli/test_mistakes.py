"""What people type by mistake or because other programs accept it, and the answer: what to type here."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.cli import run
from doctor.cli.otherwords import COMMANDS, OPTIONS

HOSTS_INI = "[train]\nnode1 ansible_host=10.0.0.1\nnode2\n\n[train:vars]\nansible_user=root\n"
HOSTS_YML = "all:\n  children:\n    train:\n      hosts:\n        node1:\n        node2:\n"
SSH_CONFIG = "# mine\nHost node*\n  User root\n  Port 2222\n"
ETC_HOSTS = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n10.0.0.1 node1 node1.lab\n"
TABLE = '{"version": "1.0", "server_count": "1", "server_list": [{"server_id": "10.0.0.1", "device": []}]}'


def answer(words: str | list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(words.split() if isinstance(words, str) else words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert err.count("\n") <= 4
    return " ".join(err.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("check --hosts node1,node2", "Hosts are named without an option: doctor check node1,node2"),
        ("check --host=node1", "doctor check node1"),
        ("hang -H node1", "doctor hang node1"),
        ("check -w node[1-4]", "doctor check 'node[1-4]'"),
        ("check -n node1", "doctor check node1"),
        ("check -n 8", "Ranks: --ranks-per-host 8."),
        ("check -n8", "Ranks: --ranks-per-host 8."),
        ("preflight --nnodes 4", "Hosts are named, not counted: doctor preflight 'node[1-4]'."),
        ("check --format json", "Did you mean '--json -'?"),
        ("check --format=html", "Did you mean '--html FILE'?"),
        ("check -o out.json", "Did you mean '--json out.json'?"),
        ("check --output report.html", "Did you mean '--html report.html'?"),
        ("check -json -", "Did you mean '--json'?"),
        ("check --nproc-per-node 4", "Did you mean '--ranks-per-host 4'?"),
        ("check --nproc_per_node=4", "Did you mean '--ranks-per-host 4'?"),
        ("smoke --ranks 4", "Did you mean '--ranks-per-host 4'?"),
        ("check --gpus 8", "Did you mean '--ranks-per-host 8'?"),
        ("check --master_port 29500", "Did you mean '--master-port'?"),
        ("check --master-addr node1", "Rank 0 runs on the host that is named first."),
        ("check -l root", "Did you mean '--user root'?"),
        ("check -p2222", "Did you mean '--port 2222'?"),
        ("check --key id", "Did you mean '--identity id'?"),
        ("check --bastion gate", "Did you mean '--jump gate'?"),
        ("check -f hosts", "Did you mean '--hostfile hosts'?"),
        ("check --machinefile hosts", "Did you mean '--hostfile hosts'?"),
        ("check --become", "Did you mean '--sudo'?"),
        ("check --debug", "Did you mean '--verbose'?"),
        ("check --without node3", "Did you mean '--exclude node3'?"),
        ("check --timeout 5m", "Did you mean 300 (seconds)?"),
        ("check --deadline 60s", "Did you mean 60 (seconds)?"),
        ("check --backend NCCL", "Did you mean 'nccl'?"),
        ("--hostfile hosts check", "Options go after a command: it is one of doctor check, "),
        ("check --backend ascend", "Did you mean 'hccl'?"),
        ("check --backend cuda", "Did you mean 'nccl'?"),
        ("check --transport slurm node1", "Did you mean 'srun'?"),
        ("check --color=false", "Did you mean 'never'?"),
        ("check --mesh all", "Did you mean 'full'?"),
        ("completion /bin/bash", "Did you mean 'bash'?"),
        ("ranktable train.log", "Type: doctor ranktable check train.log"),
        ("ranktable validate x.json", "Type: doctor ranktable check"),
        ("check -F node[1-4]", "Hosts are named without an option: 'node[1-4]'"),
        ("check -F node1", "Hosts are named without an option: node1"),
        ("check node1 --jump ssh://gate", "'ssh://gate' is not a jump host, such as root@gate or gate:2222"),
        ("check node1 --jump gate:", "'gate:' is not a jump host"),
        ("check root@", "'root@' names a user, but no host"),
        ("check node1/node2", "hosts are separated by commas"),
        ("check node1 -i id.pub", "--identity: id.pub is a public key. Give the private one: id."),
        ("check node1 -i hosts.ini", "hosts.ini is an Ansible inventory."),
        ("hang 4711", "'4711' is a number, not a host. A process: doctor hang --pid 4711."),
        ("check --hostfile=~/hosts", "/home/anna/hosts: does not exist"),
        ("hang --ranks 4", "Here it is --ranks-per-host, an option of doctor check, doctor smoke"),
        ("explain -f train.log", "Logs are named without an option: doctor explain train.log"),
        ("explain --log train.log", "Logs are named without an option: doctor explain train.log"),
        ("explain --lang cn EI0006", "Did you mean 'zh'?"),
        ("smoke --tensor-parallel-size 2", "Did you mean '--tp 2'?"),
        ("smoke --epochs 3", "Did you mean '--steps 3'?"),
        ("ranktable make -o x.json", "Did you mean '--output x.json'?"),
        ("check --list", "Type: doctor list"),
        ("check --fix node1", "doctor changes nothing on hosts; its report says what to type."),
        ("check node1 --json", "Type: --json FILE, or --json - for stdout."),
        ("version", "Type: doctor --version"),
        ("train.log", "Type: doctor explain train.log"),
        ("test node1", "Type: doctor check"),
        ("stuck", "Type: doctor hang"),
        ("node1", "Hosts go after a command: doctor check node1"),
    ],
)
def test_words_of_other_programs(
    words: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/anna")
    (tmp_path / "train.log").write_text("Traceback (most recent call last):\n")
    (tmp_path / "id.pub").write_text("ssh-ed25519 AAAAC3Nza anna@desk\n")
    (tmp_path / "hosts.ini").write_text(HOSTS_INI)
    assert says in answer(words, capsys)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("node1:8", "SSH port: --port 8. Ranks: --ranks-per-host 8."),
        ("node1:8,node2:8", "'node1:8' has a number after the host"),
        ("node[1-2]:8", "--ranks-per-host 8"),
        ("root@node1:22", "SSH port: --port 22."),
        ("[fd00::1]:2222", "SSH port: --port 2222."),
        ("https://node1", "'https://node1' is a URL, not a host. Did you mean node1?"),
        ("ssh://root@node1:2222", "Did you mean root@node1 --port 2222?"),
        ("hccl.json", "'hccl.json' is a rank table, not a host. Type: --rank-table hccl.json"),
        ("./hccl.json", "Type: --rank-table ./hccl.json"),
        ("hosts", "'hosts' is a hostfile, not a host. Type: --hostfile hosts"),
        ("hosts.txt", "Type: --hostfile hosts.txt"),
        ("lab.yaml", "Type: --inventory lab.yaml"),
        (
            "hosts.ini",
            "is an Ansible inventory, not a host. Type: doctor check -F <(ansible all -i hosts.ini ",
        ),
        ("ssh_config", "Type: --ssh-config ssh_config"),
        ("job.sh", "'job.sh' is a file, not a host. If it starts the job: --launch job.sh"),
        ("./", "'./' is a folder, not a host. If it holds logs: doctor explain ./"),
        ("$HOSTS", "'$HOSTS' was not replaced by the shell."),
        ("node1.", "'node1.' is not a host name: it ends with a dot"),
        ("train.log", "'train.log' is a file, not a host. If it is a log: doctor explain train.log"),
        ("run.json", "'run.json' is the name of a file, and there is no such file here"),
        ("node1，node2", "Did you mean node1,node2?"),
        ("node[1–4]", "Did you mean 'node[1-4]'?"),
        ("“node1”", "Did you mean node1?"),
        ("—hostfile", "Did you mean --hostfile?"),
        ("node*", "patterns are not matched; a range of hosts is written node1..4"),
        ("node{1..4}", "a range of hosts is written node1..4"),
        ("10.0.0.0/24", "the hosts of a network are named one by one, or as 10.0.0.[1-8]"),
    ],
)
@pytest.mark.parametrize("command", ["check", "hang"])
def test_words_that_are_no_hosts(
    command: str,
    word: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "hccl.json": TABLE,
        "hosts": "alpha\nbeta\n",
        "hosts.txt": "node1\nnode2\n",
        "lab.yaml": "hosts: [node1]\n",
        "hosts.ini": HOSTS_INI,
        "ssh_config": SSH_CONFIG,
        "job.sh": "#!/bin/bash\ntorchrun train.py\n",
        "train.log": "Traceback (most recent call last):\n",
    }.items():
        (tmp_path / name).write_text(text)
    assert says in answer([command, word], capsys)


@pytest.mark.parametrize("word", ["node1", "gpu7.lab", "fd00::1", "10.0.0.7", "alpha"])
def test_a_host_may_be_called_as_a_file_is(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from doctor.targets.inventory import read_targets

    monkeypatch.chdir(tmp_path)
    (tmp_path / word).write_text("something else\nthan a list of hosts\n")
    (host,) = read_targets([word], None, None, False, (), {}).hosts
    assert host.name == word


@pytest.mark.parametrize(
    ("option", "text", "says"),
    [
        ("-F", HOSTS_INI, "is an Ansible inventory. Type: doctor check -F <(ansible all -i"),
        ("--inventory", HOSTS_INI, "is an Ansible inventory"),
        ("--inventory", HOSTS_YML, "is an Ansible inventory"),
        ("-F", HOSTS_YML, "without [group] lines"),
        (
            "--inventory",
            "all:\n  vars: {ansible_user: root}\n  hosts:\n    node1: {}\n",
            "an Ansible inventory",
        ),
        ("--inventory", "---\nall: {hosts: {node1: {}}}\n", "is an Ansible inventory"),
        ("--rank-table", '{"_meta": {"hostvars": {}}, "all": {"children": []}}', "is an Ansible inventory"),
        ("-F", '{"hosts": ["node1"]}', "is an inventory. Type: doctor check --inventory"),
        ("-F", "[train]\nnode1\nnode2\n", "is an Ansible inventory"),
        ("-F", SSH_CONFIG, "is a configuration of SSH. Type: doctor check HOSTS --ssh-config"),
        ("--inventory", SSH_CONFIG, "is a configuration of SSH"),
        ("-F", ETC_HOSTS, "is a table of addresses and names, like /etc/hosts."),
    ],
)
def test_files_of_other_programs(
    option: str, text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "given").write_text(text)
    assert says in answer(["check", option, str(tmp_path / "given")], capsys)


@pytest.mark.parametrize(
    ("python", "says"),
    [
        ("/usr/bin", "--python /usr/bin is a directory. Give the program: /usr/bin/python"),
        ("{}/venv", "is a directory. Give the program: {}/venv/bin/python."),
        ("/tmp", "--python /tmp is a directory. Give the program: for instance /opt/train/bin/python."),
        ("/opt/nowhere/", "is a directory. Give the program: /opt/nowhere/python3."),
        ("~/venv/bin/python", "~ is not expanded on the hosts. Here it is {}/venv/bin/python."),
    ],
)
@pytest.mark.parametrize("where", ["node1", "--local"])
def test_an_interpreter_that_is_none(
    where: str,
    python: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").touch()
    said = answer(["check", where, "--python", python.format(tmp_path)], capsys)
    assert says.format(tmp_path) in said


def test_what_other_programs_call_so_is_nothing_of_ours() -> None:
    """A word of the tables that became an option or a command would never be looked up."""
    import typer

    from doctor.cli import app
    from doctor.cli.help import below

    root = typer.Context(typer.main.get_command(app), info_name="doctor")
    known = {name for each in below(root) for param in each.command.params for name in param.opts}
    assert {ours for ours in OPTIONS.values() if ours.startswith("-")} <= known
    assert not set(COMMANDS) & {each.command_path.split()[1] for each in below(root)}


@pytest.mark.parametrize("typed", ["shm_small", "SHM-SMALL"])
def test_the_name_of_a_check_in_other_letters(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", typed]) == 0
    assert capsys.readouterr().out.startswith("shm-small")

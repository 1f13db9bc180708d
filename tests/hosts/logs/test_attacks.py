"""`doctor logs` on hosts of the lab with hostile users, and on hostile hosts."""

import json
from pathlib import Path

import pytest

from tests.lab import Lab
from tests.lab.host import Host
from tests.support.cases import from_cases

pytestmark = pytest.mark.slow

HOSTS = "node[1-3]"
SECRET = "ROOTONLY-c0ffee"
FAULT = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
PLANT = from_cases(__file__, "PLANT", str)


def plant(host: Host) -> None:
    """Root's files are made by root, the others by an ordinary user whom no test uses to log in."""
    host.do('umask 077; mkdir /tmp/rootonly; printf "%s\\n%s\\n" "$1" "$2" >/tmp/rootonly/key', SECRET, FAULT)
    host.do('setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "$1" sh "$2"', PLANT, FAULT)


@pytest.mark.parametrize("way", [(), ("--user", "trainee", "--sudo")], ids=["login root", "sudo"])
def test_a_user_of_a_host_has_nothing_of_roots_fetched(
    lab: Lab, way: tuple[str, ...], tmp_path: Path
) -> None:
    lab["node2"].grant_sudo()
    plant(lab["node2"])
    user = "trainee" if way else "root"
    lab["node1"].do('mkdir /tmp/torchelastic_own; echo "$1" >/tmp/torchelastic_own/log', FAULT, user=user)
    saved, html = tmp_path / "saved", tmp_path / "l.html"
    asked = ("--since", "1h", "--save", str(saved), "--html", str(html), "--json", "-")
    done = lab.doctor("logs", HOSTS, *way, *asked)
    kept = b"".join(path.read_bytes() for path in saved.rglob("*") if path.is_file())
    for text in (done.stdout, done.stderr, html.read_text(), kept.decode("utf-8", "replace")):
        assert SECRET not in text
        assert "root:" not in text
    said = json.loads(done.stdout)
    assert [finding["hosts"] for finding in said["findings"]] == [["node1"]], done.stdout
    assert "/tmp/torchelastic_a (1 file) belongs to " in done.stdout + done.stderr
    assert "--rank-user" in done.stdout + done.stderr


HOSTILE = from_cases(__file__, "HOSTILE", str)


def test_a_hostile_host_costs_the_others_nothing(lab: Lab, tmp_path: Path) -> None:
    lab["node2"].write("/usr/local/bin/hostile", HOSTILE, 0o755)
    lab["node2"].sshd(ForceCommand="/usr/local/bin/hostile")
    lab["node1"].do('mkdir /tmp/torchelastic_own; echo "$1" >/tmp/torchelastic_own/log', FAULT)
    saved = tmp_path / "saved"
    done = lab.doctor("logs", HOSTS, "--max-mb", "1", "--save", str(saved), "--json", "-")
    assert done.returncode == 1, done.stderr
    said = json.loads(done.stdout)
    assert [finding["hosts"] for finding in said["findings"]] == [["node1"]]
    assert "node2: its answer was longer than requested" in done.stdout + done.stderr
    assert sum(path.stat().st_size for path in saved.rglob("*") if path.is_file()) < 10_000_000

"""First contact with hosts whose keys are unknown: the suggested commands work as they are shown."""

import json
import shlex
import subprocess
from pathlib import Path

from tests.support.commands import DOCTOR, doctor
from tests.support.paths import ROOT
from tests.support.transport_servers import make_key, public, sshd

ONLY = ("--only", "shm-small", "--mesh", "none")


def suggested(report: Path) -> list[str]:
    """The suggested commands."""
    found = json.loads(report.read_text())["findings"]
    reach = (each for each in found if each["check"] == "host-unreachable")
    return [line for each in reach for line in each["remedy"]["commands"] if not line.startswith("#")]


def test_the_ready_line_is_typed_as_it_is(tmp_path: Path) -> None:
    known, report = tmp_path / "known_hosts", tmp_path / "report.json"
    config = tmp_path / "ssh config"
    with sshd(tmp_path / "one") as one, sshd(tmp_path / "two") as two:
        config.write_text(
            f"UserKnownHostsFile {known}\nGlobalKnownHostsFile /dev/null\n"
            f"Host box1\n  Port {one.port}\n  IdentityFile {one.key}\n"
            f"Host box2\n  Port {two.port}\n  IdentityFile {two.key}\n"
            "Host *\n  HostName 127.0.0.1\n  IdentitiesOnly yes\n  IdentityAgent none\n"
        )
        asked = ("check", "box[1-2]", "--ssh-config", str(config), *ONLY)
        ran = doctor(*asked, "--json", str(report))
        assert ran.returncode == 1
        for server in (one, two):
            own = subprocess.run(
                ["ssh-keygen", "-lf", f"{server.host_key}.pub"], capture_output=True, text=True, check=True
            )
            assert own.stdout.split()[1] in ran.stdout, "the fingerprint is seen without -v"
        (line,) = suggested(report)
        assert line.startswith("doctor check 'box[1-2]' --accept-new --ssh-config '")
        words = f"{line} {shlex.join(ONLY)} --json {shlex.quote(str(report))}"
        called = f'doctor() {{ {shlex.join(DOCTOR)} "$@"; }}; {words}'
        shell = subprocess.run(["sh", "-c", called], cwd=ROOT, capture_output=True, text=True, check=False)
        assert "host-unreachable" not in shell.stdout
        assert {host["status"] for host in json.loads(report.read_text())["hosts"]} == {"healthy"}
        assert len(known.read_text().splitlines()) == 2

        known.write_text(f"[127.0.0.1]:{one.port} {public(make_key(tmp_path / 'old'))}\n{two.known()}\n")
        doctor(*asked, "--json", str(report))
        commands = suggested(report)
        assert commands
        assert not any("accept-new" in command for command in commands), "a changed key"

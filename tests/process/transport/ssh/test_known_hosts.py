"""The known_hosts entries of OpenSSH and ours, each read by the other."""

import base64
import subprocess
from pathlib import Path

from doctor.transport.ssh.known_hosts import KeyJudgement, KnownHosts, known_as


def test_hashed_names_as_openssh_writes_them(tmp_path: Path) -> None:
    file = tmp_path / "known"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    kind, blob = (tmp_path / "key.pub").read_text().split()[:2]
    file.write_text(f"[node1]:2222 {kind} {blob}\n")
    subprocess.run(["ssh-keygen", "-H", "-f", file], check=True, capture_output=True)
    assert file.read_text().startswith("|1|")
    raw = base64.b64decode(blob)
    assert KnownHosts().known([known_as("node1", 2222)], [str(file)]).judge(raw)[0] is KeyJudgement.KNOWN
    assert KnownHosts().known([known_as("node1", 22)], [str(file)]).judge(raw)[0] is KeyJudgement.UNKNOWN


def test_openssh_finds_a_key_that_was_added(tmp_path: Path) -> None:
    file = tmp_path / "known"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    raw = base64.b64decode((tmp_path / "key.pub").read_text().split()[1])
    for name, hashed in (("plain", False), ("hashed", True)):
        KnownHosts().add(name, "ssh-ed25519", raw, str(file), hashed)
        found = subprocess.run(["ssh-keygen", "-F", name, "-f", file], capture_output=True, check=True)
        assert b"ssh-ed25519" in found.stdout

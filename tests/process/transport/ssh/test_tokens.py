"""Logins that only the system's `ssh` has: a ticket of a real Kerberos, and a key in a real PKCS#11 token."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor.model import Answer, Host, UnreachedHost
from doctor.transport.openssh import OpensshTransport
from doctor.transport.routing import RoutedTransport
from doctor.transport.ssh.settings import SshSettings
from tests.support.transport_servers import SSHD, Sshd, config, free_port, public, sh, sshd

ADMIN, KDC = Path("/usr/sbin/kadmin.local"), Path("/usr/sbin/krb5kdc")
TOKEN = Path("/usr/lib/softhsm/libsofthsm2.so")
PIN = "4711-0815"
REALM = "LAB.TEST"
pytestmark = pytest.mark.skipif(not SSHD.exists(), reason="needs an SSH server to talk to")


@pytest.fixture
def realm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A KDC of its own, with keys of this user and of the host; no ticket was asked for yet."""
    if not (ADMIN.exists() and KDC.exists() and shutil.which("kinit")):
        pytest.skip("needs krb5-kdc, krb5-admin-server and krb5-user")
    folder = tmp_path / "realm"
    folder.mkdir()
    port = free_port()
    (folder / "krb5.conf").write_text(
        f"[libdefaults]\ndefault_realm = {REALM}\ndns_canonicalize_hostname = false\nrdns = false\n"
        f"[realms]\n{REALM} = {{\nkdc = 127.0.0.1:{port}\n}}\n[domain_realm]\nlocalhost = {REALM}\n"
    )
    (folder / "kdc.conf").write_text(
        f"[kdcdefaults]\nkdc_ports = {port}\nkdc_tcp_ports = {port}\n[realms]\n{REALM} = {{\n"
        f"database_name = {folder}/principal\nkey_stash_file = {folder}/stash\nacl_file = {folder}/acl\n}}\n"
    )
    places = {"KRB5_CONFIG": "krb5.conf", "KRB5_KDC_PROFILE": "kdc.conf", "KRB5_KTNAME": "host.keytab"}
    for name, file in {**places, "KRB5CCNAME": "tickets"}.items():
        monkeypatch.setenv(name, str(folder / file))
    subprocess.run(["/usr/sbin/kdb5_util", "create", "-s", "-P", "4711"], check=True, capture_output=True)
    for who, keytab in (("root", "own.keytab"), ("host/localhost", "host.keytab")):
        for ask in (f"addprinc -randkey {who}", f"ktadd -k {folder}/{keytab} {who}"):
            subprocess.run([ADMIN, "-q", ask], check=True, capture_output=True)
    with subprocess.Popen([KDC, "-n"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as kdc:
        try:
            yield folder
        finally:
            kdc.terminate()


def ticket(realm: Path) -> None:
    ask = ["kinit", "-k", "-t", str(realm / "own.keytab"), "root"]
    until = time.monotonic() + 20
    while subprocess.run(ask, capture_output=True).returncode:
        assert time.monotonic() < until, "the KDC does not answer"
        time.sleep(0.1)


def outcome(transport: OpensshTransport | RoutedTransport, host: Host) -> Answer | UnreachedHost:
    try:
        (found,) = transport.run({host.name: sh("echo hi")}, 20)
        return found
    finally:
        transport.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="the ticket is of root")
@pytest.mark.parametrize("by", ["openssh", "auto"])
def test_a_ticket_of_kerberos_logs_in(by: str, realm: Path, tmp_path: Path) -> None:
    """The host takes no key of ours. Without a ticket it is not reached, and nobody is asked for one."""
    with sshd(tmp_path / "server", "GSSAPIAuthentication yes\nGSSAPIStrictAcceptorCheck no") as server:
        (tmp_path / "server/authorized").write_text("")
        file = config(tmp_path, server, "GSSAPIAuthentication yes")
        (tmp_path / "known_hosts").write_text(server.known("localhost") + "\n")
        host = Host("box", "localhost", port=server.port)
        settings = SshSettings(config_file=file)

        def way() -> OpensshTransport | RoutedTransport:
            return (
                OpensshTransport([host], settings)
                if by == "openssh"
                else RoutedTransport([host], settings, by)
            )

        without = outcome(way(), host)
        assert isinstance(without, UnreachedHost)
        assert by == "openssh" or "kinit" in without.remedy
        ticket(realm)
        through = way()
        got = outcome(through, host)
        assert isinstance(got, Answer), got
        assert got.stdout.startswith(b"hi\n")
        if by == "auto":
            assert "GSSAPIAuthentication" in " ".join(through.warnings)
        assert "Authorized to root, krb5 principal" in server.log.read_text()


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A token with a key that never leaves it, in an agent that was told its PIN; yields the public key."""
    if not (TOKEN.exists() and shutil.which("softhsm2-util")):
        pytest.skip("needs softhsm2")
    (tmp_path / "tokens").mkdir()
    (tmp_path / "softhsm2.conf").write_text(f"directories.tokendir = {tmp_path}/tokens\n")
    monkeypatch.setenv("SOFTHSM2_CONF", str(tmp_path / "softhsm2.conf"))
    pins = ["--pin", PIN, "--so-pin", PIN]
    made = ["softhsm2-util", "--init-token", "--free", "--label", "lab", *pins]
    subprocess.run(made, check=True, capture_output=True)
    key = tmp_path / "imported"
    made = ["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-m", "PKCS8", "-N", "", "-f", str(key)]
    subprocess.run(made, check=True)
    put = [
        "softhsm2-util",
        "--import",
        str(key),
        "--token",
        "lab",
        "--label",
        "own",
        "--id",
        "01",
        "--pin",
        PIN,
    ]
    subprocess.run(put, check=True, capture_output=True)
    key.unlink()
    told = tmp_path / "pin"
    told.write_text(f"#!/bin/sh\necho {PIN}\n")
    told.chmod(0o700)
    agent = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(agent)], stdout=subprocess.DEVNULL) as running:
        try:
            monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
            asks = {**os.environ, "SSH_ASKPASS": str(told), "SSH_ASKPASS_REQUIRE": "force"}
            until = time.monotonic() + 10
            while subprocess.run(["ssh-add", "-s", str(TOKEN)], env=asks, capture_output=True).returncode:
                assert time.monotonic() < until, "the agent does not take the token"
                time.sleep(0.1)
            yield public(key)
        finally:
            running.terminate()


@pytest.mark.parametrize("by", ["openssh", "auto", "ssh"])
def test_a_key_in_a_token_logs_in(by: str, token: str, tmp_path: Path, server: Sshd) -> None:
    """The agent knows the PIN; doctor asks for none."""
    authorized = server.key.with_name("authorized")
    before = authorized.read_text()
    file = config(tmp_path, server, f"PKCS11Provider {TOKEN}", key=None, agent=True)
    host, settings = server.host(), SshSettings(config_file=file)

    def way() -> OpensshTransport | RoutedTransport:
        return (
            OpensshTransport([host], settings) if by == "openssh" else RoutedTransport([host], settings, by)
        )

    assert isinstance(outcome(way(), host), UnreachedHost)
    try:
        authorized.write_text(token + "\n")
        got = outcome(way(), host)
    finally:
        authorized.write_text(before)
    assert isinstance(got, Answer), got

"""Hosts of the lab that only other hosts of it may log in to."""

from collections.abc import Sequence

from tests.lab import Lab

LOGS_IN = """
umask 077
mkdir -p /root/.ssh
printf %s "$1" >/root/.ssh/id_ed25519
printf %s "$2" >/root/.ssh/known_hosts
"""
CLOSED = """
table inet gate {
  chain input {
    type filter hook input priority 0
    ip saddr 198.18.0.1 tcp dport 22 drop
  }
}
"""


def behind_gateways(lab: Lab, hosts: Sequence[str], gateways: Sequence[str]) -> None:
    key, known = lab.identity.read_text(), lab.known_hosts.read_text()
    for name in gateways:
        lab[name].do(LOGS_IN, key, known)
    for name in hosts:
        lab[name].nft(CLOSED)

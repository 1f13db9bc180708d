"""Every remedy that mends a fault is typed as it is printed, and then the fault is gone.

Remedies that use other tools are proved elsewhere: firewalls in test_firewall.py, NPUs in
test_npu_address.py. Remedies that need a new login, a restart or a decision are not marked as mending.
"""

from collections.abc import Callable, Mapping

from doctor.judge.playbook import load_remedies
from tests.lab import Host, Lab
from tests.support.faults import Examiner, apply_remedy, assert_healthy


def wrong_neighbour(host: Host) -> None:
    host.do("ip neigh replace 198.18.0.11 lladdr 02:00:00:00:00:99 nud permanent dev eth0")


FAULTS: Mapping[str, Mapping[str, Callable[[Host], object]]] = {
    "node1": {
        "raise-somaxconn": lambda host: host.sysctl("net.core.somaxconn", 4),
        "raise-syn-backlog": lambda host: host.sysctl("net.ipv4.tcp_max_syn_backlog", 4),
        "reserve-ports": lambda host: host.sysctl("net.ipv4.ip_local_port_range", "20000 60999"),
    },
    "node2": {
        "grow-shm": lambda host: host.shm("64m"),
        "set-mtu": lambda host: host.mtu(1400),
    },
    "node3": {
        "own-name-in-hosts": lambda host: host.names({"node3": "127.0.1.1"}),
        "name-in-hosts": lambda host: host.names({"node4": "198.18.0.99"}),
        "forget-neighbour": wrong_neighbour,
    },
    "node4": {
        "widen-port-range": lambda host: host.sysctl("net.ipv4.ip_local_port_range", "60990 60999"),
        "grow-arp-table": lambda host: host.sysctl("net.ipv4.neigh.default.gc_thresh3", 3),
    },
}
"""Host -> remedy -> the fault that it mends there."""


def test_what_mends_is_typed_and_mends(lab: Lab, examine: Examiner) -> None:
    for host, faults in FAULTS.items():
        for inject in faults.values():
            inject(lab[host])
    outcome = examine()
    found = {
        (host, each["remedy"]["id"]): each
        for each in outcome.trouble
        if each["remedy"]
        for host in each["hosts"]
    }
    for host, faults in FAULTS.items():
        for remedy in faults:
            assert (host, remedy) in found, f"{remedy} on {host}; found: {[*found]}\n{outcome.text}"
    for each in outcome.trouble:
        if each["remedy"] and each["because"] is None:
            apply_remedy(lab, each)
    assert_healthy(examine())


def test_every_remedy_that_mends_is_among_them() -> None:
    mending = {name for name, recipe in load_remedies().recipes.items() if recipe.mends}
    assert mending == {remedy for faults in FAULTS.values() for remedy in faults}

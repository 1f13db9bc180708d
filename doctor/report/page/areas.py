"""The areas of a report, and which check belongs to which area."""

from fnmatch import fnmatchcase
from functools import cache

from doctor.devices import VENDORS

AREAS = (
    "reach",
    "devices",
    "device network",
    "ports",
    "memory",
    "firewall",
    "network",
    "software",
    "training",
)
"""In display order."""
OTHER = "other"
"""The area of checks that are not bundled."""

_GLOBS = (
    ("reach", ("host-*", "hostname-*", "names-disagree", "probe-incomplete", "clock-*")),
    ("device network", ("device-ip-*", "device-link-*", "device-net-*", "device-tls-*", "device-netmask-*")),
    ("device network", ("device-speed-*", "device-gateway-*", "device-detect-*", "device-no-lldp")),
    ("device network", ("device-unreachable", "device-optical", "nvlink-*", "fabric-*", "ib-*")),
    ("devices", ("devices-*", *(f"{vendor.prefix}*" for vendor in VENDORS))),
    ("ports", ("somaxconn-*", "syn-backlog-*", "ports-*", "ephemeral-*", "port-in-use")),
    (
        "memory",
        ("shm-*", "memory-*", "swap-*", "disk-*", "folder-*", "tmp-*", "nofile-*", "nproc-*", "memlock-*"),
    ),
    ("memory", ("address-space-*", "file-size-*", "group-*")),
    ("firewall", ("firewall-*",)),
    ("network", ("port-unreachable", "data-address-*", "interface-*", "route-*", "neighbour-*")),
    ("network", ("arp-*", "large-packets-*", "mtu-*", "link-*", "nic-*", "loopback-*", "rule-*", "mac-*")),
    ("software", ("python-*", "preload-*", "time-zone-*", "kernel-*", "stuck-*", "cpu-*", "numa-*")),
    ("software", ("version-*", "changed-since-*", "env-*", "torch-*")),
    ("training", ("smoke-*", "accept-*", "launch-*", "master-*", "plan-*", "rank-table-*")),
)
"""An area, and the checks that belong to it; the first match counts."""


@cache
def area_of(check_id: str) -> str:
    fitting = (area for area, globs in _GLOBS for glob in globs if fnmatchcase(check_id, glob))
    return next(fitting, OTHER)

"""The vendors of accelerators: how their devices are named and which backend they use.

The rows, in devices.txt, are the only place that tells vendors apart by name. Everything that depends on the
vendor reads its row; `docs/adding-a-vendor.md` lists what else a new one needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal, get_args, get_origin

import msgspec

from doctor.model import Backend
from doctor.text.grouped import grouped
from doctor.text.hostprogram import table


@dataclass(frozen=True, slots=True, eq=False)
class Vendor:
    """One vendor. `where` and `node_files` hold shell patterns, as do the keys of `versions`; the other
    patterns are regular expressions."""

    name: str
    product: str
    """What a report calls a host with these devices, if `products` has no better word."""
    thing: str
    """What one of its devices is called."""
    backend: Backend
    files: str
    """A device file is this prefix and a number."""
    where: tuple[str, ...]
    """Its tools have something to examine if one of these files exists."""
    tool_seconds: int
    """How much of the probe's time its main tool may take, in seconds."""
    on_bus: str
    """Vendor and device on the PCI bus, followed by base class and subclass if they are known."""
    driver: str
    """This file exists if the driver is loaded."""
    visible: tuple[str, ...]
    """Variables that choose devices. The vendor's runtime honours all of them."""
    variables: str
    """The variables of its libraries that matter to a job."""
    seen_twice: Literal["none", "once", "end"]
    """What its runtime takes if `visible` names a device twice: none, that one once, or no further ones."""
    launch_needs: str
    """What in a launch script does not work without its devices."""
    kernel_log: str
    """What its driver logs when a device is faulty, for grep -E and Python."""
    prefix: str
    """The prefix of the ids of its own checks."""
    sick: tuple[str, ...]
    """The checks that find a faulty device; their findings explain what a smoke run sees."""
    busy: str
    """The check that finds a device in use."""
    launch_hints: str = ""
    """What in a launch script is written for its devices, and does no harm without them."""
    screens: str = ""
    """Like `on_bus`: devices that may only drive a screen."""
    asked_with_driver: bool = False
    """Its tool is called only if the driver is loaded."""
    log_check: str = ""
    """The check that judges what its driver logs; kernel-log does if there is none."""
    empty_hides: bool = False
    """Whether an empty variable of `visible` leaves no device."""
    blank_ends: bool = False
    """Whether its runtime reads no further than a blank."""
    also_visible: tuple[str, ...] = ()
    """Variables of other programs that choose devices."""
    given: tuple[str, ...] = ()
    """Variables that tell a runtime which devices a container is given: device plugins set them."""
    products: Mapping[str, str] = field(default_factory=dict)
    servers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Product -> the possible numbers of devices in a server with it, fewest first."""
    replaces: tuple[Backend, ...] = ()
    """Backends that launches for its devices name too: its software puts its own in their place."""
    torch: str = ""
    """The name of its software in torch's version.py."""
    driver_version: str = ""
    """The pattern that finds the version in the file `driver`."""
    node_files: str = ""
    """The files of its devices in sysfs, if devices of other vendors have the same device files."""
    node: str = ""
    """The pattern that finds the number of the device file in one of `node_files`."""
    versions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """File -> the component, and the pattern that finds its version in the file."""


def _vendor(rows: Sequence[str]) -> Vendor:
    told = grouped((name, value) for name, value in (row.split(": ", 1) for row in rows if row[0] != "#"))
    kinds = {field.name: field.type for field in fields(Vendor)}
    return msgspec.convert({name: _value(kinds[name], of) for name, of in told.items()}, Vendor, strict=False)


def _value(kind: object, given: Sequence[str]) -> object:
    if get_origin(kind) is not Mapping:
        return given if get_origin(kind) is tuple else given[0]
    rows = dict(each.split(" ", 1) for each in given)
    several = get_origin(get_args(kind)[1]) is tuple
    return {key: value.split(" ", 1) for key, value in rows.items()} if several else rows


VENDORS = tuple(_vendor(rows[1:]) for rows in table(__file__, "devices.txt"))
"""If a host has devices of several vendors, the first one is the job's."""
ASCEND, NVIDIA, AMD = VENDORS

EVERY_VISIBLE = tuple(
    dict.fromkeys(name for vendor in VENDORS for name in (*vendor.visible, *vendor.also_visible))
)


def every(name: str) -> tuple[str, ...]:
    """All non-empty values of this field in the rows; a value is one text or several."""
    found = (getattr(vendor, name) for vendor in VENDORS)
    return tuple(text for own in found for text in ((own,) if isinstance(own, str) else own) if text)

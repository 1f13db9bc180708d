"""Which form a file has: its lists tell, and the version it states must agree."""

from __future__ import annotations

from doctor.job.ranktable.fields import Fields, Node
from doctor.job.ranktable.groups import LAB_KEYS
from doctor.job.ranktable.model import Form
from doctor.model import Severity
from doctor.text.textfile import shown

_LISTS: dict[str, tuple[Form, ...]] = {
    "server_list": ("1.0", "1.2"),
    "rank_list": ("2.0",),
    "group_list": ("group-list", "board-id"),
}
_HETEROGENEOUS = "1.1"
_TOPOLOGY = ("peer_list", "edge_list")
_VERSIONS = '"1.0", "1.2" or "2.0"'


def form_of(fields: Fields, root: Node) -> Form | None:
    version = _version(fields, root)
    if any(key in root for key in _TOPOLOGY) and "rank_list" not in root:
        message = "is the topology file of a server (peer_list, edge_list), which the driver brings along"
        fields.complain(root, None, message, "a rank table, which lists ranks", "a topology file")
        return None
    if version == _HETEROGENEOUS:
        message = "version 1.1 is that of clusters with ranks on CPUs, which are not read here"
        fields.complain(root, "version", message, _VERSIONS)
        return None
    present = [key for key in _LISTS if key in root]
    if not present:
        fields.complain(root, None, "has no list of servers or ranks", "server_list or rank_list", "neither")
        return None
    return _agreed(fields, root, _LISTS[_wanted(version, present)], version)


def read_status(fields: Fields, root: Node, form: Form) -> str:
    status = fields.name(root, "status", needed=form != "2.0")
    if status is not None and status != "completed":
        waiting = (
            "; HCCL waits for half an hour that it becomes completed" if status == "initializing" else ""
        )
        fields.complain(root, "status", f"status is not completed{waiting}", '"completed"')
    return status or ""


def _wanted(version: str | None, present: list[str]) -> str:
    """The list that the version asks for, if it is there."""
    return next((key for key in present if version in _LISTS[key]), present[0])


def _agreed(fields: Fields, root: Node, forms: tuple[Form, ...], version: str | None) -> Form:
    if "group_list" in root and "group-list" in forms:
        if version is not None:
            message = "a table with group_list has no version"
            fields.complain(root, "version", message, "no version, or a server_list")
        return "board-id" if any(key in root for key in LAB_KEYS) else "group-list"
    for form in forms:
        if form == version:
            return form
    guessed: Form = "1.2" if forms[-1] == "1.2" and "super_pod_list" in root else forms[0]
    if "version" not in root:
        fields.complain(root, None, "version is missing", f'"version": "{guessed}"', 'no "version"')
    elif version is not None:
        expected = " or ".join(f'"{form}"' for form in forms)
        unknown = "is not the one for such lists" if version in ("1.0", "1.2", "2.0") else "is not known"
        fields.complain(root, "version", f"version {shown(version)} {unknown}", expected)
    return guessed


def _version(fields: Fields, root: Node) -> str | None:
    value = root.members.get("version")
    if isinstance(value, float):
        fields.complain(root, "version", "version has no quotes", _VERSIONS, severity=Severity.WARN)
        return str(value)
    return fields.name(root, "version", needed=False) if "version" in root else None

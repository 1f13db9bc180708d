"""Shipped files do not name the machine on which they were made."""

import gzip
import re

from tests.lab.record import without_names
from tests.support.paths import ROOT

SHIPPED = [
    path
    for folder in ("doctor", "checks", "playbooks", "examples")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.is_file() and "__pycache__" not in path.parts
]
OF_A_MACHINE = re.compile(
    r"/(?:root|work|builds)/[^\s\"'\\]*"
    r"|/home/(?!me\b|user\b)\w[^\s\"'\\]*"
    r"|/tmp/cluster-doctor-lab-[^\s\"'\\]*"
    r"|/proc/\d+/cgroup:\d+:[^:\\]*:/(?=[^\\])[^\\]+"
    r"|/boot_id:(?!00000000-)[0-9a-f-]{36}"
    r"|machine-id:[0-9a-f]{32}"
    r"|(?<![0-9a-f])(?!0{32})[0-9a-f]{32}(?![0-9a-f])"
)
"""Folders, and names of a machine: those of control groups, boot ids, installations."""


def test_no_shipped_file_names_the_machine_that_made_it() -> None:
    found: dict[str, list[str]] = {}
    for path in SHIPPED:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")
        if names := sorted({each[0] for each in OF_A_MACHINE.finditer(text)}):
            found[str(path.relative_to(ROOT))] = names
    assert found == {}


def test_a_recording_loses_the_names_of_its_machine() -> None:
    one, other = "87707483-2886-4294-b80a-8697d64be11e", "0c9a6c1e-7c1f-4a3d-9b60-1d2f0a6f1c55"
    said = [f"/proc/sys/kernel/random/boot_id:{boot}\\n" for boot in (one, one, other)]
    said += ["/proc/1/cgroup:4:memory:/kubepods/18744d1657676c46\\n/proc/1/cgroup:0::/\\n"]
    assert without_names("".join(said)) == (
        "/proc/sys/kernel/random/boot_id:00000000-0000-4000-8000-000000000001\\n"
        * 2
        + "/proc/sys/kernel/random/boot_id:00000000-0000-4000-8000-000000000002\\n"
        "/proc/1/cgroup:4:memory:/\\n/proc/1/cgroup:0::/\\n"
    )

"""A vendor is one row: rows are complete, no other code distinguishes vendors, and the guide names every
file.
"""

import ast
import re
from pathlib import Path

import pytest

from doctor.devices import AMD, EVERY_VISIBLE, NVIDIA, VENDORS, Vendor
from doctor.facts.processes import WORTH_READING
from doctor.job.launch.variables import is_kept, is_setting
from doctor.judge.registry import find_checks
from tests.support.cases import cases
from tests.support.paths import ROOT

PAGE = (ROOT / "docs/adding-a-vendor.md").read_text()
LISTED = re.findall(r"^\|[^|]*\| `([^`]+)` \|", PAGE, re.MULTILINE)
OF_AMD = re.compile(r"\b(amd|rocm|rccl|hip)\b|amd-smi|amdgpu", re.IGNORECASE)
CHECKS = {check.id: check for check in find_checks().checks}
each_vendor = pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)


def sources() -> list[Path]:
    kinds = ("doctor/**/*.py", "doctor/**/*.txt", "checks/*.py", "playbooks/**/*.yaml")
    found = [path for kind in kinds for path in ROOT.glob(kind)]
    return [path for path in found if "_bundled" not in path.parts]


def test_the_guide_names_every_file_that_speaks_of_amd() -> None:
    speak = {str(path.relative_to(ROOT)) for path in sources() if OF_AMD.search(path.read_text())}
    assert speak <= set(LISTED)


@pytest.mark.parametrize("name", LISTED)
def test_the_files_of_the_guide_speak_of_amd(name: str) -> None:
    assert OF_AMD.search((ROOT / name).read_text())


ROWS = {vendor.name.upper() for vendor in VENDORS}
WORDS = {word for vendor in VENDORS for word in (vendor.name, vendor.product)}
VENDOR = re.compile(rf"""\b(?:{"|".join(ROWS)})\b|["'](?:{"|".join(WORDS)})["']""")


def compared(tree: ast.AST) -> list[str]:
    """The values that are compared with a vendor: its row, its name or its product."""
    compares = (node for node in ast.walk(tree) if isinstance(node, ast.Compare))
    sides = [side for node in compares for side in (node.left, *node.comparators)]
    return [
        ast.unparse(side)
        for side in sides
        if (isinstance(side, ast.Name) and side.id in ROWS)
        or (isinstance(side, ast.Constant) and side.value in WORDS)
    ]


def test_no_file_compares_vendors() -> None:
    files = [path for path in sources() if path.suffix == ".py" and path.name != "devices.py"]
    texts = {path.name: text for path in files if VENDOR.search(text := path.read_text())}
    assert {name: found for name, text in texts.items() if (found := compared(ast.parse(text)))} == {}
    assert compared(ast.parse("x is NVIDIA or y == 'amd'")) == ["NVIDIA", "'amd'"]


@each_vendor
def test_the_checks_of_a_row_exist(vendor: Vendor) -> None:
    ids = {
        f"{vendor.prefix}missing",
        vendor.busy,
        *vendor.sick,
        *([vendor.log_check] * bool(vendor.log_check)),
    }
    assert ids <= CHECKS.keys()
    assert all(vendor.backend in CHECKS[id].backends for id in ids)


@each_vendor
def test_kernel_log_lines_of_a_row_are_read(vendor: Vendor) -> None:
    assert vendor.kernel_log in WORTH_READING


@pytest.mark.parametrize("name", EVERY_VISIBLE)
def test_variables_that_choose_devices_reach_the_ranks(name: str) -> None:
    assert is_kept(name)
    assert is_setting(name)


@cases
def test_one_list_of_variables_for_all(name: str, kept: bool, for_ranks: bool) -> None:
    assert (is_kept(name), is_setting(name)) == (kept, for_ranks)


def test_checks_of_a_vendor_are_for_its_jobs() -> None:
    for id, check in CHECKS.items():
        for vendor in (AMD, NVIDIA):
            if id.startswith(vendor.prefix):
                assert check.vendor is vendor, id

"""Suggested commands fit the host: they never use a tool of a vendor whose devices it lacks."""

import re

import pytest

from doctor.devices import VENDORS
from doctor.judge.playbook import Recipe, load_remedies, placeholders
from doctor.judge.registry import find_checks
from doctor.text.yamlfile import plain, read_yaml
from tests.support.cases import from_cases
from tests.support.each import each
from tests.support.paths import ROOT

TOOLS = from_cases(__file__, "TOOLS", dict[str, str])
OWN = {"amd.yaml": "AMD", "gpus.yaml": "NVIDIA", "devices.yaml": "Ascend"}
"""The vendors whose remedies a file holds; all other remedies are for any host."""
OF_ONE = {"prepare-torch-npu": "Ascend"}
"""Further remedies that only a check of hosts with such devices names."""
KINDS = ((), ("NVIDIA",), ("AMD",), ("Ascend",))
FILES = {
    name: path.name
    for path in sorted((ROOT / "playbooks" / "remedies").glob("*.yaml"))
    for name in plain(read_yaml(path).root)
}
PLAYBOOK = load_remedies()


def of_others(commands: tuple[str, ...], vendors: tuple[str, ...]) -> list[str]:
    """The commands with a tool of another vendor."""
    strange = [form for vendor, form in TOOLS.items() if vendor not in vendors]
    return [command for command in commands if any(re.search(form, command) for form in strange)]


def vendor_of(name: str) -> str | None:
    return OF_ONE.get(name) or OWN.get(FILES[name])


def test_the_tools_of_every_vendor_are_known() -> None:
    assert TOOLS.keys() == {vendor.name for vendor in VENDORS}
    for name in PLAYBOOK.recipes:
        assert name in FILES
    for vendor in TOOLS:  # each pattern must match a command of its own vendor
        said = [c for name, r in PLAYBOOK.recipes.items() if vendor_of(name) == vendor for c in r.commands]
        assert any(re.search(TOOLS[vendor], command) for command in said)


@pytest.mark.parametrize("vendors", KINDS, ids=lambda kind: "".join(kind) or "cpu")
@each("name", PLAYBOOK.recipes)
def test_a_remedy_has_no_tool_of_devices_that_are_not_there(name: str, vendors: tuple[str, ...]) -> None:
    own = vendor_of(name)
    if own is not None and own not in vendors:
        vendors = (own,)  # it is only shown on its own kind of host, as the next test ensures
    recipe = PLAYBOOK.recipes[name]
    holes = {hole: "VALUE" for command in recipe.on(tuple(TOOLS)) for hole in placeholders(command)}
    remedy = PLAYBOOK.fill(name, holes, vendors)
    assert remedy is not None
    assert of_others(remedy.commands, vendors) == []


def test_remedies_of_one_vendor_are_named_by_its_checks_alone() -> None:
    checks = {check.id: check for check in find_checks().checks}
    assert checks["torch-npu-unusable"].remedy == "prepare-torch-npu"
    for check in checks.values():
        own = vendor_of(check.remedy) if check.remedy else None
        if own is None or check.remedy == "look-at-ib-port" or check.id == "torch-npu-unusable":
            continue
        backend = next(vendor.backend for vendor in VENDORS if vendor.name == own)
        allowed = check.vendor.name == own if check.vendor else backend in check.backends
        assert allowed or check.id in ("gpu-missing",), f"{check.id} may name {check.remedy} on other hosts"


def test_checks_write_no_tool_of_a_vendor_into_commands_for_all() -> None:
    """These are the commands that checks for any host write themselves."""
    own = ("npu", "gpu", "amd", "infiniband")
    files = [path for path in sorted(ROOT.glob("checks/*.py")) if not path.stem.startswith(own)]
    assert len(files) > 15
    for path in files:
        for commands in re.findall(r"commands=\(?(.*?)\)?,\n", path.read_text(), re.DOTALL):
            assert of_others((commands,), ()) == [], path


def test_a_line_for_one_vendor_comes_where_its_devices_are() -> None:
    recipe = PLAYBOOK.recipes["test-hardware"]
    assert any("dcgmi" in command for command in recipe.on(("NVIDIA",)))
    assert not any("dcgmi" in command for command in (*recipe.on(()), *recipe.on(("AMD", "Ascend"))))
    assert Recipe("x", ("a",), devices={"Ascend": ("b",)}).on(("Ascend", "AMD")) == ("a", "b")


FOR_NOW = re.compile(r"remount,|ip link set .* mtu|sysctl -w|swapoff|nft insert|iptables .*-I ")
FOR_GOOD = re.compile(r"/etc/|nmcli connection modify")


@each("name", PLAYBOOK.recipes)
def test_what_is_gone_at_the_next_boot_says_what_makes_it_last(name: str) -> None:
    commands = PLAYBOOK.recipes[name].commands
    if any(FOR_NOW.search(command) for command in commands):
        assert any(FOR_GOOD.search(command) for command in commands)


def test_limits_of_logins_say_what_helps_if_sshd_reads_no_limits() -> None:
    for name in ("raise-nofile", "raise-nproc", "raise-memlock"):
        (line,) = [each for each in PLAYBOOK.recipes[name].commands if "UsePAM" in each]
        assert f"Limit{name.removeprefix('raise-').upper()}=" in line

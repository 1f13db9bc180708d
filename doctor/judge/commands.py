"""Fits the commands of findings to this run, if its recording says how the hosts were reached."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from doctor.errors import UsageError
from doctor.facts.ascend.hccn_tool import split_known
from doctor.facts.ascend.network import NPU_ADDRESSES, NPU_GATEWAYS, Address
from doctor.judge.engine import Facts
from doctor.judge.playbook import matches
from doctor.model import Confidence, Finding, Host, Remedy
from doctor.recording import Recording
from doctor.rules.devices import HostDevice
from doctor.rules.npu_free_address import free_addresses
from doctor.text.interpreter import PLAIN
from doctor.text.nodeset import check_jump, unfold
from doctor.transport.advice import is_login, passes
from doctor.transport.way import Typed, Way, reaches_hosts

COMMENT = "    # "
JOB = ("--backend", "--ranks-per-host", "--master-port")
"""Options about the job that are also valid for a part of its hosts."""
SSH = {"--ssh-config": "-F", "--port": "-p", "--identity": "-i", "--jump": "-J"}
"""Our option -> the option of ssh with the same meaning."""
NO_PYTHON = ("--python", PLAIN)
"""Left out of commands, because doctor finds this interpreter by itself."""
ADDRESSED = ("device-ip-missing", "device-ip-duplicate")
"""Checks whose findings name devices that need another address."""


@dataclass(frozen=True)
class LastRun:
    """The run that made the findings."""

    command: str
    exam: str
    checks: frozenset[str]
    hosts: tuple[Host, ...]
    way: Way

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts)

    @cached_property
    def by_name(self) -> Mapping[str, Host]:
        return {host.name: host for host in self.hosts}


def fitting(
    found: Sequence[Finding], recording: Recording, exam: str, checks: Iterable[str], facts: Facts
) -> tuple[Finding, ...]:
    """The findings with commands that fit the run."""
    if recording.way is None:
        return tuple(found)
    run = LastRun(recording.command, exam, frozenset(checks), recording.hosts, recording.way)
    free = _free(found, run, facts)
    return tuple(_fit_finding(finding, run, free) for finding in found)


def _fit_finding(finding: Finding, run: LastRun, free: Mapping[HostDevice, Address]) -> Finding:
    if finding.remedy is None:
        return finding
    commands = [new for old in finding.remedy.commands if (new := _fit_command(old, run)) is not None]
    if _lacks_addresses(finding):
        commands += _addresses(finding, free)
    real = [command for command in commands if not command.startswith("#")]
    kept = tuple(commands) if real or len(commands) == len(finding.remedy.commands) else ()
    return replace(finding, remedy=Remedy(finding.remedy.id, kept) if kept else None)


def _fit_command(command: str, run: LastRun) -> str | None:
    """The same command with the options that reach the hosts; None if it was just executed."""
    line, mark, comment = command.partition(COMMENT)
    if not line.startswith(("doctor ", "ssh ")):
        return command
    try:
        words = shlex.split(line)
    except ValueError:
        return command
    made = _ssh(words, run) if words[0] == "ssh" else _doctor(words, run)
    return None if made == "" else f"{made or line}{mark}{comment}"


def _doctor(words: Sequence[str], run: LastRun) -> str | None:
    """The command with fitting options; empty if it was just executed, None if it reaches no host."""
    at = 3 if words[1] == "ranktable" else 2
    command = " ".join(words[1:at])
    if not reaches_hosts(command):
        return None
    sets = [*takewhile(lambda word: not word.startswith("-"), words[at:])]
    try:
        hosts: Sequence[str] = [name for text in sets for name in unfold(text)] or run.names
    except UsageError:
        return None
    options = pairs(words[at + len(sets) :])
    whole = hosts is run.names or (len(hosts) >= len(run.names) and run.by_name.keys() == {*hosts})
    if whole and _just_made(command, options, run):
        return ""
    given = {option[0] for option in options}
    own = tuple(o for o in run.way.asked if o[0] in JOB and o[0] not in given and command != "ranktable make")
    order = run.names if whole else hosts
    return run.way.typed(command, order, (*(o for o in options if o != NO_PYTHON), *own), whole=whole)


def pairs(words: Iterable[str]) -> tuple[Typed, ...]:
    """Options with their values."""
    found: list[Typed] = []
    for word in words:
        if word.startswith("-") or not found:
            found.append((word,))
        else:
            found[-1] = (*found[-1], word)
    return tuple(found)


def _just_made(command: str, options: Sequence[Typed], run: LastRun) -> bool:
    """Whether this run has just done the same, or more."""
    if _names_another_python(options, run):
        return False
    asked = [option for option in options if option[0] not in ("--python", *JOB)]
    if command == "smoke":
        return run.command in ("smoke", "preflight") and not asked
    if command != "check" or run.command not in ("check", "preflight", "smoke"):
        return False
    return all(_is_covered(option, run) for option in asked) and bool(asked or run.command != "smoke")


def _names_another_python(options: Sequence[Typed], run: LastRun) -> bool:
    said = [option for option in run.way.reached if option[0] == "--python"]
    named = [option for option in options if option[0] == "--python" and option != NO_PYTHON]
    return bool(said) and any(option not in said for option in named)


def _is_covered(option: Typed, run: LastRun) -> bool:
    name, *value = option
    if name == "--only":
        return all(any(matches(id, [glob]) for id in run.checks) for glob in value[0].split(","))
    if name == "--expect":
        return value == ["torch=any"] and run.command != "check" and "torch-missing" in run.checks
    return name == "--exam" and value == [run.exam]


def _ssh(words: Sequence[str], run: LastRun) -> str | None:
    """ssh to a host of the run, with the options that reach it."""
    host = run.by_name.get(words[1]) if len(words) > 1 else None
    if host is None:
        return None
    own = {"--port": str(host.port) if host.port else None, "--jump": host.jump}
    given = {**dict(o for o in run.way.reached if len(o) == 2), **{k: v for k, v in own.items() if v}}
    keys = [option[1] for option in run.way.reached if option[0] == "--identity"]
    values = {**{long: [value] for long, value in given.items()}, **({"--identity": keys} if keys else {})}
    options = [w for long, short in SSH.items() for value in values.get(long, ()) for w in (short, value)]
    user = host.user or given.get("--user")
    login = f"{user}@{host.address}" if user else host.address
    if not is_login(login) or (host.jump and not passes(check_jump, host.jump)):
        return None
    return shlex.join(["ssh", *options, login, *words[2:]])


def _lacks_addresses(finding: Finding) -> bool:
    return finding.check in ADDRESSED and finding.confidence is not Confidence.SUSPECT


def _seats(finding: Finding) -> list[HostDevice]:
    places = ((place.host, place.device) for place in finding.where)
    return [(host, device) for host, device in places if host is not None and device is not None]


def _free(found: Sequence[Finding], run: LastRun, facts: Facts) -> dict[HostDevice, Address]:
    """Each device that needs an address -> a free address of its rail, a different one for each device."""
    lost = dict.fromkeys(seat for each in found if _lacks_addresses(each) for seat in _seats(each))
    if not lost:
        return {}
    held = {}
    for host in facts.hosts:
        known = split_known(facts.known(host, NPU_ADDRESSES, {}))[0]
        held.update({(host, device): address for device, address in known.items() if address})
    kept = {seat: address for seat, address in held.items() if seat not in lost}
    told = [facts.known(host, NPU_GATEWAYS, {}).values() for host in facts.hosts]
    gateways = {value for own in told for value in own if isinstance(value, str)}
    return free_addresses([*lost], kept, run.names, gateways)


def _addresses(finding: Finding, free: Mapping[HostDevice, Address]) -> Iterator[str]:
    seats = [seat for seat in _seats(finding) if seat in free]
    if seats:
        yield "# Free by the addresses of the devices examined; compare it with the plan of the network:"
    for host, device in seats:
        where = f"{COMMENT}on {host}" if len(finding.hosts) > 1 else ""
        address = free[host, device]
        yield f"sudo hccn_tool -i {device} -ip -s address {address.ip} netmask {address.netmask}{where}"

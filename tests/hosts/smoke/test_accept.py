"""`doctor accept` and `--baseline` on real hosts: the culprit is named, with the direction that is slow, and
what has changed.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.checks.test_groups import held
from tests.lab import Lab, missing

OURS = (
    *("accept-slow-link", "accept-slow-collective", "accept-slow-host", "smoke-slow-link"),
    *("smoke-slower-than-baseline", "changed-since-baseline"),
)
OTHER_BITS = ("smoke-corruption", "smoke-desync")
"""What names a host that does not compute the same bits."""
NAMES = "node[1-4]"
RATE = "200mbit"
TBF = "root tbf rate {} burst 64kb latency 50ms"


@pytest.fixture(scope="module")
def field() -> Iterator[Lab]:
    if reason := missing():
        pytest.skip(reason)
    with Lab(4) as lab:
        yield lab


def accept(
    lab: Lab, folder: Path, *more: str, names: str = NAMES, also: tuple[str, ...] = ()
) -> tuple[int, list[dict[str, Any]]]:
    """The exit code, and the findings about links, hosts and the baseline; every host is left as it was, and
    the recording alone gives the same report. `also`: further checks that may name somebody.
    """
    report, page = folder / "report.json", folder / "page.md"
    recording = Path(more[more.index("--save") + 1]) if "--save" in more else folder / "recording.json"
    more = more if "--save" in more else (*more, "--save", str(recording))
    python = () if "--python" in more else ("--python", sys.executable)
    shape = (*python, "--ranks-per-host", "1", "--steps", "14")
    before = {host.name: host.snapshot() for host in lab}
    done = lab.doctor("accept", names, *shape, "--json", str(report), "--markdown", str(page), *more)
    assert report.exists(), done.stderr
    assert {host.name: host.snapshot() for host in lab} == before
    again = [str(folder / "again.json"), "--markdown", str(folder / "again.md")]
    lab.run([sys.executable, "-m", "doctor", "accept", "--replay", str(recording), "--json", *again])
    told, once_more = (json.loads((folder / name).read_bytes()) for name in ("report.json", "again.json"))
    assert {key for key in told if told[key] != once_more[key]} <= {"run", "summary"}
    numbers = [re.findall(r"\d+(?:\.\d+)?", path.read_text()) for path in (page, folder / "again.md")]
    assert not {*numbers[0]} - {*numbers[1]}, "every number of the page is in the recording"
    findings = told["findings"]
    ours = (*OURS, *also)
    assert not [f for f in findings if f["status"] in ("fail", "crash") and f["check"] not in ours], (
        done.stdout
    )
    return done.returncode, [f for f in findings if f["check"] in ours and f["status"] != "unknown"]


@pytest.mark.alone
def test_a_slow_sender_is_named_and_what_changed_since_the_baseline(field: Lab, tmp_path: Path) -> None:
    good, baseline, floor = (tmp_path / name for name in ("good.json", "good.yaml", "accept.yaml"))
    floor.write_text("floors: [pair >= 150 Mbit/s]")
    code, found = accept(field, tmp_path, "--save", str(good))
    assert (code in (0, 3), found) == (True, [])
    assert field.doctor("baseline", str(good), "--output", str(baseline)).returncode == 0
    field["node2"].slow_link("60mbit")
    field["node3"].do("sysctl -q -w net.core.somaxconn=4000")
    try:
        code, found = accept(field, tmp_path, "--baseline", str(baseline), "--floor", str(floor))
    finally:
        field.reset()
    told = {(f["check"], f["status"], *f["hosts"]): f["summary"] for f in found}
    assert code == 1
    assert re.match(r"what it sends arrives at [345]\d\b", told["accept-slow-link", "fail", "node2"])
    assert told["changed-since-baseline", "warn", "node3"].startswith("somaxconn: 4000; ")


@pytest.mark.alone
def test_of_two_hosts_at_once_the_slow_one_is_named_as_well(field: Lab, tmp_path: Path) -> None:
    """All pairs meet, and the command to verify it bounds the load, too."""
    for host in field:
        host.slow_link("50mbit" if host.name == "node3" else "200mbit")
    try:
        code, found = accept(field, tmp_path, "--hosts-at-once", "2", "--path", "/tmp")
    finally:
        field.reset()
    (told,) = (each for each in found if each["status"] == "fail")
    assert (code, told["check"], told["hosts"]) == (1, "accept-slow-link", ["node3"])
    page = (tmp_path / "page.md").read_text()
    assert re.search(r"doctor accept 'node\[1-4\]' .*--path /tmp --hosts-at-once 2", page), page
    (smoke,) = json.loads((tmp_path / "recording.json").read_bytes())["smoke"][:1]
    assert smoke["plan"]["pairs_at_once"] == 1
    met = {(rank["rank"], pair["peer"]) for rank in smoke["ranks"] for pair in rank["pairs"]}
    assert len(met) == 4 * 3
    assert {len(rank["pairs"]) for rank in smoke["ranks"]} == {7 * 3 * 2}


def test_two_hosts_without_a_floor_are_no_pass(field: Lab, tmp_path: Path) -> None:
    code, found = accept(field, tmp_path, names="node[1-2]")
    assert (code, found) == (3, [])
    (tmp_path / "accept.yaml").write_text("floors: [pair >= 1 Mbit/s]")
    code, found = accept(field, tmp_path, "--floor", str(tmp_path / "accept.yaml"), names="node[1-2]")
    assert (code, found) == (0, [])


@pytest.mark.alone
def test_a_collective_below_its_floor_is_named_and_a_healthy_one_is_not(field: Lab, tmp_path: Path) -> None:
    floor, recording = tmp_path / "accept.yaml", tmp_path / "run.json"
    floor.write_text("floors: [inter all_reduce 256KB >= 20 MB/s, all send_recv 64KB >= 20 MB/s]")
    given = ("--floor", str(floor), "--save", str(recording))
    healthy = accept(field, tmp_path, *given, names="node[1-2]")[1]
    assert [found for found in healthy if found["check"] == "accept-slow-collective"] == []
    field["node2"].slow_link("60mbit")
    try:
        code, found = accept(field, tmp_path, *given, names="node[1-2]")
    finally:
        field.reset()
    told = {f["subject"]: (f["hosts"], f["summary"]) for f in found if f["check"] == "accept-slow-collective"}
    assert (code, told["inter all_reduce 256KB"][0]) == (1, [])
    assert "at most; the floor is 20 MB/s" in told["inter all_reduce 256KB"][1]
    assert "all send_recv 64KB" in told
    report = json.loads((tmp_path / "report.json").read_bytes())
    timed = report["smoke"]["collectives"]
    rate = next(
        each["bus_bytes_per_second"] for each in timed if (each["op"], each["bytes"]) == ("all_reduce", 2**18)
    )
    assert 3e6 < rate < 7.6e6
    replay = ["accept", "--replay", str(recording), "--json", "-"]
    again = field.run([sys.executable, "-m", "doctor", *replay])
    assert json.loads(again.stdout)["smoke"]["collectives"] == timed


def switch(lab: Lab, *command: str, text: str = "") -> None:
    done = lab.run([*command], input=text)
    assert done.returncode == 0, (command, done.stderr)


@contextmanager
def even_links(lab: Lab) -> Iterator[None]:
    """Each host sends as fast as the others, slowly enough that processors are not what limits it."""
    for host in lab:
        host.do(f"tc qdisc add dev eth0 {TBF.format(RATE)}")
    try:
        yield
    finally:
        lab.reset()


@contextmanager
def lost_on_the_way_to(lab: Lab, name: str) -> Iterator[None]:
    """The switch loses 2 % of what goes to this host."""
    chain = "type filter hook forward priority 0; policy accept"
    lost = f'oifname "port{name[4:]}" numgen random mod 50 == 0 drop'
    switch(lab, "nft", "-f", "-", text=f"table bridge lossy {{\nchain way {{\n{chain}\n{lost}\n}}\n}}\n")
    try:
        yield
    finally:
        switch(lab, "nft", "delete", "table", "bridge", "lossy")


@contextmanager
def behind_another_switch(lab: Lab, names: Sequence[str], rate: str) -> Iterator[None]:
    """The link between the two switches carries so much."""
    for command in (
        "ip link add far type bridge stp_state 0 mcast_snooping 0",
        "ip link set far up",
        "ip link add up0 type veth peer name up1",
        "ip link set up0 master lan up",
        "ip link set up1 master far up",
        *(f"tc qdisc add dev {end} {TBF.format(rate)}" for end in ("up0", "up1")),
        *(f"ip link set port{name[4:]} master far" for name in names),
    ):
        switch(lab, *command.split())
    try:
        yield
    finally:
        for name in names:
            switch(lab, *f"ip link set port{name[4:]} master lan".split())
        switch(lab, *["ip", "link", "del", "up0"])
        switch(lab, *["ip", "link", "del", "far"])


@pytest.mark.alone
def test_a_lossy_link_and_a_quarter_of_a_processor_are_named(field: Lab, tmp_path: Path) -> None:
    """Links stay fast: what was lost is sent again at once. The other host is not trained on."""
    quota = held(field["node4"], "cpu", cpu__cfs_quota_us="25000")
    with even_links(field), lost_on_the_way_to(field, "node2"), quota:
        code, found = accept(field, tmp_path, also=("group-limited",))
    failed = {f["check"]: (f["hosts"], f["summary"]) for f in found if f["status"] == "fail"}
    assert (code, {check: hosts for check, (hosts, _) in failed.items()}) == (
        1,
        {"accept-slow-link": ["node2"], "group-limited": ["node4"]},
    )
    assert "of the TCP segments to it were sent again" in failed["accept-slow-link"][1]
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert [host["name"] for host in report["hosts"] if host["status"] == "faulty"] == ["node2", "node4"]


@pytest.mark.alone
def test_half_of_the_hosts_behind_a_slow_switch_are_two_sides(field: Lab, tmp_path: Path) -> None:
    """No host is accused: what is between them is slow."""
    with even_links(field), behind_another_switch(field, ("node3", "node4"), "100mbit"):
        code, found = accept(field, tmp_path)
    (told,) = (f for f in found if f["status"] == "fail")
    assert (code, told["check"], told["hosts"], told["subject"]) == (
        1,
        "accept-slow-link",
        [],
        "node[1-2] | node[3-4]",
    )
    assert told["summary"].startswith("links between two sides of the network carry ")
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert [host["name"] for host in report["hosts"] if host["status"] == "faulty"] == []


@contextmanager
def loop_disks(lab: Lab, folder: Path) -> Iterator[str]:
    """A disk of its own for each host, mounted at /scratch; the number of that of node2."""
    loops = []
    try:
        for host in lab:
            image, dev = folder / f"{host.name}.img", ""
            subprocess.run(["truncate", "-s", "600M", image], check=True)
            subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
            made = subprocess.run(
                ["losetup", "--show", "-f", "--direct-io=on", image],
                check=True,
                capture_output=True,
                text=True,
            )
            loops.append(dev := made.stdout.strip())
            number = os.stat(dev).st_rdev
            at = f"{os.major(number)} {os.minor(number)}"
            host.do(f"mkdir -p /scratch; [ -e {dev} ] || mknod {dev} b {at}; mount {dev} /scratch")
            if host.name == "node2":
                throttled = at.replace(" ", ":")
        yield throttled
    finally:
        lab.reset()
        for dev in loops:
            subprocess.run(["losetup", "-d", dev], check=True)


def throttle(disk: str, rate: int) -> None:
    """Of this device for everybody, in bytes a second; 0 ends it."""
    for way in ("read", "write"):
        Path(f"/sys/fs/cgroup/blkio/blkio.throttle.{way}_bps_device").write_text(f"{disk} {rate}")


@pytest.mark.alone
def test_a_slow_disk_and_slow_cores_are_named_and_sound_ones_are_not(field: Lab, tmp_path: Path) -> None:
    """A disk that is throttled, a processor whose library does without its vector units, and a folder that is
    closed, each on one host.
    """
    if not Path("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device").exists():
        pytest.skip("no blkio cgroup of version 1")
    floor, python = tmp_path / "accept.yaml", "/tmp/python"
    floor.write_text("floors: [host write /scratch >= 6 MB/s, host read /scratch >= 6 MB/s]")
    given = ("--floor", str(floor), "--path", "/scratch", "--python", python)
    script = f'#!/bin/sh\\n%s\\nexec {sys.executable} "$@"\\n'
    wrapper = f"printf '{script}' \"$1\" > {python}; chmod +x {python}"
    with loop_disks(field, tmp_path) as disk:
        for host in field:
            host.do(wrapper, "")
        _, found = accept(field, tmp_path, *given)
        assert [each for each in found if each["check"] == "accept-slow-host"] == []
        throttle(disk, 2_000_000)
        field["node3"].do(wrapper, "export MKL_ENABLE_INSTRUCTIONS=SSE4_2")
        field["node4"].do("mount -o remount,ro /scratch")
        try:
            code, found = accept(field, tmp_path, *given, also=OTHER_BITS)
        finally:
            throttle(disk, 0)
    told = {(*f["hosts"], f["subject"]): f["summary"] for f in found if f["check"] == "accept-slow-host"}
    intel = "GenuineIntel" in Path("/proc/cpuinfo").read_text()
    timed = json.loads((tmp_path / "report.json").read_bytes())["smoke"]["alone"]
    assert (code, *told) == (
        1,
        ("node4", "/scratch"),
        ("node2", "write /scratch"),
        ("node2", "read /scratch"),
        *([("node3", "matmul")] if intel else []),
    ), [each for each in timed if each["what"] == "matmul"]
    assert told["node4", "/scratch"] == "nothing can be stored in /scratch: Read-only file system"

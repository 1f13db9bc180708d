"""Files that a launch names by their paths: which are looked for, and whom a missing one accuses."""

from pathlib import Path

import pytest

from checks.launch_files import NEEDED_FILES
from doctor.api import Capture, UnreadableOutput
from doctor.facts.software import Environment
from tests.support.cases import cases
from tests.support.launches import a_plan, judged, read
from tests.support.paths import ROOT

TORCHRUN = "torchrun --nnodes=2 --node_rank=$1 --nproc_per_node=8 --master_addr=node1"


@cases
def test_which_paths_are_looked_for(text: str, needs: list[str], tmp_path: Path) -> None:
    assert list(read(tmp_path, text.replace("TORCHRUN", TORCHRUN)).needs) == needs


@cases
def test_which_interpreter_is_that_of_the_ranks(text: str, python: str, tmp_path: Path) -> None:
    """None is known if the script changes where programs or packages are found, or installs some."""
    assert (read(tmp_path, text.replace("TORCHRUN", TORCHRUN)).python or "") == python


@cases
def test_whom_a_file_accuses(path: str, states: list[str], told: list[str], tmp_path: Path) -> None:
    launch = read(tmp_path, f"cd /job\nsource /job/env.sh\n{TORCHRUN} /job/train.py --save /ckpt/a\n")
    looked = {f"node{n}": {path: state} for n, state in enumerate(states, 1)}
    found, _ = judged("launch-files-missing", [launch], a_plan(hosts=2), {"missing-files": looked})
    assert [
        f"{'warn' if each.severity else 'fail'} {', '.join(each.hosts)}: {each.actual}" for each in found
    ] == told


@pytest.mark.parametrize(
    ("lost", "kinds"),
    [
        (["/job/train.py"], ["fail"]),
        (["/job", "/job/env.sh", "/job/train.py"], ["warn"]),
    ],
)
def test_a_launch_is_for_hosts_that_have_another_path_of_it(
    lost: list[str], kinds: list[str], tmp_path: Path
) -> None:
    launch = read(tmp_path, f"cd /job\nsource /job/env.sh\n{TORCHRUN} /job/train.py\n")
    looked = {host: dict.fromkeys(lost, "missing") for host in ("node1", "node2")}
    found, _ = judged("launch-files-missing", [launch], a_plan(hosts=2), {"missing-files": looked})
    assert ["warn" if each.severity else "fail" for each in found] == kinds
    assert not any(each.hosts for each in found)


def test_a_missing_folder_hides_no_fault_of_what_is_in_it(tmp_path: Path) -> None:
    """A folder in which Python only searches is a warning, the program in it a fault; a file that nobody has
    accuses no host that has its folder.
    """
    program = read(tmp_path, f"export PYTHONPATH=/opt/job\n{TORCHRUN} /opt/job/train.py\n")
    folder = read(tmp_path, f"cd /opt/job\n{TORCHRUN} train.py\n")
    lost = dict.fromkeys(("/opt/job", "/opt/job/train.py"), "missing")
    for launch, on_first, told in (
        (program, {}, {("node2",): "fail"}),
        (folder, {}, {("node2",): "fail"}),
        (folder, {"/opt/job/train.py": "missing"}, {("node2",): "fail", (): "warn"}),
    ):
        looked = {"node1": {"/opt/job": "a folder", **on_first}, "node2": lost}
        found, _ = judged("launch-files-missing", [launch], a_plan(hosts=2), {"missing-files": looked})
        faults = {
            each.hosts: "warn" if each.severity else "fail"
            for each in found
            if each.subject != "/opt/job" or launch is folder
        }
        assert faults == told, found


@cases
def test_whom_what_is_done_with_a_path_accuses(
    text: str, path: str, states: list[str], told: str, tmp_path: Path
) -> None:
    looked = {f"node{n}": {path: state} for n, state in enumerate(states, 1)}
    launch = read(tmp_path, f"{text}\n".replace("TORCHRUN", TORCHRUN))
    found, _ = judged("launch-files-missing", [launch], a_plan(hosts=2), {"missing-files": looked})
    said = (f"{', '.join(each.hosts)}: {each.actual}: {' '.join(each.commands)}" for each in found)
    kinds = ("warn" if each.severity else "fail" for each in found)
    assert [*map(" ".join, zip(kinds, said, strict=True))] == ([told] if told else [])


def test_the_look_at_the_files() -> None:
    texts = ("", "look\nlooked\n", "look\n/a b\nnot readable /c\nmissing: e.py /d.py\nlooked\n")
    parsed = [NEEDED_FILES.parse(Capture("missing-files", 0, text)) for text in texts]
    assert parsed == [{}, {}, {"/a b": "missing", "/c": "not readable", "/d.py": "missing: e.py"}], (
        "nothing to look for is not missing"
    )
    home = NEEDED_FILES.parse(Capture("missing-files", 0, "look\n$HOME/a b\nnot readable $HOME/c\nlooked\n"))
    assert home == {"$HOME/a b": "missing", "$HOME/c": "not readable"}
    for cut in ("look\n", "look\n/images/train.sif\n"):
        with pytest.raises(UnreadableOutput):
            NEEDED_FILES.parse(Capture("missing-files", 0, cut))


def test_home_is_that_of_each_host(tmp_path: Path) -> None:
    launch = read(tmp_path, f"{TORCHRUN} train.py --config ~/a.yaml\n")
    looked = {"node1": {}, "node2": {"$HOME/a.yaml": "missing"}}
    ((found,), _) = judged("launch-files-missing", [launch], a_plan(hosts=2), {"missing-files": looked})
    assert found.hosts == ("node2",)
    assert found.commands == ("ls -ld $HOME/a.yaml",)


@pytest.mark.parametrize(("state", "kinds"), [("missing: site /opt", ["warn"]), ("", [])])
def test_a_folder_in_which_python_only_searches_is_a_warning(
    state: str, kinds: list[str], tmp_path: Path
) -> None:
    """It may be a stale one that only one host still has."""
    launch = read(tmp_path, f"export PYTHONPATH=/opt/site:$PYTHONPATH\n{TORCHRUN} train.py\n")
    looked = {"node1": {"/opt/site": ""}, "node2": {"/opt/site": state}}
    found, _ = judged("launch-files-missing", [launch], a_plan(hosts=2), {"missing-files": looked})
    assert ["warn" if each.severity else "fail" for each in found] == kinds


@pytest.mark.parametrize(
    ("before", "path", "states", "kinds"),
    [
        ("", "/job/hosts", ["missing", "missing"], ["warn"]),
        ("", "/job/hosts", ["missing", ""], []),
        ("", str(ROOT / "Makefile"), ["missing", "missing"], []),
        ("echo 'node1 slots=8' >/job/hosts\n", "/job/hosts", ["missing", "missing"], []),
    ],
    ids=["on no host", "where it starts", "here", "made by the script"],
)
def test_a_hostfile_is_read_where_the_launcher_starts(
    before: str, path: str, states: list[str], kinds: list[str], tmp_path: Path
) -> None:
    """DeepSpeed goes on without one, on its own host alone."""
    text = f"{before}deepspeed --hostfile {path} --master_addr node1 train.py\n"
    looked = {f"node{n}": {path: state} for n, state in enumerate(states, 1)}
    found, _ = judged(
        "launch-files-missing", [read(tmp_path, text)], a_plan(hosts=2), {"missing-files": looked}
    )
    assert ["warn" if each.severity else "fail" for each in found] == kinds


@pytest.mark.parametrize(
    ("sums", "hosts"),
    [
        ({"node1": "1 5", "node2": "1 5", "node3": "2 5"}, ("node3",)),
        ({"node1": "1 5", "node2": "2 5"}, ("node1", "node2")),
        ({"node1": "1 5", "node2": "1 5"}, None),
        ({"node1": "1 5"}, None),
        ({}, None),
    ],
)
def test_a_file_that_differs_between_hosts(
    sums: dict[str, str], hosts: tuple[str, ...] | None, tmp_path: Path
) -> None:
    launch = read(tmp_path, f"{TORCHRUN} /job/train.py\n")
    looked = {
        f"node{n}": {"= /job/train.py": sums[f"node{n}"]} if f"node{n}" in sums else {} for n in (1, 2, 3)
    }
    found, _ = judged("launch-files-differ", [launch], a_plan(hosts=3), {"missing-files": looked})
    assert [each.hosts for each in found] == ([] if hosts is None else [hosts])
    assert judged("launch-files-missing", [launch], a_plan(hosts=3), {"missing-files": looked})[0] == []


def test_a_script_whose_lines_end_with_cr_is_a_fault_of_its_host(tmp_path: Path) -> None:
    launch = read(tmp_path, f"source /job/env.sh\n{TORCHRUN} /job/train.py\n")
    looked = {"node1": {}, "node2": {"/job/env.sh": "lines with CR LF"}}
    ((found,), _) = judged("launch-files-missing", [launch], a_plan(hosts=2), {"missing-files": looked})
    assert (found.hosts, found.severity) == (("node2",), None)
    assert found.commands == ("sed -i 's/\\r$//' /job/env.sh",)


@pytest.mark.parametrize(("user", "accused"), [("root", ("node2",)), ("train", None)])
def test_paths_of_root_count_if_root_looks_for_them(
    user: str, accused: tuple[str, ...] | None, tmp_path: Path
) -> None:
    """To another user, what only root may see looks as if it were not there."""
    start = "torchrun --nnodes=2 --node_rank=$i --master_addr=node1 /job/train.py"
    launch = read(tmp_path, f'for i in 1 2; do ssh root@node$i "{start}" & done\nwait\n')
    logins = {host: Environment({}, user=(user, "0")) for host in ("node1", "node2")}
    looked: dict[str, dict[str, str]] = {"node1": {}, "node2": {"/job/train.py": "missing:"}}
    facts = {"missing-files": looked, "environment": logins}
    found, _ = judged("launch-files-missing", [launch], a_plan(hosts=2), facts)
    assert [each.hosts for each in found] == ([] if accused is None else [accused])


def test_configurations_of_launchers_may_differ(tmp_path: Path) -> None:
    start = "accelerate launch --config_file /job/a.yaml /job/t.py"
    each = f'for h in node1 node2; do ssh $h "{start}" & done\nwait\n'
    looked = {f"node{n}": {"= /job/a.yaml": str(n), "= /job/t.py": str(n)} for n in (1, 2)}
    facts = {"missing-files": looked}
    found, _ = judged("launch-files-differ", [read(tmp_path, each)], a_plan(hosts=2), facts)
    assert [each.subject for each in found] == ["/job/t.py"]

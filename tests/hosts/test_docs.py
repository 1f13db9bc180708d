"""The docs are true: their commands run, their picture is real, their links work.

`UPDATE_README=1 pytest tests/hosts/test_docs.py` puts a fresh picture into the READMEs.
"""

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from itertools import filterfalse, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from doctor.recording import save
from tests.lab import Lab, Rack
from tests.lab.demo import examine
from tests.support.accept_runs import accepting, shares
from tests.support.commands import ALONE, doctor
from tests.support.hang.programs import AARCH64, elf, wheel
from tests.support.paths import ROOT
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES, SMALL_SHM

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"(<!-- demo: begin -->\n).*?(<!-- demo: end -->)", re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind == language]


RANKS = [ROOT / "docs/parallel-plan.md", ROOT / "docs/ranks.md", ROOT / "docs/rank-tables.md"]


def doctor_commands(*pages: Path) -> list[str]:
    """Every `doctor ...` line of every `sh` block, each once, except those that need a shell."""
    ours = dict.fromkeys(line for page in pages for text in blocks(page, "sh") for line in doctor_lines(text))
    return [line for line in ours if not needs_shell(line)]


def trains(command: str) -> bool:
    """Whether it starts ranks, which takes the devices and interpreter of these hosts."""
    return command.startswith("doctor smoke ")


def each_way(commands: Sequence[str]) -> list[Any]:
    """For parametrize: a command is marked long if another one of its kind has the same options."""
    seen: set[tuple[str, ...]] = set()
    runs = set()
    for command in sorted(commands, key=lambda command: -len(ways(command))):
        if not ways(command) <= seen:
            runs.add(command)
            seen |= ways(command)
    return [
        command if command in runs else pytest.param(command, marks=pytest.mark.long) for command in commands
    ]


def ways(command: str) -> set[tuple[str, ...]]:
    """What a command uses: its options, each with the kind of file that it gets, and pages by name."""
    _, name, *words = shlex.split(command, comments=True)
    if name == "explain":
        return {(name, *words)}
    options = {(name, word, Path(value).suffix) for word, value in pairwise([*words, ""]) if word[0] == "-"}
    return options | {(name,)}


def needs_shell(line: str) -> bool:
    """Whether it has a pipe or writes to a file; `|| exit 1` only matters to the script around it."""
    return not {"|", ">"}.isdisjoint(shlex.split(line, comments=True))


def shell_blocks() -> list[str]:
    """Every `sh` block with such a line, which is typed as a whole: `mkdir` comes first."""
    found = [text for page in PAGES for text in blocks(page, "sh")]
    return [text for text in found if any(map(needs_shell, doctor_lines(text)))]


def doctor_lines(block: str) -> list[str]:
    return [line for line in block.splitlines() if line.startswith("doctor ")]


TABLE = """{"version": "1.0", "status": "completed", "server_count": "1", "server_list": [{"server_id":
"10.0.0.1", "device": [{"device_id": "0", "device_ip": "192.168.1.1", "rank_id": "0"}]}]}"""


@cache
def kept_runs() -> dict[str, str]:
    """A run of `doctor accept`, its baseline, and its report in two folders."""
    with TemporaryDirectory() as folder:
        good, baseline, report = (Path(folder) / name for name in ("good.json", "good.yaml", "report.json"))
        good.write_text(json.dumps(accepting(shares({}))))
        doctor("baseline", str(good), "--output", str(baseline))
        doctor("accept", "--replay", str(good), "--json", str(report))
        kept = {path.name: path.read_text() for path in (good, baseline)}
        seen = report.read_text().replace('"command": "accept"', '"command": "check"')
        return kept | dict.fromkeys(("runs/one.json", "doctor-runs/one.json"), seen)


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with the files that the docs mention."""
    (inventory,) = [text for text in blocks(ROOT / "docs/inventory.md", "yaml") if "groups:" in text]
    (exam,) = [text for text in blocks(ROOT / "docs/writing-a-playbook.md", "yaml") if "essential:" in text]
    (tmp_path / "inventory.yaml").write_text(inventory)
    (tmp_path / "strict-rack.yaml").write_text(exam)
    (tmp_path / "hostfile").write_text("node1 slots=8\nnode2 slots=8\n")
    (tmp_path / "logs").mkdir()
    for log in ("train.log", "logs/rank0.log"):
        (tmp_path / log).write_text("it begins\n")
    (tmp_path / "hccl.json").write_text(TABLE)
    sick = {"node2": heard(2, NAMES, spaces=SMALL_SHM)}
    for name in ("run", "monday", "today"):
        save(recording(NAMES, command="check", heard=sick), tmp_path / f"{name}.json")
    (tmp_path / "hosts.yaml").write_text("hosts: ['node[1-4]']")
    (waivers,) = [text for text in blocks(ROOT / "docs/waivers.md", "yaml") if "waivers:" in text]
    (tmp_path / "waivers.yaml").write_text(waivers)
    (tmp_path / "accept.yaml").write_text("floors: [pair >= 1 Mbit/s]")
    for name, text in kept_runs().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "py_spy-0.4.3-py2.py3-none-manylinux2014_aarch64.whl").write_bytes(wheel(elf(AARCH64)))
    return tmp_path


def spread(words: list[str], folder: Path) -> list[str]:
    """The command with files of the folder in place of a pattern, as a shell expands it."""
    files = sorted(path.name for path in folder.iterdir())
    return [match for word in words for match in fnmatch.filter(files, word) or [word]]


def with_torch(words: list[str]) -> list[str]:
    """The command; if it starts a smoke run, with the interpreter that has torch and few ranks."""
    if words[1] not in ("smoke", "preflight", "accept"):
        return words
    here = {"/opt/train/bin/python": sys.executable, "/scratch": "/tmp", "30m": "2s"}
    words = [here.get(word, word) for word in words]
    few = () if "--ranks-per-host" in words else ("--ranks-per-host", "1")
    python = () if "--python" in words else ("--python", sys.executable)
    return [*words, *python, *few]


@pytest.mark.parametrize(
    "command",
    each_way(
        [
            *doctor_commands(*(page for page in PAGES if page not in RANKS)),
            *filter(trains, doctor_commands(*RANKS)),
        ]
    ),
)
def test_a_command_of_the_docs_runs(command: str, desk: Path, lab4: Lab) -> None:
    """On healthy hosts, every command in the docs works as written."""
    words = with_torch(shlex.split(command.replace("|| exit 1", ""), comments=True))
    words = spread(words, desk)
    if words[1] == "hang" and "--local" in words:  # other tests have jobs on this machine
        done = lab4.run([*ALONE, *lab4.doctor_argv(*words[1:])], cwd=desk)
    else:
        done = lab4.doctor(*words[1:], cwd=desk)
    # The strict exam requires more than the lab's kernel settings, and an injected fault is found.
    expected = 1 if "strict-rack" in command or "--inject" in command else 0
    expected = 3 if words[1] in ("hang", "slow") else expected  # no job runs there
    if words[1] == "accept":  # the hosts share few cores: their links may be too uneven to be judged
        assert done.returncode in (0, 3), done.stdout + done.stderr
        return
    if words[1] == "logs":  # the messages of this machine's kernel do not matter here
        assert done.returncode in (0, 1, 3), done.stdout + done.stderr
        return
    assert done.returncode == expected, done.stdout + done.stderr


@pytest.mark.parametrize("block", shell_blocks(), ids=lambda block: doctor_lines(block)[0])
def test_a_block_for_the_shell_runs(block: str, tmp_path: Path) -> None:
    """On a machine without any preparation; every file that it writes gets some content."""
    ours, home = tmp_path / "bin", tmp_path / "home"
    ours.mkdir()
    home.mkdir()
    command = ours / "doctor"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m doctor "$@"\n')
    command.chmod(0o755)
    env = {
        "PATH": f"{ours}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "LANG": "C.UTF-8",
    }
    if "| man " in block and not shutil.which("man"):
        pytest.skip("there is no man here")
    argv = ["bash", "-eu", "-o", "pipefail", "-c", block]
    done = subprocess.run(argv, capture_output=True, text=True, env=env, cwd=home, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    written = re.findall(r"> ~/(\S+)", block)
    assert written
    assert all((home / name).stat().st_size > 1000 for name in written)


@pytest.fixture
def npu_desk(rack: Rack, tmp_path: Path) -> Path:
    """A folder with a rank table, a dump of each rank's environment, and a launch script."""
    done = rack.lab.doctor("ranktable", "make", "node[1-3]", "--output", str(tmp_path / "hccl.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    shared = {"MASTER_ADDR": "node1", "MASTER_PORT": "29500", "WORLD_SIZE": "24", "LOCAL_WORLD_SIZE": "8"}
    for rank in range(24):
        own = {"HOSTNAME": f"node{rank // 8 + 1}", "RANK": rank, "LOCAL_RANK": rank % 8}
        lines = [f"{name}={value}\n" for name, value in {**shared, **own}.items()]
        (tmp_path / f"env{rank}.log").write_text("".join(lines))
    (tmp_path / "launch.sh").write_text(
        "export HCCL_CONNECT_TIMEOUT=600\n"
        "torchrun --nnodes=3 --node_rank=$NODE_RANK --nproc_per_node=8 --master_addr=node1 train.py\n"
    )
    return tmp_path


@pytest.mark.parametrize("command", [*filterfalse(trains, doctor_commands(*RANKS))])
def test_a_command_for_npus_runs(command: str, npu_desk: Path, rack: Rack) -> None:
    words = shlex.split(command, comments=True)[1:]
    done = rack.lab.doctor(*spread(words, npu_desk), cwd=npu_desk)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.usefixtures("lab4")  # it is skipped where no lab can run
def test_the_picture_in_the_readme_is_what_the_lab_shows() -> None:
    code, english, chinese = examine(also="zh")
    assert code == 1
    for readme, shown in ((ROOT / "README.md", english), (ROOT / "README.zh-CN.md", chinese)):
        page = readme.read_text()
        end = _end_of(shown)
        fresh = PICTURE.sub(lambda m, end=end: f"{m[1]}```console\n{end}```\n{m[2]}", page)  # type: ignore[misc]
        if os.environ.get("UPDATE_README"):
            readme.write_text(fresh)
        assert timeless(fresh) == timeless(readme.read_text())


def _end_of(shown: str) -> str:
    """The command, the table and the verdict: a README shows these alone."""
    command, *lines = shown.splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith(("HOST ", "主机 ")))
    return "".join((command, "...\n", *lines[at:-2]))


COUNTS = re.compile(
    r"\s+\d+\s+checks,\s+\d+\s+results:.*?\s\d+\.\d+\s+s\.|\s*\d+\s*项检查，.*?[\d.]+\s*秒。", re.DOTALL
)


def timeless(text: str) -> str:
    """The text without the counts of all checks and the seconds at its end, wherever lines break."""
    return COUNTS.sub(" ... s.", text)


def test_the_picture_does_not_depend_on_how_many_checks_there_are() -> None:
    page = (ROOT / "README.md").read_text()
    (sentence,) = COUNTS.findall(page)
    more = "\n1075 checks, 1191 results: 1103 passed, 2\nfailed, 87 do not\napply; 12.5\ns."
    assert timeless(page.replace(sentence, more)) == timeless(page)
    assert timeless(page.replace("2 of 4 hosts", "3 of 4 hosts")) != timeless(page)


def test_make_targets_of_the_docs_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = {
        target for page in PAGES for target in re.findall(r"^make ([\w-]+)", page.read_text(), re.MULTILINE)
    }
    assert named
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in named)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / link).exists(), link

"""Launch lines, no-go results and reports of real hosts: a faulty head, a port in use, a spare host."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import Lab
from tests.support.cases import from_cases

HOLDER = "import socket, time; s = socket.create_server(('', 29500)); time.sleep(600)"


def test_a_faulty_head_is_replaced_and_a_spare_is_kept(lab: Lab, tmp_path: Path) -> None:
    lab["node1"].shm("16m")
    lab["node2"].spawn([sys.executable, "-c", HOLDER])
    lab["node2"].await_listener(29500)
    runs, healthy = tmp_path / "runs", tmp_path / "healthy"
    options = ("--report-dir", str(runs), "--healthy-hosts", str(healthy))

    go = lab.doctor("check", "node[1-4]", "--need-hosts", "2", "--print", "launch", *options)
    address = lab["node2"].spec.address
    assert (go.returncode, go.stdout) == (
        0,
        "torchrun --nnodes=2 --nproc-per-node=2 --node-rank=$NODE_RANK"
        f" --master-addr={address} --master-port=29501\n",
    ), go.stderr
    assert "3 healthy hosts remain, 2 are needed: go." in go.stderr
    assert (
        f"doctor: go: node[2-3], head node2 ({address}, port 29501); spare: node4; left out: node1."
        in go.stderr
    )
    assert "doctor: port 29500 is taken on node2: 29501 is in its place." in go.stderr
    assert healthy.read_text() == "node2\nnode3\nnode4\n", "spares are healthy too"
    (hosts,) = runs.glob("*.hosts")
    assert hosts.read_text() == "node2 slots=2\nnode3 slots=2\n"

    no_go = lab.doctor("check", "node[1-4]", "--need-hosts", "4", "-q", "--print", "launch=srun", *options)
    assert (no_go.returncode, no_go.stdout) == (1, "")
    what, where, then = no_go.stderr.splitlines()
    assert what.startswith("doctor: no go: shm-small: /dev/shm is too small")
    assert where == "        On node1; 3 of 4 hosts are healthy, 4 are needed (faulty node1)."
    whole = Path(then.partition("the whole report is ")[2])
    assert "shm-small" in whole.read_text()

    reports = sorted(path for path in runs.glob("*.json") if ".run." not in path.name)
    assert [json.loads(path.read_bytes())["verdict"] for path in reports] == ["faulty", "faulty"]
    assert len(list(runs.iterdir())) == 13, "each run has its own, and only a go has hosts"
    recording = whole.with_suffix(".run.json")
    fewer = ("--need-hosts", "3", "--print", "launch=hostfile", "-q")
    again = lab.run([sys.executable, "-m", "doctor", "check", "--replay", str(recording), *fewer])
    assert (again.returncode, again.stdout) == (0, "node2 slots=2\nnode3 slots=2\nnode4 slots=2\n")


TRAIN = from_cases(__file__, "TRAIN", str)


def lines_of(lab: Lab, form: str, *options: str) -> str:
    ran = lab.doctor("check", "node[1-3]", "--exclude", "node1", "-q", "--print", f"launch={form}", *options)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.mark.long
@pytest.mark.parametrize("form", ["torchrun", "rdzv"])
def test_torchrun_runs_the_printed_command(form: str, lab: Lab) -> None:
    line = lines_of(lab, form, "--master-port", "29507")
    torchrun = Path(sys.executable).with_name("torchrun")
    running = []
    for number, name in enumerate(("node2", "node3")):
        lab[name].write("/srv/train.py", TRAIN)
        text = f'export NODE_RANK={number}; eval "$1 /srv/train.py"'
        argv = lab[name].enter(["bash", "-c", text, "bash", line.replace("torchrun", str(torchrun), 1)])
        running.append(subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    try:
        said = [run.communicate(timeout=200)[0] for run in running]
    finally:
        for run in running:
            run.kill()
    assert [run.returncode for run in running] == [0, 0], said
    told = sorted(text for text in "".join(said).splitlines() if text.startswith("rank "))
    assert [text.partition(" master ")[0] for text in told] == [f"rank {rank} sum 4" for rank in range(4)]
    if form == "torchrun":
        address = lab["node2"].spec.address
        assert all(text.endswith(f" master {address}") for text in told)
        assert said[0].count("rank 0 ") == said[0].count("rank 1 ") == 1, "the head has the first ranks"


@pytest.mark.long
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="it needs mpirun")
@pytest.mark.parametrize("kept", [True, False])
def test_mpirun_runs_the_printed_command(kept: bool, lab: Lab, tmp_path: Path) -> None:
    line = lines_of(lab, "mpirun", *(("--report-dir", str(tmp_path)) if kept else ()))
    assert ("--hostfile" in line) is kept
    for name in ("node2", "node3"):
        lab[name].write("/srv/train.py", TRAIN)
    text = f"{line} {sys.executable} /srv/train.py"
    environ = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_plm_rsh_args": f"-F {lab.ssh_config}",
    }
    ran = lab.run(["sh", "-c", text], env=environ, timeout=200, cwd="/")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    address = lab["node2"].spec.address
    assert sorted(ran.stdout.splitlines()) == [f"rank {n} sum 4 master {address}" for n in range(4)]

"""Launch scripts as people write them, from the script to the report: what is healthy, and what is not."""

import json
from pathlib import Path

import pytest

from doctor.errors import InputErrors
from doctor.job.launch.rank_starts import ranks_of_a_host
from doctor.judge.verdict import Report
from doctor.model import Status
from tests.support.cases import cases, from_cases
from tests.support.launches import a_plan, judged, read
from tests.support.reports import text
from tests.unit.checks.test_launch_guides import examined, found, launch_line, written

JOB = "export MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 WORLD_SIZE=8\n"
START = "RANK=$i LOCAL_RANK=$i python train.py &"
FEWER = "fewer ranks are started than there should be: they wait for the others until they give up"
LOOPS = from_cases(__file__, "LOOPS", dict[str, str])


def offline(folder: Path, text: str, hosts: int = 1, **beside: str) -> Report:
    for name, content in beside.items():
        (folder / f"{name}.sh").write_text(content)
    return examined(written(folder, text), hosts=hosts)


def faults(of: Report) -> dict[str, str]:
    return {check: finding.summary for check, finding in found(of).items()}


def table(devices: int) -> str:
    listed = [
        {"device_id": str(n), "device_ip": f"192.168.{n % 4}.{n}", "rank_id": str(n)} for n in range(devices)
    ]
    servers = [{"server_id": "10.0.0.1", "device": listed}]
    return json.dumps({"version": "1.0", "server_count": "1", "status": "completed", "server_list": servers})


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_each_kind_of_loop_is_gone_through(loop: str, tmp_path: Path) -> None:
    healthy = offline(tmp_path, JOB + loop % 8 + "wait\n")
    assert faults(healthy) == {}
    assert launch_line(healthy) == "launch: shell loop in run.sh, 8 ranks"
    assert faults(offline(tmp_path, JOB + loop % 7 + "wait\n")) == {"launch-ranks": FEWER}


def test_a_rank_that_a_loop_leaves_out(tmp_path: Path) -> None:
    loop = "for i in {0..7}; do if [ $i -ne 3 ]; then " + START + " fi; done\n"
    assert faults(offline(tmp_path, JOB + loop)) == {"launch-ranks": FEWER}


@pytest.mark.parametrize("test", ["[ -f $i ]", "! [ $i = $1 ]", "[[ $i < 8 ]]", "[ $HOSTNAME = node1 ]"])
def test_a_test_that_is_not_decided_leaves_nothing_out(test: str, tmp_path: Path) -> None:
    loop = "for i in {0..7}; do " + test + " && continue; " + START + " done\n"
    assert faults(offline(tmp_path, JOB + loop)) == {}


@cases
def test_of_two_tests_only_one_can_hold(one: str, other: str, both: bool, tmp_path: Path) -> None:
    """A script that asks how it was called starts each rank once; if both tests may hold, twice."""
    for form in ("if {}; then {} fi\n", "{} && {}\n"):
        starts = form.format(one, START) + form.format(other, START)
        of = offline(tmp_path, f"{JOB}for i in {{0..7}}; do {starts}done\nwait\n")
        twice = {finding.summary for finding in of.findings if finding.status is Status.FAIL}
        assert ("RANK=0 is given 2 times" in twice) is both, form
        assert both or not twice


def test_a_loop_whose_end_is_not_known_is_said(tmp_path: Path) -> None:
    of = offline(tmp_path, JOB + "i=0\nwhile [ $i -lt $1 ]; do " + START + " let i++; done\n")
    assert faults(of) == {}
    assert "the number of turns of the loop around run.sh:3 is unknown" in text(of, 200)


@cases
def test_a_file_that_is_sourced(name: str, tmp_path: Path) -> None:
    loop = f"source {name}\nfor i in {{0..6}}; do start $i; done\n"
    of = offline(tmp_path, loop, env=JOB + "start() { RANK=$1 python t.py & }\n")
    assert faults(of) == {"launch-ranks": FEWER}


@pytest.mark.parametrize("how", ["bash go.sh", "./go.sh 8", "sh -x ./go.sh &"])
def test_a_script_that_is_run(how: str, tmp_path: Path) -> None:
    of = offline(tmp_path, JOB + how + "\n", go="for i in {0..6}; do " + START + " done\n")
    assert faults(of) == {"launch-ranks": FEWER}


def test_what_is_sourced_or_run_and_not_here_is_said(tmp_path: Path) -> None:
    loop = JOB + "for i in {0..7}; do " + START + " done\n"
    assert "run.sh sources 'cluster.sh'" in text(offline(tmp_path, "source cluster.sh\n" + loop), 200)
    assert "run.sh runs 'go.sh'" in text(offline(tmp_path, JOB + "bash go.sh\n"), 200)
    assert "nothing in run.sh is known to start ranks" in text(
        offline(tmp_path, JOB + "exit 0\n" + loop), 200
    )
    usual = "source /usr/local/Ascend/ascend-toolkit/set_env.sh\n. ~/.bashrc\n. venv/bin/activate\n"
    assert "sources" not in text(offline(tmp_path, usual + loop), 200)


@pytest.mark.parametrize("starter", ["bash -c", "nohup bash -c", "srun bash -lc", "docker run image sh -ec"])
def test_a_launcher_in_the_text_of_another_shell(starter: str, tmp_path: Path) -> None:
    line = "torchrun --nnodes=2 --node_rank=0 --nproc_per_node=8 --master_addr=127.0.0.1 train.py"
    of = offline(tmp_path, f"{starter} 'cd work && {line}'\n", hosts=2)
    assert faults(of).keys() == {"master-not-here"}


def test_ranks_that_are_started_one_after_another(tmp_path: Path) -> None:
    of = offline(tmp_path, JOB + "for i in {0..7}; do RANK=$i python train.py; done\n")
    assert faults(of) == {
        "launch-ranks": "the ranks are started one after another: "
        "the first waits for the others until it gives up"
    }


BY_SRUN = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=2\nexport MASTER_ADDR=node1 WORLD_SIZE={}\n"


@pytest.mark.parametrize(
    ("world", "command", "told"),
    [
        ("$SLURM_NNODES", "srun bash -c 'RANK=$SLURM_PROCID python t.py'", True),
        ("$SLURM_NTASKS", "srun bash -c 'RANK=$SLURM_PROCID python t.py'", False),
        ("$SLURM_NNODES", "srun --ntasks-per-node=1 python t.py", False),
        ("$SLURM_NNODES", "for n in a b; do srun -N1 -n1 -w $n python t.py & done; wait", False),
    ],
)
def test_ranks_that_are_told_another_number_of_them(
    world: str, command: str, told: bool, tmp_path: Path
) -> None:
    of = offline(tmp_path, f"{BY_SRUN.format(world)}{command}\n", hosts=2)
    assert ("starts another number of ranks" in faults(of).get("launch-ranks", "")) is told


TORCHRUN = "torchrun --nnodes=2 --nproc_per_node=4 --node_rank={} --master_addr=192.168.7.1 t.py"


@pytest.mark.parametrize(
    ("first", "waits"),
    [
        ('ssh node2 "{}"', True),
        ('ssh node2 "{}" &', False),
        ('ssh -f node2 "{}"', False),
        ('ssh node2 "nohup {} > t.log 2>&1 &"', False),
        ("ssh node2 \"tmux new -d '{}'\"", False),
        ('if [ "$1" = 1 ]; then ssh node2 "{}"; exit; fi', False),
        ("{}  # on node2", False),
    ],
)
def test_a_host_that_is_started_before_another(first: str, waits: bool, tmp_path: Path) -> None:
    of = offline(tmp_path, f"{first.format(TORCHRUN.format(1))}\n{TORCHRUN.format(0)}\n", hosts=2)
    assert ("launch-ranks" in faults(of)) is waits


START_BY_SSH = (
    'ssh {} $h "{}torchrun --nnodes=2 --nproc_per_node=4 --node_rank=$r --master_addr=192.168.7.1 t.py{}"{}'
)


@pytest.mark.parametrize(
    "loop", ["for h in node1 node2; do {} r=$((r+1)); done", "while read h; do {} let r++; done < h"]
)
@pytest.mark.parametrize(
    ("how", "waits"),
    [
        (("", "", "", ";"), True),
        (("-n", "", "", " &"), False),
        (("-f", "", "", ";"), False),
        (("", "nohup ", " &", ";"), False),
        (("", "tmux new -d ", "", ";"), False),
    ],
)
def test_hosts_that_are_started_one_after_another(
    loop: str, how: tuple[str, ...], waits: bool, tmp_path: Path
) -> None:
    of = offline(tmp_path, f"r=0\n{loop.format(START_BY_SSH.format(*how))}\nwait\n", hosts=2)
    assert ("launch-ranks" in faults(of)) is waits


@cases
def test_ranks_of_which_the_last_is_waited_for(loop: str, tmp_path: Path) -> None:
    assert faults(offline(tmp_path, JOB + loop)) == {}


def test_two_jobs_of_one_program(tmp_path: Path) -> None:
    """Each has its own port; one rank with another port is a slip."""
    line = "for i in 0 1 2 3; do MASTER_PORT=%s RANK=$i python train.py & done\n"
    env = "export MASTER_ADDR=127.0.0.1 WORLD_SIZE=4\n"
    assert faults(offline(tmp_path, env + line % 29500 + line % 29501)) == {}
    slip = "for i in 0 1 2 3; do p=29500; [ $i = 2 ] && p=1; MASTER_PORT=$p RANK=$i python t.py & done\n"
    assert faults(offline(tmp_path, env + slip)).keys() == {"launch-inconsistent"}


@cases
def test_a_device_that_the_table_lacks(first: int, summary: str | None, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(table(8))
    loop = f"for((i={first};i<{first + 8};i++)); do export DEVICE_ID=$i; python train.py & done\n"
    of = offline(tmp_path, "export RANK_SIZE=8 RANK_TABLE_FILE=./t.json\n" + loop)
    assert faults(of) == ({"launch-ranks": summary} if summary else {})


@cases
def test_mpirun_seen_from_one_host(given: str, hostfile: str | None, ranks: int, tmp_path: Path) -> None:
    if hostfile:
        (tmp_path / "hosts").write_text(hostfile)
    of = offline(tmp_path, f"mpirun -n 16 {given} python train.py\n")
    assert of.plan.ranks == ranks
    assert ("how many ranks mpirun starts on each host is not in" in text(of, 200)) == (ranks == 2)


def test_a_home_and_a_folder_that_are_not_known(tmp_path: Path) -> None:
    loop = "for i in {0..7}; do RANK_ID=$i DEVICE_ID=$i python train.py & done\n"
    size = "export RANK_SIZE=8 RANK_TABLE_FILE="
    (tmp_path / "t.json").write_text(table(8))
    assert faults(offline(tmp_path, f"{size}~/t.json\n{loop}")) == {}
    assert faults(offline(tmp_path, f"cd elsewhere\n{size}./t.json\n{loop}")) == {}
    assert "run.sh goes to 'elsewhere'" in text(
        offline(tmp_path, f"cd elsewhere\n{size}./t.json\n{loop}"), 200
    )
    assert faults(offline(tmp_path, f'{size}"~/t.json"\n{loop}')).keys() == {"rank-table-differs"}
    made = offline(tmp_path, f"mkdir -p elsewhere/a\ncd elsewhere\n{size}./t.json\n{loop}")
    assert faults(made).keys() == {"rank-table-differs"}


def test_line_ends_of_another_system_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputErrors, match="CR LF"):
        offline(tmp_path, (JOB + "torchrun --nproc_per_node=8 train.py\n").replace("\n", "\r\n"))


def test_a_dump_that_is_named_twice_is_one(tmp_path: Path) -> None:
    for rank in (0, 1):
        text = f"PATH=/bin\nPWD=/job\nRANK={rank}\nWORLD_SIZE=2\nMASTER_ADDR=127.0.0.1\n"
        (tmp_path / f"env{rank}.log").write_text(text)
    of = examined(tmp_path / "env0.log", tmp_path / "env0.log", tmp_path / "env1.log")
    assert [f for f in of.findings if f.status in (Status.FAIL, Status.WARN)] == []


@pytest.mark.parametrize(
    ("device", "host", "told"),
    [("$g", "$h", set()), ("0", "$h", {2}), ("$g", "node1", {2}), ("0", "$(next)", set())],
)
def test_ranks_that_ssh_starts_are_those_of_its_host(
    device: str, host: str, told: set[int], tmp_path: Path
) -> None:
    text = (
        "i=0\nfor h in node1 node2; do\n  for g in 0 1; do\n"
        f'    ssh {host} "MASTER_ADDR=node1 MASTER_PORT=29500 WORLD_SIZE=4 RANK=$((i*2+g))'
        f' LOCAL_RANK={device} python t.py" &\n'
        "  done\n  i=$((i+1))\ndone\nwait\n"
    )
    launch = read(tmp_path, text)
    found, _ = judged("launch-ranks", [launch], a_plan("nccl", 2, 2))
    assert {int(each.summary.split()[0]) for each in found if "same device" in each.summary} == told
    assert ranks_of_a_host(launch, 2) == (4 if host == "node1" else 2)

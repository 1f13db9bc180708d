"""Launchers inside containers, remote shells, shells and variables; and numbers that are given elsewhere."""

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.errors import InputErrors
from doctor.job.launch.files import read_launch_files
from doctor.job.launch.launchers import COMMANDS
from doctor.job.launch.process_env import Launch
from doctor.job.launch.unknowns import not_understood, port_mentioned
from doctor.job.launch.wrappers import PREFIXES, WRAPPERS, unwrapped
from doctor.job.plan import JobPlan, draft
from doctor.job.wishes import JobWishes
from doctor.model import Host
from tests.support.cases import cases, from_cases
from tests.support.launches import read

START = "torchrun --nnodes 2 --nproc_per_node 4 --master_addr node7 --master_port 29512 train.py"
READ = (4, "node7", 29512)
"""The ranks of a host, the master and the port according to this line."""


BLANK = "\\ "


def planned(launch: Launch) -> JobPlan:
    return draft([Host("node1", "node1"), Host("node2", "node2")], JobWishes(launch=launch))


def figures(launch: Launch) -> tuple[int | None, str | None, int]:
    plan = planned(launch)
    ranks = plan.hosts[0].ranks
    return ranks.value if ranks else None, plan.master.value if plan.master else None, plan.master_port.value


def notes(launch: Launch) -> str:
    return "\n".join(not_understood(launch))


@cases
def test_what_stands_around_a_launcher_is_taken_off(text: str, tmp_path: Path) -> None:
    launch = read(tmp_path, f"#!/bin/bash\n{text}\n")
    assert figures(launch) == READ
    assert planned(launch).master_port.source == "--launch MASTER_PORT"


def test_each_host_of_a_loop_has_its_node_rank(tmp_path: Path) -> None:
    text = """i=0
for host in node1 node2; do
    ssh $host "cd /job; NCCL_DEBUG=INFO torchrun --nnodes=2 --nproc_per_node=8 --node_rank=$i \\
        --master_addr=node1 --master_port=22345 train.py" &
    i=$((i+1))
done
"""
    launch = read(tmp_path, text)
    assert figures(launch) == (8, "node1", 22345)
    assert [told.command[3] for told in launch.told] == ["--node_rank=0", "--node_rank=1"]
    assert [told.env for told in launch.told] == [{"NCCL_DEBUG": "INFO"}] * 2


WORDS = (*WRAPPERS, *PREFIXES, *COMMANDS, "run", "exec", "-c", "-it", "-e", "A=b", "--", "$X", "a b", "t.py")


@settings(deadline=None)
@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=12))
def test_any_words(words: list[str]) -> None:
    inner = unwrapped(words)
    assert inner is None or inner.text is not None


def test_wrappers_are_taken_off_to_a_limit() -> None:
    assert unwrapped(["mpirun"] * 5000) is None


@cases
def test_variables_do_not_enter_containers_and_other_hosts_by_themselves(
    text: str, env: dict[str, str], tmp_path: Path
) -> None:
    (told,) = read(tmp_path, f"export MASTER_PORT=29512 NCCL_DEBUG=INFO\n{text}\n").told
    assert told.env == env


@pytest.mark.parametrize("before", ["NPROC_PER_NODE=8 NNODES=2", "export NPROC_PER_NODE=8;"])
def test_a_program_that_is_told_how_many_ranks_to_start(before: str, tmp_path: Path) -> None:
    launch = read(tmp_path, f"#!/bin/bash\n{before} swift sft --model m\n")
    assert figures(launch)[0] == 8


def test_assignments_before_a_program_that_nobody_knows(tmp_path: Path) -> None:
    line = "FORCE_TORCHRUN=1 NNODES=2 NODE_RANK=$1 MASTER_ADDR=10.0.0.9 MASTER_PORT=29507"
    launch = read(tmp_path, f"#!/bin/bash\n{line} llamafactory-cli train run.yaml\n")
    assert figures(launch) == (None, "10.0.0.9", 29507)
    assert "the number of ranks that torchrun starts is not in env0.log" in notes(launch)


@cases
def test_deepspeed(options: str, ranks: int | None, port: int, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(f"deepspeed {options} train.py --deepspeed d.json\n")
    launch = read_launch_files([tmp_path / "run.sh"], lambda _: {"a": 6, "b": 6})
    assert figures(launch)[::2] == (ranks, port)
    assert (ranks is None) == ("the number of ranks that deepspeed starts" in notes(launch))


@cases
def test_directives_of_a_batch_script(
    directives: str, command: str, ranks: int | None, world: str, tmp_path: Path
) -> None:
    launch = read(tmp_path, f"#!/bin/bash\n#SBATCH --nodes=4  # all\n{directives}\n{command}\n")
    assert figures(launch)[0] == ranks
    assert planned(launch).launch.partition(", ")[2] == world


def test_directives_end_at_the_first_command(tmp_path: Path) -> None:
    launch = read(tmp_path, "#SBATCH -n 16\n\necho hello\n#SBATCH -N 8\nsrun python t.py\n")
    assert planned(launch).launch.endswith("16 ranks")
    assert launch.told[0].command == ("srun", "--ntasks=16", "python", "t.py")


CONFIG = from_cases(__file__, "CONFIG", str)


def test_a_configuration_of_accelerate(tmp_path: Path) -> None:
    config = tmp_path / "accelerate.yaml"
    config.write_text(CONFIG)
    assert figures(read_launch_files([config])) == (8, "10.0.0.9", 29601)
    line = "accelerate launch --config_file accelerate.yaml --main_process_port 29700 train.py"
    assert figures(read(tmp_path, f"{line}\n")) == (8, "10.0.0.9", 29700)
    for spelled in ("srun bash -c '{}'", "python -m {}"):
        text = spelled.format(line.replace("accelerate launch", "accelerate.commands.launch"))
        text = text.replace("-c 'accelerate.commands.launch", "-c 'accelerate launch")
        assert figures(read(tmp_path, f"{text}\n")) == (8, "10.0.0.9", 29700)


def test_a_configuration_that_is_not_here_leaves_no_default(tmp_path: Path) -> None:
    launch = read(tmp_path, "accelerate launch --config_file ~/a.yaml --num_processes 16 train.py\n")
    assert "takes options from" in notes(launch)
    assert planned(launch).master_port.source == "default"


POD = from_cases(__file__, "POD", str)


PORTS = "ports: [{name: pytorchjob-port, containerPort: 29777}]"


@cases
def test_a_manifest(command: str, found: tuple[int | None, str | None, int], tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(POD.replace("COMMAND", command))
    launch = read_launch_files([path])
    assert figures(launch) == found
    assert launch.told[0].env["NCCL_DEBUG"] == "INFO"
    assert launch.told[0].source == "job.yaml"
    assert (planned(launch).master_port.source == "a PyTorchJob's default") == (found[2] == 23456)
    path.write_text(POD.replace("COMMAND", command).replace("image: image", PORTS))
    assert figures(read_launch_files([path]))[2] == (29500 if found[2] == 29500 else 29777)


def test_what_an_elastic_job_is_given_is_left_to_its_operator(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    text = POD.replace("COMMAND", "torchrun, train.py")
    path.write_text(text.replace('nprocPerNode: "8"', "elasticPolicy: {maxReplicas: 4}"))
    launch = read_launch_files([path])
    assert figures(launch)[0] is None
    assert planned(launch).master_port.source == "default"


def test_a_mistake_in_a_later_document_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(POD.replace("kind: PyTorchJob", "kind: &anchor PyTorchJob"))
    with pytest.raises(InputErrors) as caught:
        read_launch_files([path])
    assert caught.value.mistakes[0].line == 6


def test_a_manifest_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "job.yml"
    path.write_text(
        "apiVersion: batch/v1\nkind: Job\n"
        "spec: {template: {spec: {containers: [{name: a, command: [sh, -c],\n"
        f" args: ['{START}']}}]}}}}}}\n"
    )
    assert figures(read_launch_files([path])) == READ


@cases
def test_other_yaml_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with pytest.raises(InputErrors) as caught:
        read_launch_files([path])
    assert message in caught.value.mistakes[0].message


def test_a_line_that_an_escaped_blank_cuts(tmp_path: Path) -> None:
    start = "torchrun --nnodes 2 --node_rank $R --master_addr node7 {}\n  train.py\n"
    with pytest.raises(InputErrors) as caught:
        read(tmp_path, f"cd /job\n{start.format(BLANK)}")
    mistake = caught.value.mistakes[0]
    assert (mistake.line, "a backslash and a blank" in mistake.message) == (2, True)
    assert figures(read(tmp_path, start.format(BLANK.strip())))[1] == "node7"
    assert figures(read(tmp_path, f"echo a {BLANK}\n{start.format(BLANK.strip())}"))[1] == "node7"


@pytest.mark.parametrize("text", ["docker compose up -d trainer", "cd /job\nmake train", "./run"])
def test_a_script_that_starts_something_unknown_is_refused_with_its_words(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputErrors) as caught:
        read(tmp_path, f"{text}\n")
    message = caught.value.mistakes[0].message
    assert f"what `{text.splitlines()[-1]}` starts is not known" in message


def test_an_address_in_another_language_is_told(tmp_path: Path) -> None:
    start = "torchrun --nnodes 2 --master_addr $MASTER_ADDR t.py\n"
    assert "address node7 is in line 1" in notes(read(tmp_path, f"set -x MASTER_ADDR node7\n{start}"))
    code = 'python - <<EOF\nprint("MASTER_ADDR", os.environ["MASTER_ADDR"])\nEOF\n'
    assert "address" not in notes(read(tmp_path, code + start))


@cases
def test_a_port_in_the_text_is_examined_and_told(text: str, port: int, line: int, tmp_path: Path) -> None:
    launch = read(tmp_path, f"{text}\n")
    plan = planned(launch)
    assert (plan.master_port.value, plan.master_port.source) == (port, f"--launch env0.log:{line}")
    assert plan.master_port_guessed
    assert f"port {port} is in line {line}" in notes(launch)


@cases
def test_other_ports_are_not_those_of_the_job(text: str, tmp_path: Path) -> None:
    assert port_mentioned(read(tmp_path, f"{text}\n")) == ()


def test_a_port_that_a_launcher_does_not_read(tmp_path: Path) -> None:
    launch = read(tmp_path, "export MASTER_PORT=29600\ntorchrun --nproc_per_node 8 t.py\n")
    port = planned(launch).master_port
    assert (port.value, port.source) == (29500, "torchrun's default")
    assert "--master-port 29600 examines it" in notes(launch)


def test_two_launches_in_one_script(tmp_path: Path) -> None:
    text = "torchrun --nproc_per_node 8 a.py && torchrun --nproc_per_node 2 --master_port 29700 b.py\n"
    launch = read(tmp_path, text)
    assert figures(launch) == (2, None, 29700)
    assert "another launch is not examined: env0.log:1, torchrun, 8 ranks, port 29500" in notes(launch)
    both = read(tmp_path, text.replace("&&", "&") + "srun hostname\n")
    assert figures(both) == (2, None, 29700)


def test_both_lines_of_one_job_are_no_two_launches(tmp_path: Path) -> None:
    line = "torchrun --nnodes 2 --nproc_per_node 8 --master_addr node1 --node_rank {} t.py\n"
    assert "another launch" not in notes(read(tmp_path, line.format(0) + line.format(1)))


@cases
def test_what_was_not_understood_is_quoted(text: str, tmp_path: Path) -> None:
    said = notes(read(tmp_path, f"#!/bin/bash\n{text}\n"))
    assert "was not understood" in said
    assert text.splitlines()[0 if "EOF" not in text else 1] in said


@cases
def test_what_is_not_read_is_not_refused(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(f"{text}\n")
    launch = read_launch_files([tmp_path / name])
    assert said in notes(launch)
    (tmp_path / "train.sh").write_text(f"{START}\n")
    assert figures(read_launch_files([tmp_path / name, tmp_path / "train.sh"])) == READ


def test_a_script_behind_a_launcher_is_read(tmp_path: Path) -> None:
    text = "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=1\nsrun {} config.yaml\n"
    (tmp_path / "train.sh").write_text(f"{START}\n")
    for command in ("bash train.sh", "./train.sh", "bash -x ./train.sh"):
        assert figures(read(tmp_path, text.format(command))) == READ
    (tmp_path / "train.sh").unlink()
    launch = read(tmp_path, text.format("./train.sh"))
    assert figures(launch)[0] is None
    assert "how many ranks train.sh starts there is not known" in notes(launch)


def test_one_task_on_a_host_of_several_devices_may_start_more(tmp_path: Path) -> None:
    launch = read(tmp_path, "srun -N2 --ntasks-per-node=1 --gres=gpu:8 python t.py\n")
    assert figures(launch)[0] is None
    assert "how many ranks t.py starts there is not known" in notes(launch)


def test_mpirun_takes_the_tasks_of_an_allocation(tmp_path: Path) -> None:
    head = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=8\n"
    assert figures(read(tmp_path, f"{head}mpirun -x A=b python t.py\n"))[0] == 8
    assert planned(read(tmp_path, f"{head}mpirun -n 4 python t.py\n")).launch.endswith("4 ranks")


def test_the_other_branch_is_told(tmp_path: Path) -> None:
    several = "torchrun --nnodes 2 --master_port 29600 t.py"
    said = notes(read(tmp_path, f"if [ $N -gt 1 ]; then {several}\nelse torchrun --standalone t.py; fi\n"))
    assert "another launch is not examined: env0.log:1, torchrun, 2 ranks, port 29600" in said


@cases
def test_what_only_looks_is_no_launch(before: str, tmp_path: Path) -> None:
    for text in (f"{before}\n{START}", f"{START}\n{before}"):
        launch = read(tmp_path, f"#!/bin/bash\n{text}\n")
        assert (figures(launch), notes(launch)) == (READ, "")


def test_a_strange_starter_beside_a_known_one_is_told(tmp_path: Path) -> None:
    for text in (
        "python prepare.py\njsrun -n 6 -a 1 python train.py --x 1",
        "torchx run dist.ddp -j 2x8",
    ):
        said = notes(read(tmp_path, f"#!/bin/bash\n{text}\n"))
        assert f"`{text.splitlines()[-1].removesuffix(' --x 1')}" in said
    quiet = "pip install deepspeed\nwhich torchrun\npkill torchrun\necho python train.py\n"
    assert notes(read(tmp_path, f"#!/bin/bash\n{quiet}{START}\n")) == ""


def test_a_text_without_a_launch_is_refused(tmp_path: Path) -> None:
    for text in (
        "echo torchrun --nnodes 2",
        "# torchrun\necho",
        "pip install deepspeed",
        "cp torchrun.sh /tmp",
    ):
        with pytest.raises(InputErrors):
            read(tmp_path, f"#!/bin/bash\n{text}\n")


def test_variables_in_the_file_of_a_launcher(tmp_path: Path) -> None:
    """Ranks get them, unless another launcher starts them, or the script sets others."""
    (tmp_path / ".deepspeed_env").write_text("# all hosts\nNCCL_SOCKET_IFNAME=ib0\n")
    for line, found in (
        ("deepspeed --num_gpus 2 t.py", "ib0"),
        ("export NCCL_SOCKET_IFNAME=eth0\ndeepspeed --num_gpus 2 t.py", "eth0"),
        ("torchrun --nnodes=2 --node_rank=$1 t.py", None),
    ):
        (told,) = read(tmp_path, f"{line}\n").told
        assert told.env.get("NCCL_SOCKET_IFNAME") == found


def test_hosts_that_a_script_writes_line_by_line(tmp_path: Path) -> None:
    two = "echo 'node1 slots=2' > hosts\necho \"node2 slots=2\" >> hosts\n"
    for lines, hosts in (
        (two, {"node1": 2, "node2": 2}),
        ("printf 'node1 slots=2\\nnode2 slots=2\\n' > hosts\n", {"node1": 2, "node2": 2}),
        (f"{two}cat more >> hosts\n", {}),
        (f'if [ "$1" ]; then\n  {two}fi\n', {}),
        ('for h in node1 node2; do echo "$h slots=2" >> hosts; done\n', {"node1": 2, "node2": 2}),
        ("for h in $(seq -f node%g 2); do echo $h; done > hosts\n", {}),
        (
            "rm -f hosts\nfor h in node1 node2; do printf '%s slots=%d\\n' $h 2 >> hosts; done\n",
            {"node1": 2, "node2": 2},
        ),
        ("while read h; do echo $h slots=2 >> hosts; done < list\n", {}),
        (f"({two})\n", {"node1": 2, "node2": 2}),
        (f"write() {{ {two.replace(chr(10), ';')} }}\nwrite\n", {"node1": 2, "node2": 2}),
        ('bash -c "echo node1 slots=2 > hosts"\n', {"node1": 2}),
        ("N=2\ncat > hosts <<EOF\nnode1 slots=$N\nnode2 slots=$N\nEOF\n", {"node1": 2, "node2": 2}),
        ("N=2\ntee hosts <<'EOF'\nnode1 slots=$N\nEOF\n", {}),
        (
            "echo node1:2,node2:2 | tr ':,' ' \\n' | sed 's/ / slots=/' | tee hosts\n",
            {"node1": 2, "node2": 2},
        ),
        ("echo node1 slots=2 > own\ncp own hosts\n", {"node1": 2}),
        ("echo node1 slots=2 > own\nln -sf own hosts\n", {}),
        ("mkdir hosts\necho node1 slots=2 > own\ncp own hosts\n", {}),
        (f"{two}rm -f host*\n", {}),
        ("cat > hosts <<-EOF\n\tnode1 slots=2\n\tEOF\n", {"node1": 2}),
        ("printf '%s slots=2\\n' > hosts\n", {}),
        (f"{two}sed -i s/2/4/ hosts\n", {}),
        (f"{two}python more.py hosts\n", {}),
        (f"{two}OUT=hosts python more.py\n", {}),
        (f"{two}python - <<EOF\nopen('hosts', 'w')\nEOF\n", {}),
        (f"{two}sudo sh -c 'echo node3 slots=2 >> hosts'\n", {}),
        (f"{two}ssh node2 'cat hosts'\n", {"node1": 2, "node2": 2}),
        (f"{two}echo $(hostname) slots=2 >> hosts\n", {}),
        (f"{two}rm hosts\n", {}),
        (f"{two}cat hosts 2> log | sort > log\n", {"node1": 2, "node2": 2}),
    ):
        (told,) = read(tmp_path, f"{lines}deepspeed --hostfile hosts t.py\n").told
        assert told.hosts == hosts, lines


def test_what_one_host_does_after_the_training_is_not_the_job(tmp_path: Path) -> None:
    train = f"{START.replace('train.py', '--node_rank $R train.py')} &&\n"
    launch = read(tmp_path, f"{train}torchrun --nproc_per_node 1 eval.py\n")
    assert figures(launch) == READ
    assert "another launch is not examined: env0.log:2, torchrun" in notes(launch)


def test_a_launcher_that_is_given_its_own_name(tmp_path: Path) -> None:
    """It is a typing mistake, and must not cause a traceback."""
    assert read(tmp_path, "deepspeed deepspeed --num_gpus 8 train.py\n").told


def test_a_very_long_line_takes_no_long_time(tmp_path: Path) -> None:
    began = time.monotonic()
    read(tmp_path, f"echo {'x' * 100_000} | base64 -d > data\n{START}\n")
    assert time.monotonic() - began < 5


def test_an_unknown_launcher_is_not_understood_and_its_port_is_kept(tmp_path: Path) -> None:
    text = "colossalai run --nproc_per_node 8 --host node1,node2 --master_addr node1 --master_port 29505 t\n"
    launch = read(tmp_path, text)
    assert figures(launch) == (None, None, 29505)
    assert "what line 1 of env0.log starts was not understood: `colossalai run" in notes(launch)

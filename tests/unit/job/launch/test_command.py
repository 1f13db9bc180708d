"""Command lines of launchers, in every spelling that people use."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.job.launch.command import read_command

TORCH = {"nnodes": "2", "nproc_per_node": "8"}


@pytest.mark.parametrize(
    ("line", "name", "options", "program"),
    [
        ("torchrun --nnodes=2 --nproc_per_node=8 train.py --nnodes 9", "torchrun", TORCH, "train.py"),
        ("torchrun --nnodes 2 --nproc-per-node 8 /a/train.py", "torchrun", TORCH, "train.py"),
        ("torchrun --nnode 2 --nproc=8 train.py", "torchrun", TORCH, "train.py"),
        ("/opt/bin/torchrun --nnodes=2 --nproc_per_node=8 -m pkg.train", "torchrun", TORCH, "pkg.train"),
        ("python3 /usr/bin/torchrun --nnodes=2 --nproc_per_node=8 t.py", "torchrun", TORCH, "t.py"),
        ("python -u -m torch.distributed.run --nnodes=2 --nproc_per_node=8 t.py", "torchrun", TORCH, "t.py"),
        ("python3.9 -m torch.distributed.launch --use_env --nnodes=2 t.py", "torchrun",
         {"nnodes": "2"}, "t.py"),
        ("python '$(which torchrun)' --nnodes=2 t.py", "torchrun", {"nnodes": "2"}, "t.py"),
        ("python -umtorch.distributed.launch --nnodes=2 t.py", "torchrun", {"nnodes": "2"}, "t.py"),
        ("torchrun --standalone --nproc_per_node=gpu t.py", "torchrun", {"nproc_per_node": "gpu"}, "t.py"),
        ("torchrun --nnodes 1:4 --rdzv_backend c10d --rdzv_endpoint h:1 t.py", "torchrun",
         {"nnodes": "1:4", "rdzv_backend": "c10d", "rdzv_endpoint": "h:1"}, "t.py"),
        ("torchrun -r 3 -t 3 --log-dir logs --nnodes 2 t.py", "torchrun", {"nnodes": "2"}, "t.py"),
        ("torch_npu_run --master_addr a --master_port 1 --enable_tiered_parallel_tcpstore=true t.py",
         "torch_npu_run", {"master_addr": "a", "master_port": "1"}, "t.py"),
        ("msrun --worker_num=16 --local_worker_num 8 --join True net.py", "msrun",
         {"ranks": "16", "nproc_per_node": "8"}, "net.py"),
        ("msrun --bind_core=True pytest -s net.py", "msrun", {}, "pytest"),
        ("mpirun -np 16 --hostfile hosts -x A=1 -mca btl tcp,self python3 -u net.py", "mpirun",
         {"ranks": "16"}, "net.py"),
        ("mpirun -n 8 -H a:4,b:4 --output-filename log --merge-stderr-to-stdout ./all_reduce_perf -b 8",
         "mpirun", {"ranks": "8", "hosts": "a:4,b:4"}, "all_reduce_perf"),
        ("mpiexec.hydra -genv X 1 -ppn 8 -n 16 python t.py", "mpirun", {"ranks": "16"}, "t.py"),
        ("mpirun --allow-run-as-root -np 2 torchrun --nnodes=2 t.py", "torchrun", {"nnodes": "2"}, "t.py"),
        ("srun -N2 -n16 --gres=gpu:8 python t.py", "srun", {"nnodes": "2", "ranks": "16"}, "t.py"),
        ("srun --nodes=2 -l torchrun --nnodes 2 --nproc_per_node 8 t.py", "torchrun", TORCH, "t.py"),
        ("deepspeed --hostfile=h --master_addr a --master_port 1 t.py --deepspeed c.json", "deepspeed",
         {"master_addr": "a", "master_port": "1"}, "t.py"),
        ("python -m deepspeed.launcher.launch --world_info=e30= --node_rank=1 --master_addr=a t.py",
         "deepspeed", {"master_addr": "a"}, "t.py"),
        ("accelerate launch --num_machines 2 --machine_rank 1 --main_process_ip a --multi_gpu t.py",
         "accelerate", {"nnodes": "2", "node_rank": "1", "master_addr": "a"}, "t.py"),
        ("nohup numactl -N 0 python -u t.py", None, {}, "t.py"),
        ("env A=b timeout 5h torchrun --nnodes=2 t.py", "torchrun", {"nnodes": "2"}, "t.py"),
        ("python -X faulthandler -W ignore t.py", None, {}, "t.py"),
        ("python -c 'import torchrun'", None, {}, "-c"),
        ("python -mpytest -q", None, {}, "pytest"),
    ],
)  # fmt: skip
def test_a_command_line(line: str, name: str | None, options: dict[str, str], program: str) -> None:
    command = read_command(tuple(shlex.split(line)))
    assert command is not None
    assert (command.launcher and command.launcher.name) == name
    assert {name: command.option(name) for name in options} == options
    assert command.program == program


@pytest.mark.parametrize("line", ["vim torchrun", "cp train.py /x", "accelerate config", "man msrun", ""])
def test_commands_that_start_no_ranks(line: str) -> None:
    assert read_command(tuple(line.split())) is None


@pytest.mark.parametrize(
    ("line", "sets"),
    [
        ("mpirun -x MASTER_ADDR=a -x PATH -np 2 python t.py", {"MASTER_ADDR": "a"}),
        ("mpiexec.hydra -genv MASTER_ADDR a -n 2 python t.py", {"MASTER_ADDR": "a"}),
        ("srun --export=ALL,HCCL_BUFFSIZE=200,A=b python t.py", {"HCCL_BUFFSIZE": "200", "A": "b"}),
        ("env HCCL_BUFFSIZE=200 python t.py", {"HCCL_BUFFSIZE": "200"}),
        ("srun --export=A=1 torchrun t.py", {"A": "1"}),
    ],
)
def test_variables_on_the_command_line(line: str, sets: dict[str, str]) -> None:
    command = read_command(tuple(line.split()))
    assert command is not None
    assert command.sets == sets


def test_an_unknown_word_is_not_an_option() -> None:
    command = read_command(("torchrun", "--nnodes=$NNODES", "$ARGS", "train.py"))
    assert command is not None
    assert command.option("nnodes") is None
    assert command.partly
    assert not read_command(("torchrun", "--nnodes=2", "train.py", "$MORE")).partly  # type: ignore[union-attr]
    assert not read_command(("srun", "$HOME/bin/torchrun", "train.py")).partly  # type: ignore[union-attr]
    assert read_command(("srun", "$OPTIONS", "torchrun", "train.py")).partly  # type: ignore[union-attr]


WORDS = (
    *(
        "torchrun",
        "python",
        "-m",
        "srun",
        "mpirun",
        "env",
        "-x",
        "--nnodes",
        "=",
        "",
        "-",
        "--",
        "$X",
        "t.py",
    ),
    *("-n", "-np", "accelerate", "launch", "torch.distributed.run"),
)


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=5), max_size=8))
def test_any_words(words: list[str]) -> None:
    command = read_command(tuple(words))
    assert command is None or isinstance(command.program, str)

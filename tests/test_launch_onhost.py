"""What a host says of the processes of jobs: no more than is kept, and nothing that may be a secret."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.job.launch.command import kept_words, read_command
from doctor.job.launch.launchers import COMMANDS, MODULES
from doctor.job.launch.onhost import awk_words
from doctor.job.launch.variables import is_kept, must_agree

LINES = (
    "torchrun --nnodes=2 --nproc_per_node 8 train.py --nnodes 9 --token k3y",
    "torchrun --nnode 2 --nproc=8 --max-restarts 3 -r 3 -m pkg.train k3y",
    "torchrun --rdzv_id 7 --rdzv 8 --log k3y --no-python ./run.sh k3y eval.py",
    "torchrun --new k3y ./run.sh",
    "torchrun --new train.py k3y",
    "torchrun --new",
    "torchrun -- ./run.sh k3y",
    "torchrun --standalone ./run.sh --api-key k3y",
    "python3 /usr/bin/torchrun --nnodes=2 t.py k3y",
    "python -u -m torch.distributed.run --nnodes=2 t.py k3y",
    "python -m torch_npu.distributed.run --master_addr a t.py k3y",
    "python -X k3y -W ignore -mpkg.train k3y",
    "python -B train k3y",
    "python --check-hash-based-pycs t.py k3y",
    "python -c k3y",
    "python -uck3y",
    "python",
    "msrun --worker_num=16 --local_worker_num 8 --log_dir k3y --join True net.py k3y",
    "msrun --bind_core=True pytest -s k3y.py",
    "mpirun -np 16 --hostfile k3y -x A=k3y -mca btl k3y,self -genv A k3y python3 -u net.py k3y",
    "mpirun -n 8 -H a:4,b:4 --output-filename k3y ./all_reduce_perf -b k3y",
    "mpirun -np 2 numactl -N 0 env A=k3y python t.py k3y",
    "mpiexec.hydra -ppn 8 -n 16 torchrun --nnodes=2 t.py k3y",
    "srun -N2 -n16 -c8 --gres gpu:8 --export=ALL,A=k3y torchrun --nnodes 2 t.py k3y",
    "srun -n2 bash -c 'python t.py k3y'",
    "deepspeed --hostfile=k3y --master_addr a t.py --deepspeed k3y.json",
    "python -m deepspeed.launcher.launch --world_info=k3y --node_rank=1 t.py k3y",
    "accelerate launch --num_machines 2 --config_file k3y --multi_gpu t.py k3y",
    "accelerate config k3y",
    "./all_reduce_perf -b k3y",
    "'python: train --token k3y'",
)
AWKS = [
    words
    for words in (("mawk",), ("gawk",), ("original-awk",), ("busybox", "awk"))
    if shutil.which(words[0]) is not None
] or [("awk",)]
each_awk = pytest.mark.parametrize("awk", AWKS, ids=" ".join)


def on_the_host(words: tuple[str, ...], awk: tuple[str, ...], *variables: str) -> tuple[str, ...]:
    """As the script's awk prints them, behind those of the variables that it lets pass."""
    rows = "".join(f"7/cmdline:{word}\n" for word in words)
    rows += "".join(f"7/environ:{variable}\n" for variable in variables)
    ran = subprocess.run(
        (*awk, *awk_words()),
        input=f"7/stat:7 (x) S 1 7 7\n{rows}",
        capture_output=True,
        text=True,
        check=True,
    )
    said = [row for row in ran.stdout.split("\n") if row.startswith("a\t")]
    passed = [row[2:] for row in ran.stdout.split("\n") if row.startswith("e ")]
    return (*passed, *(said[0][2:].split("\t") if said else ()))


@each_awk
@pytest.mark.parametrize("line", LINES)
def test_a_host_says_what_is_kept_and_no_secret(line: str, awk: tuple[str, ...]) -> None:
    words = tuple(shlex.split(line))
    kept = kept_words(words)
    assert "k3y" not in " ".join(kept) or kept == ("torchrun", "k3y")
    assert on_the_host(words, awk) == kept
    assert kept_words(kept) == kept


@pytest.mark.parametrize("line", LINES)
def test_what_is_kept_says_the_same_of_the_ranks(line: str) -> None:
    whole, kept = (read_command(words) for words in (tuple(shlex.split(line)), kept_words(shlex.split(line))))
    if whole is None or "'" in line:
        return
    assert kept is not None
    assert (kept.launcher, kept.program) == (whole.launcher, whole.program)
    assert kept.options == {name: value for name, value in whole.options.items() if name}


WORDS = st.sampled_from(
    (
        *(*COMMANDS, *MODULES, "python3", "-m", "-c", "-u", "-x", "--", "-", "env", "launch", "t.py", "2"),
        *("--nnodes", "--nnodes=2", "--log_dir", "-n2", "-np", "--new", "--new=1", "--export", "-mca", "run"),
    )
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from((*COMMANDS, "python3")), st.lists(WORDS, max_size=8))
def test_any_command_line(first: str, more: list[str]) -> None:
    words = (first, *more)
    assert kept_words(on_the_host(words, AWKS[0])) == kept_words(words)


@each_awk
def test_variables_that_a_host_lets_pass(awk: tuple[str, ...]) -> None:
    """Whatever grep took for the beginning of a variable."""
    variables = ("RANK=1", "MY_RANK=2", "NCCL_TOKEN=3", "x", "MS_ROLE=a=b", "MS_ROLE_ARN=4")
    assert on_the_host(("python", "t.py"), awk, *variables) == ("RANK=1", "MS_ROLE=a=b", "python", "t.py")


@pytest.mark.parametrize(
    "name",
    [
        *("MS_ROLE", "MS_SCHED_HOST", "MS_NODE_ID", "MS_RETRY_INTERVAL_LOWER", "MS_ENABLE_LCCL", "RANK"),
        *("HCCL_BUFFSIZE", "NCCL_ALGO", "GLOO_SOCKET_IFNAME", "TORCH_NCCL_BLOCKING_WAIT"),
    ],
)
def test_variables_that_are_read(name: str) -> None:
    assert is_kept(name)


@pytest.mark.parametrize(
    "name",
    [
        *("MS_TEAMS_WEBHOOK", "MS_GRAPH_CLIENT", "MS_ACCOUNT", "MS_ROLE_ARN", "HOME", "MY_RANK"),
        *("HCCL_API_KEY", "NCCL_TOKEN", "NCCL_SECRET", "GLOO_PASSWORD", "TORCH_NCCL_PWD", "HCCL_WEBHOOK"),
        *("NCCL_CREDENTIALS", "NCCL_PASSPHRASE_FILE"),
    ],
)
def test_variables_that_are_not_read(name: str) -> None:
    assert not is_kept(name)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("NCCL_ALGO", True),
        ("NCCL_HOME", False),
        ("NCCL_ROOT_DIR", False),
        ("NCCL_VERSION", False),
        ("NCCL_LIBRARY", False),
        ("NCCL_LIB_DIR", False),
        ("NCCL_INCLUDE_DIR", False),
        ("NCCL_INSTALL_PATH", False),
    ],
)
def test_where_a_library_lies_may_differ(name: str, same: bool) -> None:
    assert is_kept(name)
    assert must_agree(name) is same


def test_the_script_has_no_quote_of_its_own() -> None:
    """It is put between single quotes."""
    assert all("'" not in word for word in awk_words())
    assert Path("/proc").is_dir()

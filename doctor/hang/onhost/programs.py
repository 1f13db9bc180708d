"""What a process is by its command line: a shell, a tool, a launcher, a notebook, doctor itself. Pure."""

import re
from collections.abc import Sequence
from posixpath import basename


def _names(text: str) -> "frozenset[str]":
    return frozenset(text.split())


SHELLS = _names("sh bash dash ash zsh ksh tcsh csh fish busybox")
WRAPPERS = _names(
    "env time timeout nice ionice chrt taskset numactl setsid stdbuf unbuffer script sudo su runuser gosu"
    " tini dumb-init catchsegv strace ltrace nsys ncu perf tee tail cat ts logger singularity apptainer"
    " enroot conda mamba uv poetry"
)
TOOLS = _names(
    "sleep tail less more man vi vim nvim nano emacs top htop watch tmux screen ssh scp rsync git ls cat grep"
    " find tar gzip nvidia-smi npu-smi journalctl dmesg make ninja curl wget ps gdb"
)
"""Programs of a shell that are never ranks themselves, whatever its variables say."""
LAUNCHERS = _names(
    "torchrun torch_npu_run deepspeed msrun mpirun mpiexec mpiexec.hydra orterun prterun prte prted orted"
    " hydra_pmi_proxy srun slurmstepd horovodrun torchx ray raylet"
)
_ELSEWHERE = _names("mpirun mpiexec mpiexec.hydra orterun prterun srun horovodrun torchx ray raylet")
MODULES = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "torch_npu.distributed.run",
    "deepspeed.launcher.runner",
    "deepspeed.launcher.launch",
    "accelerate.commands.launch",
)
_SCRIPTS = re.compile(r"/torch/distributed/(?:run|launch)\.py$|/deepspeed/launcher/\w+\.py$")
_NAMES = ("deepspeed", "accelerate", "msrun", "mpirun", "mpiexec", "srun", "slurmstepd")
_NOTEBOOK = re.compile(
    r"(?:jupyter(?:-\w+)?|ipython3?|ipykernel(?:_launcher|\.kernelapp)?|colab_kernel_launcher)(?:\.py)?\Z",
    re.I,
)


def program(command: "Sequence[str]") -> str:
    return basename(command[0]).lstrip("-") if command else ""


def is_shell(command: "Sequence[str]") -> bool:
    """A shell, or another program that only runs one."""
    scripts = command[1:2] if "python" in program(command) else ()
    return program(command) in SHELLS or bool(WRAPPERS & {program(command), *map(basename, scripts)})


def is_launcher(command: "Sequence[str]") -> bool:
    names = [basename(word) for word in command[:2]]
    if LAUNCHERS & set(names) or (set(names) & {"accelerate"} and "launch" in command[:4]):
        return True
    started = list(command[: 2 + next((at for at, word in enumerate(command) if word == "-m"), 0)])
    return any(word in MODULES for word in started) or any(map(_SCRIPTS.search, command[1:4]))


def launcher_name(command: "Sequence[str]") -> str:
    return next((name for name in _NAMES if name in " ".join(command[:4])), "torchrun")


def starts_ranks_here(command: "Sequence[str]") -> bool:
    """A launcher whose ranks are on its own host."""
    return is_launcher(command) and not _ELSEWHERE & {basename(word) for word in command[:2]}


def master_by(command: "Sequence[str]") -> "tuple[str, str]":
    """The rendezvous that a launcher of PyTorch is told, and the run; empty where only this host knows it."""
    said = {}  # type: dict[str, str]
    for at, word in enumerate(command):
        if word.endswith(".py") and not _SCRIPTS.search(word):
            break
        name, given, value = word.partition("=")
        if name.startswith("--"):
            said.setdefault(name[2:].replace("_", "-"), value if given else "".join(command[at + 1 : at + 2]))
    master = said.get("rdzv-endpoint") or ""
    if not master and said.get("master-addr"):
        master = "{}:{}".format(said["master-addr"], said.get("master-port", "29500"))
    here = master.startswith(("localhost", "127.", "[::1]", "::1"))
    return ("", "") if here else (master[:200], said.get("rdzv-id", "")[:40])


def step_by(command: "Sequence[str]") -> "tuple[str, str]":
    """The job and the step of Slurm whose daemon it is."""
    found = re.match(r"slurmstepd: \[(\d+)\.(\w+)\]", " ".join(command[:2]))
    return (found.group(1), found.group(2)) if found else ("", "")


def is_doctor(command: "Sequence[str]") -> bool:
    """One of ours: a controller, an agent, what an agent started."""
    if any("begin(bytes(b[:" in word for word in command[:8]):
        return True
    names = [basename(word) for word in command[:2]]
    return "doctor" in names or " -m doctor " in " ".join(["", *command[:8], ""])


def is_notebook(command: "Sequence[str]") -> bool:
    """A kernel of one, its server, IPython."""
    words = [basename(word) for word in command[:4]]
    after = words.index("-m") + 1 if "-m" in words else 1
    return any(map(_NOTEBOOK.match, words[:1] + words[after : after + 1]))


def script(command: "Sequence[str]") -> str:
    """What Python runs; empty where it reads what is typed."""
    return next((word for word in command[1:] if word in ("-c", "-m") or not word.startswith("-")), "")

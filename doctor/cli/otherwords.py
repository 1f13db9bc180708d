"""Options, values and commands as other programs call them, and what they are called here."""

from collections.abc import Mapping

_OPTIONS = {
    "HOSTS": "-H -w -N --hosts --host --hostname --hostnames --host-list --hostlist --node --nodes "
    "--nodelist --node-list --nodeset --nnodes --num-nodes --servers --server --machines --machine --targets",
    "--hostfile": "-f --machinefile --machine-file --hosts-file --hostsfile --host-file --nodefile",
    "--ranks-per-host": "--nproc-per-node --nproc --np --ranks --ntasks-per-node --tasks-per-node --ppn "
    "--slots --gpus --gpus-per-node --num-gpus --npus --devices --num-processes --procs",
    "--master-port": "--rdzv-endpoint --main-process-port --rdzv-port",
    "--user": "-l -u --username --login --remote-user --ssh-user",
    "--port": "-p --ssh-port",
    "--identity": "--key --private-key --keyfile --key-file --ssh-key --identity-file",
    "--jump": "--proxy --bastion --proxy-jump --proxyjump --jump-host --jumphost --gateway",
    "--accept-new": "--insecure -k --yes -y --trust --no-host-key-checking",
    "--sudo": "--become -b --root --as-root",
    "--enter": "--docker --exec",
    "--pods": "--pod --selector --label-selector",
    "--namespace": "--kube-namespace --ns",
    "--local": "--localhost --this-host --self",
    "--exclude": "-x --without --skip-hosts --ignore",
    "--python": "--interpreter --venv --conda --env-python",
    "--launch": "--env --env-file --envfile --script --job-script",
    "--json": "--format --output-format",
    "--html": "-o --output --out --report --output-file --log-file",
    "--steps": "--iters --iterations --epochs --num-steps --max-steps",
    "--tp": "--tensor-parallel --tensor-parallel-size --tensor-model-parallel-size",
    "--save": "--record --dump",
    "--replay": "--input --from-file --load",
    "--verbose": "--debug --detail --details",
    "--quiet": "-s --silent",
    "--no-color": "--nocolor --plain",
}
OPTIONS: Mapping[str, str] = {other: ours for ours, all_of in _OPTIONS.items() for other in all_of.split()}

SAID: Mapping[str, str] = {
    **dict.fromkeys(
        ("--master-addr", "--master", "--head", "--rdzv-host"),
        "Rank 0 runs on the host that is named first.",
    ),
    **dict.fromkeys(("--list", "--list-checks"), "Type: doctor list"),
    **dict.fromkeys(
        ("--fix", "--repair", "--apply", "--dry-run", "--heal"),
        "doctor changes nothing on hosts; its report says what to type.",
    ),
}
"""The message for an option that has no counterpart here."""
LOGS = (
    "-f",
    "-d",
    "-i",
    "--file",
    "--files",
    "--log",
    "--logs",
    "--logfile",
    "--log-file",
    "--input",
    "--dir",
)
"""Options with which other programs name logs; here logs are named without an option."""

_COMMANDS = {
    "--version": "version",
    "check": "test scan diagnose examine verify validate status health doctor inspect",
    "smoke": "train training benchmark bench burn stress",
    "hang": "stack stacks stuck hung deadlock freeze",
    "slow": "straggler stragglers lag late slowest",
    "facts": "info show inventory describe",
    "explain": "why what analyze analyse parse read error",
    "logs": "collect fetch gather",
    "list": "checks exams symptoms remedies ls",
    "list schema": "schema",
    "help --man": "man manpage",
    "check --replay FILE": "replay report",
    "ranktable": "hccl rank-table rank_table",
}
COMMANDS: Mapping[str, str] = {other: ours for ours, all_of in _COMMANDS.items() for other in all_of.split()}

_VALUES = {
    "nccl": "gpu gpus cuda nvidia amd rocm rccl",
    "hccl": "npu npus ascend cann huawei",
    "gloo": "cpu mpi",
    "srun": "slurm",
    "ssh": "paramiko pdsh remote",
    "local": "localhost here",
    "always": "true yes on 1",
    "never": "false no off 0",
    "full": "all",
    "none": "off no",
    "zh": "cn zh_cn zh-cn chinese",
    "en": "en_us en-us english us",
}
VALUES: tuple[tuple[str, str], ...] = tuple(
    (other, ours) for ours, all_of in _VALUES.items() for other in all_of.split()
)
"""What other programs call a value, and the value; options with different values share some words."""

"""The command that starts a missing launcher, read by torchrun's own parser."""

import json
import shlex
import subprocess
import sys

from doctor.hang.advice import advice_of
from doctor.hang.judge import judge
from tests.support.hang.launchers_only import launcher, starting

_READS = "import json, sys; from torch.distributed.run import parse_args as read; "
_READS += "said = read(sys.argv[1:]); print(json.dumps([said.node_rank, said.nnodes, said.training_script]))"
_MODULE = "torch.distributed.run"


def test_torchrun_reads_the_line_that_starts_the_missing_launcher() -> None:
    said = [
        "--nnodes",
        "2",
        "--node-rank",
        "0",
        "--master-addr",
        "10.0.0.1",
        "--master-port",
        "29500",
        "train.py",
    ]
    (typed,) = advice_of(judge(starting([launcher(0, (sys.executable, "-m", _MODULE, *said))]))).commands
    words = shlex.split(typed, comments=True)
    assert words[:3] == [sys.executable, "-m", _MODULE]
    done = subprocess.run(
        [sys.executable, "-c", _READS, *words[3:]], capture_output=True, text=True, timeout=100
    )
    assert json.loads(done.stdout) == [1, "2", "train.py"], done.stderr

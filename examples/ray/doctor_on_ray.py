"""doctor on every node of a Ray cluster: one task on each, placed by node affinity, is a rank of `--in-job`.

    python doctor_on_ray.py facts
    python doctor_on_ray.py hang --json report.json     the job that Ray runs stands still: on which rank?

Rank 0 is the node on which this runs, if that is a node of the cluster: files are written there. The exit
code is doctor's. doctor itself must be on the PATH of all nodes, or DOCTOR names it.
"""

import contextlib
import os
import random
import secrets
import subprocess
import sys

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

DOCTOR = os.environ.get("DOCTOR", "doctor")


@ray.remote(num_cpus=0, max_retries=0)
def rank(words: list[str], job: dict[str, str]) -> tuple[int, str, str]:
    """Runs on its node, beside the actors of the training. doctor ends with the worker that runs this."""
    command = ["setpriv", "--pdeathsig", "TERM", *words, "--in-job"]
    done = subprocess.run(command, env={**os.environ, **job}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def main(words: list[str]) -> int:
    ray.init(address="auto", log_to_driver=False)
    here = ray.get_runtime_context().get_node_id()
    nodes = [node for node in ray.nodes() if node["Alive"]]
    nodes.sort(key=lambda node: (node["NodeID"] != here, node["NodeManagerAddress"]))
    job = {
        "MASTER_ADDR": nodes[0]["NodeManagerAddress"],
        "MASTER_PORT": str(random.randrange(30000, 32000)),  # ranks derive their own ports from it
        "WORLD_SIZE": str(len(nodes)),
        "DOCTOR_JOB_KEY": secrets.token_hex(16),
    }
    tasks = [
        rank.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(
            [DOCTOR, *words], {**job, "RANK": str(number)}
        )
        for number, node in enumerate(nodes)
    ]
    try:
        code, out, err = ray.get(tasks[0])
    except BaseException:
        for task in tasks:
            ray.cancel(task, force=True)
        raise
    sys.stdout.write(out)
    sys.stderr.write(err)
    # What a rank says that has not found rank 0; a task whose node died says nothing.
    done, _ = ray.wait(tasks[1:], num_returns=len(tasks) - 1, timeout=10) if tasks[1:] else ([], [])
    for other in done:
        with contextlib.suppress(ray.exceptions.RayError):
            sys.stderr.write(ray.get(other)[2])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Work of one rank that looks like a hang from outside, and hangs that look like work."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tests.support.paths import ROOT
from tests.trials.hang.scenes.scene import HangScene, ScenePlace, SceneTruth

SCRIPT = str(ROOT / "tests" / "support" / "hang" / "work.py")
WORLD = 3
HEALTHY = (
    *("matmul", "decode", "collect", "count_words", "small_reads", "many_files", "checkpoint"),
    *("slow_checkpoint", "upload", "slow_upload", "upload_by_child", "upload_by_polled_child"),
    *("upload_by_thread", "judge_by_http", "judge_by_http_with_timeout", "judges_by_threads"),
    *("judge_by_asyncio", "compile_model", "compile_by_gcc", "long_import", "evaluate", "threads_compute"),
    *("pool_computes", "short_lock", "lock_of_a_download"),
)
HANGS = (
    *("sleep", "nap", "lock", "sleep_with_heartbeat", "lock_with_heartbeat", "child_sleeps", "hub_lock"),
    *("flock_of_another", "sqlite_lock", "fork_lock", "leave"),
)
LOOPS = ("spin", "spin_in_lines")


@contextmanager
def worked(place: ScenePlace, kind: str, codes: tuple[int, ...]) -> Iterator[SceneTruth]:
    """Ranks that a plain loop starts on one host; one of them does this `kind` of work."""
    host, victim = place.hosts[0], place.lot.randrange(WORLD)
    for rank in range(WORLD):
        env = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(WORLD),
            "MASTER_ADDR": host.address,
            "MASTER_PORT": str(place.port),
            "KIND": kind,
            "VICTIM": str(victim),
            "AT": str(place.step),
        }
        place.run(host, [sys.executable, SCRIPT], more=env)
    pid = place.until_hit(host, victim)
    function = {"leave": "rest", "fork_lock": "tokenize", "lock_with_heartbeat": "lock"}.get(kind, kind)
    named = function if codes == (3,) or 1 in codes else ""
    yield SceneTruth(codes, frozenset({host.name}), frozenset({pid}), named, rank=victim)


SCENES = (
    *(HangScene(f"work {kind}", partial(worked, kind=kind, codes=(0, 3)), healthy=True) for kind in HEALTHY),
    *(HangScene(f"work {kind}", partial(worked, kind=kind, codes=(1,))) for kind in HANGS),
    *(HangScene(f"work {kind}", partial(worked, kind=kind, codes=(3,))) for kind in LOOPS),
)

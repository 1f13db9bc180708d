"""Waits until NPUs have released the ranks of a smoke run: until then HCCL refuses to start (EJ0001)."""

import time
from collections.abc import Sequence

from doctor.api import Ask
from doctor.exam.collect import Collection
from doctor.facts.ascend.hccn_tool import SilentDevice
from doctor.facts.ascend.network import HCCP
from doctor.judge.engine import Facts
from doctor.model import UnreachedHost
from doctor.stage import Stage

LONGEST = 15.0
UNSEEN = 10.0
"""Seconds that Huawei's manual gives for EJ0001; used if NPUs do not show their state (it needs root)."""
APART = 1.0


def await_release(collection: Collection, hosts: Sequence[str]) -> None:
    began = time.monotonic()
    while (passed := time.monotonic() - began) < LONGEST and collection.left() > APART:
        held, unseen = _ask(collection, hosts)
        if not held and (not unseen or passed >= UNSEEN):
            return
        limit = LONGEST if held else UNSEEN
        doing = "waiting until the NPUs have released the first run's ranks"
        collection.progress(Stage("smoke", doing, waiting=held or unseen, limit=limit))
        time.sleep(APART)


def _ask(collection: Collection, hosts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Hosts with an NPU that is still in use, and hosts that do not show whether one is."""
    held, unseen = [], []
    for answer, heard in collection.ask([HCCP], hosts, Ask):
        known = Facts({} if isinstance(heard, UnreachedHost) else {answer.host: heard})
        told = known.all(HCCP).get(answer.host)
        if told is None or any(isinstance(each, SilentDevice) for each in told.values()):
            unseen.append(answer.host)
        elif any(told.values()):
            held.append(answer.host)
    return held, unseen

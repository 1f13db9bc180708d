"""Waits until NPUs have released the ranks of a smoke run: until then HCCL refuses to start (EJ0001)."""

import time
from collections.abc import Sequence

from doctor.api import Ask
from doctor.exam.collect import Collection
from doctor.facts.ascend.hccn_tool import SilentDevice
from doctor.facts.ascend.network import HCCP
from doctor.judge.engine import Facts
from doctor.model import MissingFact, UnreachedHost
from doctor.probe import new_token, read, script, through
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
    order, token = collection.order, new_token()
    scripts = {
        host.name: through(script([HCCP], Ask(host.name), token, sudo=order.sudo), host)
        for host in order.hosts
        if host.name in hosts
    }
    held, unseen = [], []
    for answer in collection.transport.run(scripts, order.timeout, order.until):
        heard = answer if isinstance(answer, UnreachedHost) else read(answer, [HCCP], token)
        told = (
            None if isinstance(heard, UnreachedHost) else Facts({answer.host: heard}).get(answer.host, HCCP)
        )
        if (
            told is None
            or isinstance(told, MissingFact)
            or any(isinstance(d, SilentDevice) for d in told.values())
        ):
            unseen.append(answer.host)
        elif any(told.values()):
            held.append(answer.host)
    return held, unseen

"""A host of the lab that loses everything of a job without a word, as when it loses power."""

import time

from tests.lab import Host
from tests.support.cases import from_cases

SILENT = from_cases(__file__, "SILENT", str)


def lose_everything(host: Host, program: str) -> None:
    """`program`: a pattern of the command lines of the job, which must not match itself."""
    host.do("echo 1 >/proc/sys/net/ipv4/tcp_orphan_retries")
    host.do('pkill -STOP -f "$1"', program)
    time.sleep(1.5)  # what was on its way has arrived
    host.nft(SILENT)
    host.do('pkill -KILL -f "$1"', program)
    gone = "ss -tanH | grep -vE ':22 ' | grep -q . && echo left || echo none"
    host.await_that(lambda: host.do(gone).strip() == "none", "end of its connections")
    host.do("nft delete table inet silent")

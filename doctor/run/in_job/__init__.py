"""`--in-job`: the ranks of a job that is already there examine its hosts, without SSH.

Rank 0 leads: it waits for the others on a port of our own, runs the examination over the connections that
they made, and sends all of them the one exit code. The first rank of each host runs there what SSH would have
run.

rank_env         which rank this process is, by the variables of its launcher
wire             frames between two ranks, and how they know each other
listener         where rank 0 listens for the others
hub              rank 0's end: who came, who is silent, what is asked of whom
programs         the programs that a rank runs for rank 0
member           every other rank: come, serve, wait for the verdict
relay            the transport over the hub
relayed_program  one program on the host of another rank
proc             what the kernel says of a rank
absent           ranks that are not there, in words
lead             rank 0: meet, examine, tell
"""

from doctor.run.in_job.enter import in_job

__all__ = ["in_job"]

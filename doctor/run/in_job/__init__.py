"""`--in-job`: the ranks of a job that is already there examine its hosts, without SSH.

Rank 0 leads: it waits for the others on a port of our own, runs the examination over the connections that
they made, and sends all of them the one exit code. The first rank of each host runs there what SSH would have
run; it makes that itself, out of rank 0's questions.

rank_env         which rank this process is, by the variables of its launcher
job_key          the secret that its user gave the job
handshake        how two ranks know each other, and the seals of what they say
wire             frames between them
socket_owner     which user of this host is at the other end
listener         where rank 0 listens for the others
find_head        where the others find it
hub              rank 0's end: who came, who is silent, what is asked of whom
own_programs     what a rank makes of rank 0's questions
programs         the programs that it runs for them
member           every other rank: come, answer, wait for the verdict
relay            the transport over the hub
relayed_program  one program on the host of another rank
proc             what the kernel says of a rank
absent           ranks that are not there, in words
lead             rank 0: meet, examine, tell
"""

from doctor.run.in_job.enter import in_job

__all__ = ["in_job"]

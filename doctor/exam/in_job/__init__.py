"""`--in-job`: the ranks of a running job examine its hosts, without SSH.

Rank 0 leads: it waits for the others on a port of our own, examines the hosts over their connections, and
sends all of them the same exit code. The first rank of each host runs what SSH would have run there; it
builds those programs itself from rank 0's questions.

rank_env         which rank this process is, by the variables of its launcher
job_key          the secret that the user gave the job
handshake        how two ranks recognise each other, and the seals of their messages
wire             frames between them
socket_owner     the user of this host at the other end
listener         where rank 0 listens for the others
find_head        where the others find rank 0
hub              rank 0's end: who arrived, who is silent, what each is asked
own_programs     how a rank turns rank 0's questions into programs
programs         the programs that it runs for them
member           every other rank: connect, answer, wait for the verdict
relay            the transport over the hub
relayed_program  one program on the host of another rank
proc             what the kernel shows about a rank
missing_ranks    missing ranks, in words
lead             rank 0: gather, examine, report
"""

from doctor.exam.in_job.enter import in_job

__all__ = ["in_job"]

"""`--in-job`: the ranks of a running job examine its hosts, without SSH.

Rank 0 leads (`lead`, `hub`): it waits for the others on a port of our own, examines the hosts over their
connections, and sends all of them the same exit code. The first rank of each host (`member`) runs what SSH
would have run there; it builds those programs itself from rank 0's questions.
"""

from doctor.exam.in_job.enter import in_job

__all__ = ["in_job"]

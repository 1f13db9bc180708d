"""A lab of real hosts on one machine: namespaces with their own network, disk, users, firewall and sshd.

    with Lab(4) as lab:
        lab["node3"].shm("64m")
        done = lab.doctor("check", "node[1-4]")
        assert "node3" in done.stdout

What can be real is real. What is emulated (hardware, kernel log, clock) says so in its docstring.
"""

from .errors import LabError
from .gpus import Gpus, fit_gpus
from .host import Host
from .lab import Lab
from .needs import missing, sweep
from .npus import Rack, fit_npus
from .snapshot import Snapshot

__all__ = ["Gpus", "Host", "Lab", "LabError", "Rack", "Snapshot", "fit_gpus", "fit_npus", "missing", "sweep"]

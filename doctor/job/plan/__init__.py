"""The job that the cluster is examined for: who, how many, which ports, which addresses, and who said so.

A plan is drafted from what the person gave, before any host was asked, and settled once with what the hosts
say of themselves. Everything later reads the settled plan and nothing else.
"""

from doctor.job.plan.draft import draft
from doctor.job.plan.interfaces import INTERFACE_VARIABLES, is_loopback, matching_interfaces
from doctor.job.plan.job import GUESSES, HCCL_PORTS_UP_TO_8_0, JobPlan, PlannedHost, ServersByName
from doctor.job.plan.settle import HostView, settle

__all__ = [
    "GUESSES",
    "HCCL_PORTS_UP_TO_8_0",
    "INTERFACE_VARIABLES",
    "HostView",
    "JobPlan",
    "PlannedHost",
    "ServersByName",
    "draft",
    "is_loopback",
    "matching_interfaces",
    "settle",
]

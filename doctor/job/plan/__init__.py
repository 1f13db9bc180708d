"""The plan of the job: hosts, ranks, ports and addresses, and the source of each.

A plan is drafted from what the person gave, before any host is asked, and settled once with the answers of
the hosts. Everything later reads only the settled plan.
"""

from doctor.job.plan.draft import draft
from doctor.job.plan.interfaces import (
    INTERFACE_VARIABLES,
    interface_with,
    is_loopback,
    is_untold,
    matching_interfaces,
    missing_interfaces,
)
from doctor.job.plan.job import (
    ASSUMED,
    GUESSES,
    HCCL_PORTS_UP_TO_8_0,
    NO_ACCELERATOR,
    RUNNING,
    JobPlan,
    PlannedHost,
    ServersByName,
)
from doctor.job.plan.offers import LIBRARIES, Offer
from doctor.job.plan.settle import DEFAULT, HostView, settle

"""A host with everything that can be done to it."""

from __future__ import annotations

from .firewall import Firewalls
from .login import Logins
from .snapshot import Snapshot, snapshot


class Host(Logins, Firewalls):
    """One host of the lab. Whatever changes it marks it, and `Lab.reset` boots it afresh."""

    def snapshot(self) -> Snapshot:
        """What runs, lies and listens here, beyond what a host at rest has."""
        return snapshot(self)

    def leftovers(self, before: Snapshot) -> Snapshot:
        """What is here and was not in `before`; false if there is nothing."""
        return self.snapshot() - before

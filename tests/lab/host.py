"""A host, and everything that can be done to it."""

from .firewall import Firewalls
from .login import Logins
from .snapshot import Snapshot, snapshot


class Host(Logins, Firewalls):
    """One host of the lab. Every change marks it, and `Lab.reset` reboots it."""

    def snapshot(self) -> Snapshot:
        """Its processes, files and listeners, beyond those of an idle host."""
        return snapshot(self)

    def leftovers(self, before: Snapshot) -> Snapshot:
        """What exists now and was not in `before`; false if there is nothing."""
        return self.snapshot() - before

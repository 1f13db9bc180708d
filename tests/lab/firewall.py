"""Every firewall that a host may run; each of them is real."""

from tests.support.cases import from_cases

from .machine import Machine

BLACKHOLE = from_cases(__file__, "BLACKHOLE", str)


class Firewalls(Machine):
    """The firewalls of a host; a host boots with none."""

    def nft(self, rules: str) -> None:
        """Load rules as `nft -f` reads them."""
        self.do("nft -f -", stdin=rules)

    def iptables(self, *rule: str, backend: str = "nft") -> None:
        """Run iptables, such as `iptables("-P", "INPUT", "DROP")`; the backend is nft or legacy."""
        self.do('"$@"', f"iptables-{backend}", *rule)

    def ufw_enable(self, *rules: str) -> None:
        """Switch ufw on; each rule is the text after `ufw` on a command line. SSH stays open."""
        for rule in ("allow 22/tcp", *rules):
            self.do(f"ufw {rule}")
        self.do("ufw --force enable")

    def firewalld_start(self, *rules: str) -> None:
        """Start firewalld on a D-Bus of its own; each rule is an option of firewall-cmd. SSH stays open."""
        self.do("mkdir -p /run/dbus /run/firewalld; dbus-daemon --system --fork")
        self.spawn(["firewalld", "--nofork", "--nopid"])
        self.await_that(
            lambda: self.ask("firewall-cmd --state").stdout.strip() == "running", "running firewalld"
        )
        for rule in rules:
            self.do(f"firewall-cmd {rule}")

    def blackhole(self) -> None:
        """Drop every packet in and out, SSH included: connections are neither accepted nor refused."""
        self.nft(BLACKHOLE)

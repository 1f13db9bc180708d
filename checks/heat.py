"""Heat: whether the processors of a host are held down more often than those of its peers."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median_low

from doctor.api import (
    Capture,
    Damage,
    Evidence,
    Fact,
    Place,
    Problem,
    Read,
    Scope,
    Severity,
    Skip,
    Sphere,
    check,
    files,
    maybe,
)

HOUR = 3600
A_MINUTE = 60
"""Times an hour: a processor that is held down less often is not named."""
FAR_ABOVE = 100
ENOUGH = 2
"""The number of other hosts that must be known."""
_COUNT = re.compile(r"/sys/devices/system/cpu/cpu\d{1,5}/thermal_throttle/package_throttle_count")


@dataclass(frozen=True, slots=True)
class Heat:
    """`heat`: how often a processor was held down for heat, or None if its host does not count that, in the
    `hours` since its start.
    """

    heat: int | None
    hours: int


def _heat(capture: Capture) -> Heat:
    found = files(capture)
    heat = [text.strip() for path, text in found.items() if _COUNT.fullmatch(path)]
    up = re.match(r"\d{1,12}(?:\.\d{1,6})?(?= )", found.get("/proc/uptime", ""))
    return Heat(
        max((int(each) for each in heat if re.fullmatch(r"\d{1,18}", each)), default=None),
        int(float(up[0])) // HOUR if up else 0,
    )


# Each processor of a package shows the count of the package: every tenth is enough to see each.
HEAT = Fact(
    "heat",
    Read(
        (
            "/sys/devices/system/cpu/cpu*0/thermal_throttle/package_throttle_count",
            "/proc/uptime",
        )
    ),
    _heat,
)


@check(
    "cpu-throttled",
    maybe(HEAT),
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    several_hosts=True,
    sphere=Sphere.HOST,
)
def cpu_throttled(heat: Mapping[str, Heat]) -> Iterator[Problem]:
    """The processors of a host are held down for heat far more often than those of the other hosts.

    Why it matters: they compute slower than those of the other hosts, and all ranks wait for this host.

    How it is known: the kernel counts since the start of the host how often a package was held down
    (package_throttle_count). A host is named if that happened once a minute or more, and a hundred times as
    often as on the other hosts. Hosts without the counter, such as virtual machines, are not compared.

    What to do: look at fans, filters and the temperature of the air; the log of the BMC names a fan that
    failed.
    """
    rates = {host: own.heat / max(own.hours, 1) for host, own in heat.items() if own.heat is not None}
    if len(rates) <= ENOUGH:
        raise Skip("fewer than three hosts count how often their processors are held down")
    for host, rate in rates.items():
        usual = median_low(other for name, other in rates.items() if name != host)
        if rate >= A_MINUTE and rate >= FAR_ABOVE * usual:
            yield Problem(
                "its processors are held down for heat",
                expected=f"{usual:.0f} times an hour, as on the other hosts",
                actual=f"{rate:.0f} times an hour",
                hosts=(host,),
                where=(Place(host=host),),
                evidence=(
                    Evidence(
                        "/sys/devices/system/cpu/cpu*/thermal_throttle/package_throttle_count",
                        f"{heat[host].heat}",
                    ),
                ),
                commands=("# Compare its temperatures and fans with those of another host, in the BMC.",),
            )

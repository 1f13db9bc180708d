"""What the ranks of each host would offer to their peers, from the facts of the hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from doctor.facts.network import UNNAMED, Counters, ResolvedNames
from doctor.job.plan import LIBRARIES, JobPlan, Offer, is_loopback
from doctor.model import Backend
from doctor.rules.login import environment_of


def offers_of(
    plan: JobPlan,
    names: Mapping[str, ResolvedNames],
    addresses: Mapping[str, Mapping[str, Sequence[str]]],
    environments: Mapping[str, Mapping[str, str]],
    links: Mapping[str, Mapping[str, Counters]],
) -> dict[str, Offer]:
    """Without hosts for which the library's rules do not tell; none if a rank table gives the addresses."""
    if plan.backend.value is Backend.HCCL and (plan.servers or plan.told_tables):
        return {}
    library = LIBRARIES[plan.backend.value]
    offers = {}
    for host in filter(addresses.__contains__, names):
        down = {name for name, link in links.get(host, {}).items() if link.down} if library.emulated else ()
        interfaces = {
            "" if name == UNNAMED else name: held
            for name, held in addresses[host].items()
            if name not in down
        }
        own = names[host].addresses.get(names[host].own, ())
        if offer := library.offer(environment_of(plan, environments.get(host)), interfaces, own):
            offers[host] = offer
    return offers


def offers_to_try(plan: JobPlan, offers: Mapping[str, Offer]) -> dict[str, str]:
    """Host -> an address that its peers may reach and that is not its data address, which is tried anyway."""
    return {
        host: offer.address
        for host, offer in offers.items()
        if not is_loopback(offer.address) and offer.address != plan.data_address(host)
    }

"""What the ranks of each host would offer to their peers, from the facts of the hosts."""

from collections.abc import Mapping, Sequence

from doctor.facts.network import UNNAMED, Counters, ResolvedNames
from doctor.facts.software import Environment
from doctor.job.plan import LIBRARIES, JobPlan, Offer, interface_with, is_loopback
from doctor.model import Backend
from doctor.rules.login import environment_of


def names_data_address(plan: JobPlan, host: str) -> bool:
    """Whether the inventory says which address ranks use, and no launch is known that may say otherwise."""
    data = plan.host(host).data
    return data is not None and data.source == "inventory" and not plan.launch


def offer_of(
    plan: JobPlan,
    host: str,
    names: ResolvedNames,
    addresses: Mapping[str, Sequence[str]],
    login: Environment | None,
    links: Mapping[str, Counters] | None,
) -> Offer | None:
    """What the ranks of a host offer; None if the library's rules leave it open or something else decides."""
    if plan.carrier.value == "mccl":
        return None  # its ranks use the address from which they reach the scheduler
    if plan.backend.value is Backend.HCCL and (plan.servers or plan.told_tables):
        return None
    library = LIBRARIES[plan.backend.value]
    down = {name for name, link in (links or {}).items() if link.down} if library.emulated else set[str]()
    interfaces = {
        "" if name == UNNAMED else name: held for name, held in addresses.items() if name not in down
    }
    env, data = environment_of(plan, login), plan.data_address(host)
    if data and names_data_address(plan, host) and not env.get(library.variable):
        return Offer(data, interface_with(data, interfaces), "data: of the inventory")
    return library(env, interfaces, names.addresses.get(names.own, ()))


def offers_of(
    plan: JobPlan,
    names: Mapping[str, ResolvedNames],
    addresses: Mapping[str, Mapping[str, Sequence[str]]],
    logins: Mapping[str, Environment],
    links: Mapping[str, Mapping[str, Counters]],
) -> dict[str, Offer]:
    """Host -> what its ranks offer, for the hosts for which this is known."""
    offers = {
        host: offer_of(plan, host, names[host], addresses[host], logins.get(host), links.get(host))
        for host in filter(addresses.__contains__, names)
    }
    return {host: offer for host, offer in offers.items() if offer}


def offers_to_try(plan: JobPlan, offers: Mapping[str, Offer]) -> dict[str, str]:
    """If peers may reach it and it is not the data address, which is tried anyway."""
    return {
        host: offer.address
        for host, offer in offers.items()
        if not is_loopback(offer.address) and offer.address != plan.data_address(host)
    }

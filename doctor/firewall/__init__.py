"""Would this host's firewall let a connection through, and which rule decides? Pure: reads tools' output.

rules = combine(parse_nft(nft_json), parse_iptables_save(save, "ip") + parse_iptables_save(save6, "ip6"))
spans = rules.decide_ports("10.0.0.2", "10.0.0.1", 29500, 29507, "eth0", (32768, 60999))
blocked = [span for span in spans if span.decision.blocked]
"""

from doctor.firewall.decide import Ruleset, combine
from doctor.firewall.decision import Action, Decision, Manager
from doctor.firewall.doors import opening
from doctor.firewall.iptables import parse_iptables_save
from doctor.firewall.nft import parse_nft
from doctor.firewall.rules import RuleTable

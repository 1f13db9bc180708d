"""The rule sets of the host's firewall, as one rule set that can be asked.

Reading must not change the host: legacy iptables is only listed where its tables are already loaded, because
listing them would load them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from doctor.api import Capture, Fact, NotUnderstood, Run
from doctor.firewall import Decision, Manager, Ruleset, combine, parse_iptables_save, parse_nft

__all__ = ["RULES", "Decision", "Manager", "Ruleset"]

RULES_COMMAND = "echo placeholder"
RULES: Fact[Ruleset] = Fact("firewall", Run(RULES_COMMAND), lambda capture: Ruleset())

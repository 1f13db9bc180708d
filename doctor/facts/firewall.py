"""The rule sets of the host's firewall, combined into one.

Reading must not change the host, but listing the rules of a kernel module loads it. So nft is called only if
nf_tables is already loaded, and legacy iptables only if its tables exist; otherwise there are no rules.
iptables' own view of nft tables is read only if nft shows such tables.
"""

from doctor.api import Capture, Fact, Run, UnreadableOutput
from doctor.firewall import Decision, Ruleset, combine, parse_iptables_save, parse_nft
from doctor.text.hostprogram import host_program

__all__ = ["RULES", "Decision", "Ruleset"]

# Sections, each headed by "== NAME" and ended by "== end RC".
_RULES = host_program(__file__, "firewall.sh")


def _rules(capture: Capture) -> Ruleset:
    sections = _sections(capture.stdout)
    saved = [
        table
        for name, text in sections.items()
        if name not in ("nft", "chains")
        for table in parse_iptables_save(
            text, "ip6" if name.startswith("ip6") else "ip", f"iptables-{name.rpartition('-')[2]}"
        )
    ]
    return combine(parse_nft(sections.get("nft", ""), sections.get("chains", "")), saved)


def _sections(text: str) -> dict[str, str]:
    """The sections by name. One that failed makes all unreadable, because half a rule set decides nothing."""
    found: dict[str, str] = {}
    name, lines = "", list[str]()
    for line in text.splitlines():
        if line.startswith("== end "):
            if line != "== end 0":
                raise UnreadableOutput(f"{name} could not list its rules (it ended with {line[7:20]})")
            found[name] = "\n".join(lines)
            name = ""
        elif line.startswith("== ") and not name:
            name, lines = line[3:], []
        else:
            lines.append(line)
    if name:
        raise UnreadableOutput("the list of rules is incomplete")
    return found


RULES: Fact[Ruleset] = Fact("firewall", Run(_RULES), _rules, needs_root=True, cap=2 << 20, ends=True)

"""The rule sets of the host's firewall, combined into one.

Reading must not change the host, but listing the rules of a kernel module loads it. So nft is called only if
nf_tables is already loaded, and legacy iptables only if its tables exist; otherwise there are no rules.
iptables' own view of nft tables is read only if nft shows such tables.
"""

from __future__ import annotations

from doctor.api import Capture, Fact, Run, UnreadableOutput
from doctor.firewall import Decision, Ruleset, combine, parse_iptables_save, parse_nft

__all__ = ["RULES", "Decision", "Ruleset"]

# Sections, each headed by "== NAME" and ended by "== end RC".
_RULES = r"""
part() { echo "== $1"; shift; "$@"; echo "== end $?"; }
have() { command -v "$1" >/dev/null 2>&1; }
have nft || have iptables-save || exit 127
there() {
  [ ! -e /sys/module/nf_tables ] && [ -e /proc/modules ] || return 0
  grep -q '^nf_tables ' /proc/modules && return
  b=/lib/modules/$(uname -r)/modules.builtin
  if [ -e $b ]; then grep -q '/nf_tables\.ko' $b; else grep -q nf_tables_newtable /proc/kallsyms; fi
}
n=none
if there; then
  n=
  have nft || have iptables-nft-save || exit 127
  if have nft; then
    n=$(nft -j list ruleset); r=$?
    printf '== nft\n%s\n== end %s\n' "$n" "$r"
    case $n in
      *'"hook": "ingress"'*|*'"hook": "egress"'*) part chains nft list chains;;
    esac
  fi
fi
for t in iptables ip6tables; do
  f=ip; [ $t = iptables ] || f=ip6
  case $n in
    ''|*'{"table": {"family": "'$f'",'*) have $t-nft-save && part $t-nft $t-nft-save;;
  esac
  if { read -r x </proc/net/${f}_tables_names; } 2>/dev/null; then
    s=$t-legacy-save; have $s || s=$t-save
    part $t-legacy $s
  fi
done
:
"""


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

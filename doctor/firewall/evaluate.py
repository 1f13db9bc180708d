"""Send one packet through the base chains of a hook, down every branch that cannot be excluded.

An undecidable condition splits the path into one with it and one without it. Paths with the same state are
merged at once, so the work grows with the rules and not with the number of doubts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from doctor.firewall import rules
from doctor.firewall.packet import Packet, PacketState
from doctor.firewall.values import WORD, Bits, InterfaceNames, MaskedSpans, Truth

MAX_DEPTH = 64
MAX_STATES = 64


class BudgetExceeded(Exception):
    """The evaluation exceeded its budget."""


@dataclass(frozen=True, slots=True)
class RulePlace:
    """The rule (or the policy) that decided."""

    table: rules.RuleTable
    chain: str
    rule: str
    base: rules.Chain
    """The base chain from which the kernel came to that chain."""


@dataclass(frozen=True, slots=True)
class PacketPath:
    """How a state was reached: its first doubt, whether that `varies` with the traffic, the last rule."""

    doubt: str = ""
    place: RulePlace | None = None
    varies: bool = False


@dataclass(slots=True)
class Fate:
    """Where the packet can end: `ends` are final outcomes, `alive` the states in which it travels on."""

    alive: dict[PacketState, PacketPath] = field(default_factory=dict)
    ends: dict[rules.VerdictKind, PacketPath] = field(default_factory=dict)

    def live(self, state: PacketState, way: PacketPath) -> None:
        known = self.alive.get(state)
        if known is None or (known.doubt and not way.doubt):
            self.alive[state] = way

    def end(self, kind: rules.VerdictKind, way: PacketPath) -> None:
        known = self.ends.get(kind)
        if known is None or (known.doubt and not way.doubt):
            self.ends[kind] = way


@dataclass(slots=True)
class Budget:
    """How many comparisons one question may cost, so that hostile rules cannot stop the program."""

    left: int = 2_000_000

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise BudgetExceeded


@dataclass(slots=True)
class Walk:
    """One packet in one base chain of one table."""

    table: rules.RuleTable
    base: rules.Chain
    hook: rules.Hook
    packet: Packet
    budget: Budget
    fate: Fate = field(default_factory=Fate)

    def whole(self, states: dict[PacketState, PacketPath]) -> Fate:
        """Run the base chain on a packet in any of the states; `fate.alive` are those in which it accepts."""
        policy = RulePlace(self.table, self.base.name, f"policy {self.hook.policy.value}", self.base)
        for state, way in self.run(self.base, states, 0).items():
            spoke = way.place if self.hook.policy is rules.VerdictKind.ACCEPT and way.place else policy
            self.settle(self.hook.policy, state, replace(way, place=spoke))
        if not self.fate.ends and self.fate.alive.keys() == states.keys():  # its doubts decided nothing
            for state, way in states.items():
                self.fate.alive[state] = replace(way, place=self.fate.alive[state].place)
        return self.fate

    def settle(self, kind: rules.VerdictKind, state: PacketState, way: PacketPath) -> None:
        if kind is rules.VerdictKind.ACCEPT:
            self.fate.live(state, way)
        else:
            self.fate.end(kind, way)

    def run(
        self, chain: rules.Chain, states: dict[PacketState, PacketPath], depth: int
    ) -> dict[PacketState, PacketPath]:
        """The states that reach the end of the chain without a verdict."""
        if depth > MAX_DEPTH:
            raise BudgetExceeded
        back = Fate()
        here = states
        for rule in chain.rules:
            after = Fate()
            for state, way in here.items():
                self.rule(chain, rule, state, way, depth, after, back)
            here = after.alive
            if len(here) > MAX_STATES:
                here = {state.blurred(): way for state, way in here.items()}
            if not here:
                break
        for state, way in here.items():
            back.live(state, way)
        return back.alive

    def rule(
        self,
        chain: rules.Chain,
        rule: rules.Rule,
        state: PacketState,
        way: PacketPath,
        depth: int,
        after: Fate,
        back: Fate,
    ) -> None:
        """Apply one rule to one state: what goes on joins `after`, what leaves the chain joins `back`."""
        place = RulePlace(self.table, chain.name, rule.text, self.base)
        for number, step in enumerate(rule.steps):
            self.budget.spend()
            if isinstance(step, rules.SetMark | rules.Untrack):
                state = self.change(step, state)
                continue
            onward: PacketPath | None = None
            for verdict, doubt in self.outcomes(step, state):
                branch = way
                if doubt:
                    weighed = self.weigh(rule.steps[number:], state)
                    if weighed is None:
                        after.live(state, way)
                        return
                    if not way.doubt:
                        words = f"`{rule.text}` depends on {weighed.why}"
                        branch = PacketPath(words, way.place, weighed.varies)
                if verdict is None:
                    after.live(state, branch)
                elif verdict.kind is rules.VerdictKind.CONTINUE:
                    onward = branch
                else:
                    self.follow(verdict, state, branch, place, depth, after, back)
            if onward is None:
                return
            way = onward
        after.live(state, way)

    def weigh(self, steps: Sequence[rules.Step], state: PacketState) -> rules.DoubtfulCondition | None:
        """What the rest of a rule depends on; None if the rest only logs, or is about another port.

        It varies with the traffic only if the rule is about every packet in question, not about a few ports.
        """
        found: list[rules.DoubtfulCondition] = []
        partly = False
        for step in steps:
            if isinstance(step, rules.DoubtfulCondition):
                found.append(step)
            elif isinstance(step, rules.Compare):
                truth = self.compare(step, state)
                if truth is False:
                    return None
                if truth is None:
                    partly = True
                    found.append(rules.DoubtfulCondition(step.why))
            else:
                found += [rules.DoubtfulCondition(step.why)] if isinstance(step, rules.VerdictMap) else []
                first = found[0]
                return replace(first, varies=False) if partly else next((d for d in found if d.varies), first)
        return None

    def outcomes(
        self, step: rules.Step, state: PacketState
    ) -> Iterator[tuple[rules.RuleVerdict | None, rules.DoubtfulCondition | None]]:
        """Each possible outcome of a step, with what it depends on; an outcome of None leaves the rule."""
        if isinstance(step, rules.RuleVerdict):
            yield step, None
        elif isinstance(step, rules.DoubtfulCondition):
            yield None, step
            yield rules.RuleVerdict(rules.VerdictKind.CONTINUE), step
        elif isinstance(step, rules.Compare):
            truth = self.compare(step, state)
            doubt = rules.DoubtfulCondition(step.why) if truth is None else None
            if truth is not True:
                yield None, doubt
            if truth is not False:
                yield rules.RuleVerdict(rules.VerdictKind.CONTINUE), doubt
        elif isinstance(step, rules.VerdictMap):
            yield from self.look_up(step, state)

    def look_up(
        self, step: rules.VerdictMap, state: PacketState
    ) -> Iterator[tuple[rules.RuleVerdict | None, rules.DoubtfulCondition | None]]:
        possible = []
        for element, verdict in step.elements:
            truth = self.holds(step.fields, element, state)
            if truth is True:
                yield verdict, None
                return
            if truth is None:
                possible.append(verdict)
        default = None if step.otherwise.kind is rules.VerdictKind.CONTINUE else step.otherwise
        for choice in (*possible, default):
            yield choice, rules.DoubtfulCondition(step.why) if possible else None

    def follow(
        self,
        verdict: rules.RuleVerdict,
        state: PacketState,
        way: PacketPath,
        place: RulePlace,
        depth: int,
        after: Fate,
        back: Fate,
    ) -> None:
        """Apply a verdict; only a final one counts as the rule that decided."""
        if verdict.kind is rules.VerdictKind.RETURN:
            back.live(state, way)
        elif verdict.kind in (rules.VerdictKind.JUMP, rules.VerdictKind.GOTO):
            target = self.table.chains.get(verdict.target)
            if target is None:
                doubt = f"the chain {verdict.target} is not listed"
                self.fate.end(rules.VerdictKind.UNKNOWN, PacketPath(doubt, place))
                return
            joined = after if verdict.kind is rules.VerdictKind.JUMP else back
            for left, came in self.run(target, {state: way}, depth + 1).items():
                joined.live(left, came)
        else:
            self.settle(verdict.kind, state, PacketPath(way.doubt or verdict.why, place, way.varies))

    def compare(self, step: rules.Compare, state: PacketState) -> Truth:
        truth: Truth = False
        for element in step.elements:
            one = self.holds(step.fields, element, state)
            if one is True:
                return not step.negate
            if one is None:
                truth = None
        return None if truth is None else step.negate

    def holds(
        self, fields: Sequence[rules.Field], element: Sequence[rules.Matcher], state: PacketState
    ) -> Truth:
        """Whether every part of one element holds."""
        truth: Truth = True
        self.budget.spend()
        for name, matcher in zip(fields, element, strict=True):
            one = self.part(name, matcher, state)
            if one is False:
                return False
            if one is None:
                truth = None
        return truth

    def part(self, name: rules.Field, matcher: rules.Matcher, state: PacketState) -> Truth:
        if matcher is None:
            return None
        if isinstance(matcher, InterfaceNames):
            return matcher.holds(self.packet.name(name))
        if isinstance(matcher, MaskedSpans):
            return matcher.holds(self.bits(name, state))
        if name in (rules.Field.MARK, rules.Field.CTMARK, rules.Field.FLAGS):
            return MaskedSpans(WORD, matcher).holds(self.bits(name, state))
        if name is rules.Field.STATE:
            return matcher.holds(state.connection(self.packet, self.hook.priority))
        return matcher.holds(self.packet.number(name))

    def bits(self, name: rules.Field, state: PacketState) -> Bits:
        if name is rules.Field.MARK:
            return state.mark
        if name is rules.Field.CTMARK:
            return state.ctmark
        if name is rules.Field.FLAGS:
            return self.packet.flags
        low, high = (
            state.connection(self.packet, self.hook.priority)
            if name is rules.Field.STATE
            else self.packet.number(name)
        )
        return Bits(low) if low == high else Bits(0, 0)

    def change(self, step: rules.SetMark | rules.Untrack, state: PacketState) -> PacketState:
        if isinstance(step, rules.Untrack):
            if self.hook.priority > -200 or state.tracked is not True:
                return state
            # A packet over the loopback was tracked on its way out, so notrack has no effect.
            unsure = self.hook.priority == -200 or (self.packet.loopback and self.packet.incoming)
            return replace(state, tracked=None if unsure else False)
        old = state.mark if step.field is rules.Field.MARK else state.ctmark
        if step.clear is None:
            new = Bits(0, 0)
        else:
            start = old if step.source is None else self.bits(step.source, state)
            new = start.replace(step.clear, Bits(0)).flip(step.flip)
        return replace(state, mark=new) if step.field is rules.Field.MARK else replace(state, ctmark=new)

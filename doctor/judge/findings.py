"""Results -> findings: equal ones folded over hosts, symptoms linked to causes, the most damage first."""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from doctor import model
from doctor.api import Check, grouped
from doctor.judge.causes import link_causes
from doctor.judge.waived import Waive
from doctor.text.nodeset import fold

IN_CONTAINER = "-in-container"
"""The suffix of a remedy's id that replaces it inside a container."""
OUTSIDE = "# On the host, outside of the container:"
_ORDER = {
    model.Status.FAIL: 0,
    model.Status.CRASH: 1,
    model.Status.WARN: 2,
    model.Status.UNKNOWN: 3,
    model.Status.WAIVED: 4,
}
_DAMAGE = tuple(model.Damage)
FillRemedy = Callable[[str, model.Values, Container[str]], model.Remedy | None]
Vendors = Mapping[str, frozenset[str]]
"""Host -> names of the vendors whose devices it has."""


@dataclass(frozen=True, slots=True)
class Views:
    """Where each host was seen from, and whether a fault seen there belongs to the host or the container.

    `sharing` are the containers without a network of their own.
    """

    views: Mapping[str, model.View]
    sharing: Container[str] = ()

    def seen_from(self, result: model.Result) -> model.View:
        return self.views.get(result.hosts[0], model.View.HOST) if result.hosts else model.View.HOST

    def whose(self, result: model.Result, check: Check | None) -> model.View:
        seen = self.seen_from(result)
        if result.problem is None:
            return seen
        of_host = check is not None and (
            check.sphere is model.Sphere.HOST
            or (check.sphere is model.Sphere.NETWORK and result.hosts[:1] and result.hosts[0] in self.sharing)
        )
        return result.problem.view or (model.View.HOST if of_host else seen)


def fold_findings(
    results: Sequence[model.Result],
    checks: Mapping[str, Check],
    sights: Views,
    fill: FillRemedy,
    vendors: Vendors = MappingProxyType({}),
    waive: Waive = lambda result: [result],
) -> tuple[tuple[model.Finding, ...], tuple[model.Result, ...]]:
    """As they are waived. Causes are linked before: whom one clears is not accused because it is known."""
    folder = _Folder(checks, sights, fill, vendors)
    groups: dict[object, list[model.Result]] = {}
    for number, result in enumerate(results):
        if result.status not in (model.Status.PASS, model.Status.SKIP):
            groups.setdefault(folder.key(result) or number, []).append(result)
    numbered = {str(number): group for number, group in enumerate(groups.values())}
    linked = link_causes([folder.finding(name, group) for name, group in numbered.items()], checks)
    parts = {id(own): [*waive(_narrowed(own, each))] for each in linked for own in numbered[each.id]}
    made: dict[str, list[model.Finding]] = defaultdict(list)
    for each in linked:
        by_waiver = grouped((part.waiver, part) for own in numbered[each.id] for part in parts[id(own)])
        for n, alike in enumerate(by_waiver.values()):
            made[each.id].append(replace(folder.finding(f"{each.id}/{n}", alike), because=each.because))
    apart = [
        replace(f, because=_part_of(made[f.because], f)) if f.because else f
        for several in made.values()
        for f in several
    ]
    ordered = _order(apart, checks)
    numbers = {finding.id: f"f{n}" for n, finding in enumerate(ordered, 1)}
    found = tuple(replace(f, id=numbers[f.id], because=numbers.get(f.because or "")) for f in ordered)
    return found, tuple(row for result in results for row in _rows(result, parts.get(id(result), ())))


def _narrowed(result: model.Result, finding: model.Finding) -> model.Result:
    """The result, without the suspects whom the cause of its finding clears."""
    problem = result.problem
    if problem is None or problem.confidence is finding.confidence:
        return result
    own = replace(problem, summary=finding.summary, confidence=finding.confidence, hosts=finding.hosts)
    return replace(result, hosts=finding.hosts, problem=own)


def _rows(result: model.Result, parts: Sequence[model.Result]) -> Sequence[model.Result]:
    """The result as it is waived. It also keeps cleared suspects: they were looked at."""
    whole = len(parts) == 1
    return [replace(result, status=parts[0].status, waiver=parts[0].waiver)] if whole else parts or [result]


def _part_of(cause: Sequence[model.Finding], symptom: model.Finding) -> str:
    """The part of the cause that is on the hosts of the symptom."""
    return next((each for each in cause if {*each.hosts} >= {*symptom.hosts}), cause[0]).id


@dataclass(frozen=True, slots=True)
class _Folder:
    """Makes findings of results."""

    checks: Mapping[str, Check]
    sights: Views
    fill: FillRemedy
    vendors: Vendors

    def key(self, result: model.Result) -> object:
        """Results with equal keys are one fault; a fault that names several culprits is not folded."""
        problem = result.problem
        if problem is None:
            return (result.check, result.status, result.reason, result.essential)
        if len(result.hosts) != 1:
            return None
        words = (problem.summary, problem.subject, problem.expected, problem.actual, problem.confidence)
        view = (self.sights.seen_from(result), self.sights.whose(result, self.checks.get(result.check)))
        return (result.check, result.status, view, words, tuple(sorted(problem.values.items())))

    def finding(self, id: str, group: Sequence[model.Result]) -> model.Finding:
        first = group[0]
        hosts = tuple(dict.fromkeys(host for result in group for host in result.hosts))
        problem = first.problem or model.Problem(first.reason or "")
        check = self.checks.get(first.check)
        view, seen_from = self.sights.whose(first, check), self.sights.seen_from(first)
        remedy = self._remedy(problem, check, view, hosts) if first.problem else None
        if remedy and view is not seen_from:  # it is fixed on the host, although it was seen inside
            remedy = replace(remedy, commands=(OUTSIDE, *remedy.commands))
        return model.Finding(
            id=id,
            check=first.check,
            status=first.status,
            hosts=hosts,
            nodeset=fold(hosts),
            subject=problem.subject,
            where=tuple(place for result in group for place in _places(result)),
            view=view,
            confidence=problem.confidence,
            summary=problem.summary,
            expected=problem.expected,
            actual=problem.actual,
            evidence=problem.evidence,
            remedy=remedy,
            because=None,
            seen_from=seen_from,
            essential=first.essential,
            waiver=first.waiver,
        )

    def _remedy(
        self, problem: model.Problem, check: Check | None, view: model.View, hosts: Sequence[str]
    ) -> model.Remedy | None:
        if problem.commands:
            return model.Remedy(f"by-hand-{check.id}" if check else "by-hand", problem.commands)
        name = problem.remedy or (check.remedy if check else None)
        if name is None:
            return None
        there = frozenset().union(*(self.vendors.get(host, ()) for host in hosts or self.vendors))
        values = {**({"hosts": fold(hosts)} if hosts else {}), **problem.values}
        inside = self.fill(f"{name}{IN_CONTAINER}", values, there) if view is model.View.CONTAINER else None
        return inside or self.fill(name, values, there)


def _places(result: model.Result) -> tuple[model.Place, ...]:
    if result.problem and result.problem.where:
        lone = result.hosts[0] if len(result.hosts) == 1 else None
        return tuple(p if p.host else replace(p, host=lone) for p in result.problem.where)
    return tuple(model.Place(host=host) for host in result.hosts)


def _order(found: Sequence[model.Finding], checks: Mapping[str, Check]) -> list[model.Finding]:
    """Faults come before warnings. Within each, the order is: the most damage first, findings without a
    culprit before those with one, and many hosts before few. Each symptom comes right after its cause.
    """
    hosts = Counter[tuple[str, model.Status]]()
    for finding in found:
        hosts[finding.check, finding.status] += len(finding.hosts)

    def place(finding: model.Finding) -> tuple[int, ...]:
        check = checks.get(finding.check)
        damage = _DAMAGE.index((check and check.damage) or model.Damage.RISK)
        number = hosts[finding.check, finding.status]
        return _ORDER[finding.status], damage, bool(finding.hosts), -number, -len(finding.hosts)

    ranked = sorted(found, key=place)
    # A fault does not stand behind what is waived.
    known = {finding.id for finding in found if finding.status is not model.Status.WAIVED}
    behind = grouped((finding.because, finding) for finding in ranked if finding.because in known)
    ordered: list[model.Finding] = []

    def put(finding: model.Finding) -> None:
        ordered.append(finding)
        for symptom in behind.get(finding.id, ()):
            put(symptom)

    for finding in ranked:
        if finding.because not in known:
            put(finding)
    return ordered

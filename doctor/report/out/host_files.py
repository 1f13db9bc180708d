"""`--per-host`: the report of a run, as each host's own."""

from collections.abc import Iterator
from dataclasses import replace

from doctor.judge.verdict import Report
from doctor.model import Finding
from doctor.report.out.file_names import host_file
from doctor.report.out.formats import json_of
from doctor.text.grouped import grouped


def host_files(report: Report) -> Iterator[tuple[str, bytes]]:
    """The name and content of each host's file. All is sorted by host once: there may be thousands."""
    results = grouped((host, replace(each, hosts=(host,))) for each in report.results for host in each.hosts)
    findings = grouped((host, _on(host, each)) for each in report.findings for host in each.hosts)
    for each in report.hosts:
        found = findings.get(each.name, ())
        named = {finding.id for finding in found}
        rows = (row for row in report.seen.facts if each.name in row.values)
        facts = tuple(replace(row, values={each.name: row.values[each.name]}) for row in rows)
        own = replace(
            report,
            hosts=(each,),
            results=tuple(results.get(each.name, ())),
            findings=tuple(
                finding if finding.because in named else replace(finding, because=None) for finding in found
            ),
            seen=replace(report.seen, facts=facts),
            rules=replace(report.rules, need_hosts=None),
        )
        yield host_file(each.name), json_of(own)


def _on(host: str, finding: Finding) -> Finding:
    where = tuple(place for place in finding.where if place.host in (None, host))
    return replace(finding, hosts=(host,), nodeset=host, where=where)

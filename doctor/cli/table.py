"""`doctor ranktable`: checks a table by itself, and makes a table of the live devices."""

import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, cast

from doctor.api import Fact
from doctor.cli.defaults import with_defaults
from doctor.errors import EXIT_INCONCLUSIVE, DoctorError, UsageError, suggest
from doctor.exam.examination import run_and_judge
from doctor.exam.request import Request
from doctor.expect import Expect
from doctor.facts.ascend.network import NPU_ADDRESSES, Address
from doctor.facts.ascend.npu_smi_card import NPU_SUPER_POD
from doctor.facts.system import DEVICES
from doctor.facts.tables import ARCHITECTURE, RANK_TABLE, JobTable
from doctor.job.plan import JobPlan, draft
from doctor.job.ranktable import PRODUCTS, LiveDevice, LiveServer, implied_product, make_table, read_table
from doctor.job.wishes import JobWishes
from doctor.judge.engine import Facts, Inputs, judge
from doctor.judge.findings import Views, fold_findings
from doctor.judge.playbook import load_remedies
from doctor.judge.registry import find_checks
from doctor.judge.verdict import ExaminedChecks, Report, Rules, RunInfo
from doctor.model import Host, MissingFact, Scope, Status, Verdict
from doctor.report.out.formats import Outputs
from doctor.report.out.outputs import deliver, refuse_unwritable, show
from doctor.targets.inventory import table_file
from doctor.text.announce import announce
from doctor.text.nodeset import fold
from doctor.text.outfile import write_file
from doctor.text.terminal import put

FORMS = ("1.0", "legacy", "1.2")
UNKNOWN_PRODUCT = (
    "what the product requires of the number, choice and addresses of devices: "
    f"the table does not name its product (--product {'|'.join(PRODUCTS)})"
)
MORE: tuple[Fact[Any], ...] = (DEVICES, NPU_ADDRESSES, NPU_SUPER_POD, ARCHITECTURE)


def check_table(path: Path, outputs: Outputs, product: str | None = None) -> int:
    """Judges a table by its content: no host is contacted, and none is called healthy."""
    if product is not None and product not in PRODUCTS:
        raise UsageError(
            f"--product: there is no {product!r}. {suggest(product, PRODUCTS)}".strip(),
            f"There are {', '.join(PRODUCTS)}.",
        )
    refuse_unwritable(outputs, {})
    file = table_file(path, str(path))
    table, flaws = read_table(file.text)
    plan = draft(tuple(Host(id, id) for id in table.server_ids) if table else (), JobWishes(table=file))
    checks = [
        check
        for check in find_checks().checks
        if RANK_TABLE in check.needs and not any(isinstance(need, Fact) for need in check.needs)
    ]
    seen = JobTable(file.path, file.text, table, flaws, given=True, checksum=file.checksum, product=product)
    given = {"plan": plan, RANK_TABLE.name: seen}
    results = judge(checks, Inputs(plan, Facts({}), {}, Expect(), given, {}))
    started = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    report = Report(
        run=RunInfo("ranktable check", "ranktable", started, 0.0, "none"),
        plan=plan,
        hosts=(),
        findings=fold_findings(results, {c.id: c for c in checks}, Views({}), load_remedies().fill)[0],
        results=tuple(results),
        checks=ExaminedChecks({check.id: Scope.CLUSTER for check in checks}),
        rules=Rules(),
        notes=(
            *(() if product or not table or implied_product(table) else (UNKNOWN_PRODUCT,)),
            "the hosts themselves: name them after the file to compare it with their devices",
        ),
    )
    deliver(report, None, outputs)
    return report.exit_code


def make_table_of(request: Request, form: str, output: Path | None) -> int:
    """Writes the table of the live devices, or reports the faults that prevent it."""
    if form not in FORMS:
        raise UsageError(
            f"--format: there is no {form!r}. {suggest(form, FORMS)}", f"There are {', '.join(FORMS)}."
        )
    to_file = output is not None and str(output) != "-"
    refuse_unwritable(request.outputs, {"--output": output if to_file else None})
    reading, report = run_and_judge(with_defaults(request), MORE)
    if report.verdict is not Verdict.HEALTHY:
        show(report, request.outputs, sys.stderr)
        announce("no rank table was written: fix the above first, or leave hosts out.")
        return report.exit_code
    facts, plan = reading.facts, reading.plan
    unknown = {host: why for host in plan.names if (why := _unknown(host, facts, form))}
    if unknown:
        announce(f"no rank table was written: {fold(list(unknown))}: {next(iter(unknown.values()))}")
        return EXIT_INCONCLUSIVE
    text = _table(plan, facts, form)
    for finding in report.findings if not request.outputs.quiet else ():
        if finding.status is Status.UNKNOWN:
            announce(f"not examined: {finding.check} on {finding.nodeset}: {finding.summary}")
    if output is not None and to_file:
        try:
            write_file(output, text.encode())
        except OSError as error:
            raise DoctorError(f"{output}: could not be written: {error.strerror}.") from None
    else:
        put(text, sys.stdout)
    return report.exit_code


def _unknown(host: str, facts: Facts, form: str) -> str:
    """What the table needs but is unknown about a host; empty if nothing is missing."""
    for fact in (DEVICES, NPU_ADDRESSES, *((NPU_SUPER_POD,) if form == "1.2" else ())):
        value = facts.get(host, fact)
        if isinstance(value, MissingFact):
            return f"{fact.name}: {value.reason}"
    devices = facts.get(host, DEVICES).npus
    if not devices:
        return "it has no NPU"
    if form == "1.2" and set(devices) - set(facts.get(host, NPU_SUPER_POD)):
        return "npu-smi reports no super pod (--format 1.2 is for Atlas A3 super pods)"
    return ""


def _table(plan: JobPlan, facts: Facts, form: str) -> str:
    servers = [_server(host, plan, facts, form) for host in plan.names]
    kinds = {facts.get(host, ARCHITECTURE) for host in plan.names}
    architecture = next((kind for kind in kinds if isinstance(kind, str) and kind), "aarch64")
    return make_table(servers, cast('Literal["1.0", "legacy", "1.2"]', form), architecture)


def _server(host: str, plan: JobPlan, facts: Facts, form: str) -> LiveServer:
    addresses: Mapping[int, Any] = facts.get(host, NPU_ADDRESSES)
    pods = facts.get(host, NPU_SUPER_POD) if form == "1.2" else {}
    address = plan.data_address(host) or host
    return LiveServer(
        id=address,
        address=address,
        devices=tuple(
            LiveDevice(
                device=number,
                address=live.ip if isinstance(live := addresses.get(number), Address) else None,
                super_device=pods[number].device_id if number in pods else None,
                super_pod=str(pods[number].pod_id) if number in pods else None,
            )
            for number in facts.get(host, DEVICES).npus
        ),
    )

"""`doctor slow`: finds the rank or link for which the others of a moving job wait."""

from dataclasses import replace
from functools import partial

from msgspec import structs

from doctor.cli.defaults import with_defaults
from doctor.cli.hang import tell_remedies, tell_unread, write_evidence
from doctor.exam.host_session import open_session
from doctor.exam.request import Request
from doctor.exam.slurm_job import of_slurm
from doctor.live.look import to_see
from doctor.live.pyspy import check_given
from doctor.report.out.outputs import refuse_unwritable
from doctor.report.out.pages import show_page, write_page
from doctor.slow.evidence_file import encoded, load
from doctor.slow.judge import judge
from doctor.slow.options import SlowWishes
from doctor.slow.plan import following
from doctor.slow.report import page_of
from doctor.slow.report_json import slow_report
from doctor.slow.run import SlowSight, see


def slow(request: Request, wishes: SlowWishes) -> int:
    """The exit code: 1 if a rank or a link is named, 0 if nobody is late, 3 if that cannot be said."""
    given = (("--pyspy", path) for path in wishes.pyspy)
    refuse_unwritable(request.outputs, {"--save": request.save}, (*request.inputs(), *given))
    check_given(wishes.pyspy)
    request = with_defaults(request, in_report=False)
    if request.replay:
        evidence = load(request.replay)
        return _report(SlowSight(structs.replace(evidence, choice=wishes.choice(evidence.choice))), request)
    request, environ, number = of_slurm(request)
    wishes = replace(wishes, slurm_job=number)
    session = open_session(request, environ)
    try:
        sight = see(to_see(session, wishes), partial(following, wishes=wishes), wishes.choice())
    finally:
        session.close()
    return _report(sight, request)


def _report(sight: SlowSight, request: Request) -> int:
    if request.save is not None:
        write_evidence(request.save, encoded(sight.evidence))
    judgement = judge(sight.evidence)
    page, report = page_of(judgement), slow_report(judgement, sight.evidence)
    show_page(page, request.outputs)
    if judgement.job is None:
        tell_unread(sight.evidence)
    tell_remedies(sight.reasons, sight.evidence.asked)
    write_page(page, request.outputs, report)
    return report.exit_code

"""What a run accepts as known: waivers, within the policy of the site, which root alone can write.

# /etc/cluster-doctor/policy.toml: globs of checks
never-skipped = ["shm-small", "device-*"]
never-waived = ["device-*"]
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from doctor.errors import InputErrors, Mistake, UsageError
from doctor.exam.request import ExamFlags
from doctor.facts.smoke import SMOKE
from doctor.job.wishes import JobWishes
from doctor.judge.playbook import is_always_made, matches
from doctor.judge.registry import find_checks
from doctor.targets.inventoryfile import read_inventory
from doctor.text.printable import clean_line
from doctor.text.textfile import read_bytes, refuse, shown
from doctor.waivers import strange

POLICY = Path("/etc/cluster-doctor/policy.toml")
ALWAYS = "without an answer nothing else is known of the host; leave it out with --exclude"
TRAINED = "a training that did not pass proves nothing of its hosts"


class SitePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    never_skipped: tuple[str, ...] = ()
    never_waived: tuple[str, ...] = ()


def site_policy(ids: Sequence[str]) -> SitePolicy:
    """Raises UsageError if it cannot be used: else it would forbid nothing, and nobody would know."""
    if not os.path.lexists(POLICY):
        return SitePolicy()
    raw = read_bytes(POLICY, opened=_refuse_others)
    try:
        policy = msgspec.toml.decode(raw, type=SitePolicy)
    except (msgspec.DecodeError, UnicodeDecodeError, ImportError) as error:
        raise UsageError(f"{POLICY}: is not a policy: {clean_line(str(error))}.", "Ask root.") from None
    for glob in (*policy.never_skipped, *policy.never_waived):
        if not any(matches(id, [glob]) for id in ids):
            before = raw.decode().partition(f'"{glob}"')[0]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            raise InputErrors([Mistake(str(POLICY), line, f"there is no check {shown(glob)}", column)])
    return policy


def _refuse_others(about: os.stat_result) -> None:
    if about.st_uid != 0 or about.st_mode & 0o022 or not stat.S_ISREG(about.st_mode):
        hint = f"sudo chown root {POLICY}; sudo chmod 644 {POLICY}"
        raise UsageError(f"{POLICY}: others than root can write it.", hint)


def refuse_skipped(skipped: Sequence[str], ids: Sequence[str]) -> None:
    """Raises UsageError if an option leaves out what the policy demands."""
    demanded = site_policy(ids).never_skipped if skipped else ()
    if kept := [id for id in skipped if matches(id, demanded)]:
        raise UsageError(
            f"The policy of this site ({POLICY}) demands {', '.join(kept)}.",
            "Leave --skip, --no-smoke or --mesh none out.",
        )


def with_waivers(what: ExamFlags, wishes: JobWishes) -> JobWishes:
    """The wishes with the waivers of the inventory and of --waivers. Raises InputErrors."""
    if what.no_waivers:
        return replace(wishes, waivers=())
    waivers = (*wishes.waivers, *(read_inventory(what.waivers).wishes.waivers if what.waivers else ()))
    if waivers:
        checks = find_checks(what.checks).checks
        ids = [check.id for check in checks]
        refused = {check.id: TRAINED for check in checks if SMOKE in check.needs}
        refused |= {check.id: ALWAYS for check in checks if is_always_made(check)}
        never = site_policy(ids).never_waived
        refused |= {id: f"the policy of this site ({POLICY}) forbids it" for id in ids if matches(id, never)}
        refuse(strange(waivers, ids, refused))
    return replace(wishes, waivers=waivers)

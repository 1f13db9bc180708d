"""The table of launchers: one row each, a file if it is more than words, and what is derived from all rows.

The order counts. If a process has the variables of several rows, the first row gives its rank: what started
the rank comes before what started that launcher. If several forms fit, the last one is printed.
"""

from collections.abc import Mapping

from doctor.job.launch.forms import LaunchForm
from doctor.job.launch.launcher import MASTER, Launcher, RankVariables, Role, launcher_of, options_of
from doctor.job.launch.launchers.accelerate import ACCELERATE
from doctor.job.launch.launchers.composer import COMPOSER
from doctor.job.launch.launchers.deepspeed import DEEPSPEED
from doctor.job.launch.launchers.mpirun import MPIRUN
from doctor.job.launch.launchers.msrun import MSRUN
from doctor.job.launch.launchers.paddle import PADDLE
from doctor.job.launch.launchers.plain import PLAIN
from doctor.job.launch.launchers.srun import SRUN
from doctor.job.launch.launchers.torch_npu_run import TORCH_NPU_RUN
from doctor.job.launch.launchers.torchrun import TORCHRUN

LAUNCHERS: tuple[Launcher, ...] = (
    TORCHRUN,
    TORCH_NPU_RUN,
    DEEPSPEED,
    ACCELERATE,
    COMPOSER,
    PADDLE,
    launcher_of("rank table"),
    MSRUN,
    MPIRUN,
    launcher_of("horovodrun", options=options_of("horovodrun")),
    launcher_of("torchx"),
    launcher_of("ray"),
    PLAIN,
    SRUN,
)

COMMANDS: Mapping[str, Launcher] = {
    name: each for each in LAUNCHERS for name in each.commands if not each.by_name
}
"""The launchers whose command lines say something about the ranks."""
MODULES: Mapping[str, Launcher] = {name: each for each in LAUNCHERS for name in each.modules}
FORMS: Mapping[str, LaunchForm] = {name: form for each in LAUNCHERS for name, form in each.forms.items()}

_RANKS = tuple(variables for each in LAUNCHERS for variables in each.ranks)
NUMBERS: dict[str, RankVariables] = {}
"""Variable with the rank -> its row. If several rows have it, the one with the fewest conditions."""
for _each in _RANKS:
    if _each.rank not in NUMBERS or not _each.only_with:
        NUMBERS[_each.rank] = _each

ROLES: Mapping[str, Mapping[str, Role]] = {each.role: each.roles for each in LAUNCHERS if each.role}
MARKS = frozenset(name for each in _RANKS if NUMBERS[each.rank] is not each for name in each.only_with)
"""Variables which show that a launcher set the ones that people and platforms also set."""
RANK_NAMES = frozenset(each.rank for each in NUMBERS.values() if not each.only_with) | ROLES.keys()
"""Variables that make a process a rank wherever they are set."""
BY_LAUNCHERS = frozenset(
    name
    for each in NUMBERS.values()
    if not each.only_with
    for name in (each.local_rank, "" if each.by_hand else each.rank)
    if name
)
"""Variables that only launchers set, never people."""
LOCAL_RANKS = tuple(dict.fromkeys(each.local_rank for each in _RANKS if each.local_rank))
LOCAL_WORLDS = tuple(dict.fromkeys(each.local_world for each in _RANKS if each.local_world))
MASTERS = tuple(dict.fromkeys(each.master for each in _RANKS))
MEETINGS = tuple(sorted(_RANKS, key=lambda each: each.master == MASTER))
"""A launcher's own variable for the meeting place counts before the one that many share."""
PORTS = tuple(dict.fromkeys(each.port for each in _RANKS))


def _alternatives(*patterns: str) -> str:
    return "|".join(dict.fromkeys(filter(None, patterns)))


KEPT = _alternatives(
    *(name for each in _RANKS for name in each.names()), *ROLES, *(each.kept for each in LAUNCHERS)
)
"""The variables of launchers that matter to a job, as a regular expression that grep and awk read as well."""
PER_RANK = _alternatives(*NUMBERS, *LOCAL_RANKS, *ROLES, *(each.per_rank for each in LAUNCHERS))
PER_HELPER = tuple(
    dict.fromkeys([*NUMBERS, *ROLES, *LOCAL_RANKS, *(name for each in LAUNCHERS for name in each.per_helper)])
)
"""Variables that are equal in a rank and in the helpers that it started, such as data loaders."""
MUST_AGREE = _alternatives(
    *MASTERS,
    *PORTS,
    *(each.world[0] for each in NUMBERS.values() if each.by_hand),
    *(each.must_agree for each in LAUNCHERS),
)
OWN = _alternatives(*(each.own for each in LAUNCHERS))
"""Variables that make a process a rank: no program that a rank starts for itself may have them."""

"""The part of the probe's script that does not depend on the facts: POSIX sh, for dash, bash and busybox."""

import shlex

from doctor.text.hostprogram import host_program

PRELUDE = host_program(__file__, "shell_prelude.sh").strip("\n")

QUICK = host_program(__file__, "shell_quick.sh").strip("\n")
"""Most hosts answer everything at once, and then one shell and one `timeout` are enough. Commands that failed
or hung are left to the lanes, which have a limit for each command and keep its stderr. No command holds a
pipe of the probe, so even one that cannot be killed does not delay this."""

TIMEOUT = 'command -v timeout >/dev/null 2>&1 || timeout() { [ "$1" = -s ] && shift 2; shift; "$@"; }'
TOOLS = host_program(__file__, "shell_tools.sh").strip("\n")
"""How commands call device tools; they begin with it. In containers, a tool finds its own libraries only by
LD_LIBRARY_PATH."""
CALL = f"{host_program(__file__, 'shell_call.sh')}D={shlex.quote(TOOLS)}"

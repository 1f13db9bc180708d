"""Everything that can go wrong between connecting to a host and the first output of its shell."""

import shlex

from .errors import LabError
from .files import USERS, passwd_line
from .machine import listening
from .settings import Settings
from .shadow import Shadows

CONFIG = "/etc/ssh/sshd_config"
HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"
GARBAGE = r"printf '\033]0;title\007*** Authorised use only ***\r\n\377\376\000 no newline'"

# Faulty login shells, by what happens to a login. sshd runs them as `SHELL -c COMMAND`; their parent is
# the session, so that they can end it and end with it. {after} is a number of bytes.
SHELLS = {
    "silent": 'while kill -0 "$PPID"; do sleep 0.2; done 2>/dev/null',
    "flood": "exec yes 'a shell that never stops talking'",
    "garbage": GARBAGE + '; exec /bin/sh "$@"',
    # The session must forward its output before it dies.
    "cut": '/bin/sh "$@" | { head -c {after}; sleep 0.2; kill -9 "$PPID"; }',
    "stall": '/bin/sh "$@" | { head -c {after}; while kill -0 "$PPID"; do sleep 0.2; done 2>/dev/null; }',
}
ELSEWHERE = {"none": "/nonexistent/sh", "nologin": "/usr/sbin/nologin"}


class Logins(Settings, Shadows):
    """Ways in which SSH fails, all of them with the real sshd."""

    def kill_sshd(self) -> None:
        """Stop listening on port 22: connections are refused. Open sessions stay."""
        self.do('kill "$(cat /run/sshd.pid)"')
        self.await_that(lambda: 22 not in listening(self.pid), "closed port 22")

    def start_sshd(self) -> None:
        self.do("start-sshd")
        self.await_listener(22)

    def sshd(self, **options: str) -> None:
        """Restart sshd with other options, such as `MaxStartups="1:100:1"`."""
        given = "".join(f"{name} {value}\n" for name, value in options.items())
        # sshd takes the first value it reads.
        self.do('old=$(cat "$1"); { cat; echo "$old"; } >"$1.new"; mv "$1.new" "$1"', CONFIG, stdin=given)
        self.kill_sshd()
        self.start_sshd()

    def change_key(self) -> None:
        """Replace the host key, as on a host that was reinstalled."""
        self.do('rm -f "$1" "$1.pub"; ssh-keygen -q -t ed25519 -N "" -f "$1"', HOST_KEY)
        self.kill_sshd()
        self.start_sshd()

    def no_banner(self) -> None:
        """Port 22 accepts connections and stays silent, like a hung sshd or a port forward to nowhere."""
        self.kill_sshd()
        self.listen(22)

    def refuse_login(self) -> None:
        """Forget the lab's key of root: permission denied."""
        self.do("rm /etc/ssh/authorized_keys/root")

    def shell(self, kind: str, user: str = "root", after: int = 2000) -> None:
        """Replace a user's login shell by one that misbehaves.

        silent never answers; flood never stops; garbage prints a banner before it works; cut ends the
        connection and stall falls silent after `after` bytes of output; nologin prints its refusal and ends;
        none does not exist, so sshd refuses the login.
        """
        if kind in SHELLS:
            place = f"/usr/local/bin/{kind}-shell"
            self.write(place, "#!/bin/sh\n" + SHELLS[kind].replace("{after}", str(after)) + "\n", 0o755)
        elif kind in ELSEWHERE:
            place = ELSEWHERE[kind]
        else:
            raise LabError(f"no such shell: {kind}; one of {', '.join([*SHELLS, *ELSEWHERE])}")
        line = passwd_line(USERS[user], place)
        self.do(f"sed -i {shlex.quote(f's#^{user}:.*#{line}#')} /etc/passwd")

    def grant_sudo(self, user: str = "trainee") -> None:
        """Let a user run everything as root without a password."""
        self.write(f"/etc/sudoers.d/{user}", f"{user} ALL=(ALL) NOPASSWD: ALL\n", 0o440)

    def freeze(self) -> None:
        """Stop every process of the host: its kernel still accepts connections, but no program answers."""
        self.do("kill -STOP -1")

    def power_off(self) -> None:
        """Switch the host off: nothing answers at its address any more. `Lab.reset` switches it on again."""
        # A dying namespace refuses connections for a moment. Without a link it cannot do so.
        self.link_down()
        self.halt()

"""Hosts that are set up in an odd way, but are sound."""

from __future__ import annotations

import sys

from tests.lab import Host
from tests.support.hang import dead_files
from tests.trials.node.situation import Group

ODD = Group("Odd but sound hosts")
TOOLS = (
    "awk cat cut date df dmesg du find free grep head hostname id ip ls lsmod mount nproc ps readlink sed "
    "sort stat tail tr uname uniq uptime wc which xargs"
)
HARMLESS = "".join(
    f"[{89000 + n}.1] {line}\n"
    for n, line in enumerate(
        (
            "NVRM: Xid (PCI:0000:05:00): 13, pid=4711, name=python, Graphics Exception: ESR 0x504648",
            "NVRM: Xid (PCI:0000:05:00): 31, pid=4711, name=python, Ch 00000008, MMU Fault",
            "NVRM: Xid (PCI:0000:05:00): 43, pid=4711, name=python, Ch 00000010",
            "NVRM: Xid (PCI:0000:05:00): 45, pid=4711, name=python, Ch 00000010",
            "NVRM: Xid (PCI:0000:05:00): 94, pid=4711, name=python, Contained: CE User Channel",
            "mce: [Hardware Error]: Corrected error, no action required.",
            "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x12)",
            "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 0",
            "{1}[Hardware Error]: event severity: corrected",
            "Memory failure: 0x1a2b3c: Injecting memory failure",
            "soft_offline: 0x1a2b3c: hwpoisoned",
            "mlx5_core 0000:05:00.1 ens1f1np1: Link down",
            "e1000e 0000:00:1f.6 eno2: NIC Link is Down",
            "EDAC MC0: 1 UE m[4711]: segfault at 0 ip 00007f00 sp 00007ffe error 4 in libc.so.6[7f00+1000]",
            "traps: EDAC MC0: 1 UE m[4712] general protection fault ip:7f00 error:0 in GPU reset[7f00+1]",
            "memory: usage 1048576kB, limit 1048576kB, failcnt 77",
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=job,task=python,pid=4711,uid=4001",
            "Memory cgroup out of memory: Killed process 4711 (python) total-vm:9kB, anon-rss:8kB, UID:4001",
            "python[4711]: NVRM: Xid (PCI:0000:05:00): 79, pid=1, GPU has fallen off the bus.",
            'audit: type=1400 audit(1): apparmor="DENIED" comm="NVRM: Xid (PCI:0000:05:00): 79"',
            "usb 1-1: USB disconnect, device number 3",
            "TCP: request_sock_TCP: Possible SYN flooding on port 29500. Sending cookies.",
            "perf: interrupt took too long (2501 > 2500), lowering perf_event_max_sample_rate",
        )
    )
)
OLD = (
    "[100.1] EDAC MC0: 1 UE memory read error on DIMM_A1 (channel:1)\n"
    "[200.1] NVRM: Xid (PCI:0000:05:00): 79, pid=1, GPU has fallen off the bus.\n"
)
"""Of ten days ago, when the host had another memory module."""
LOUD = """
echo 'Welcome to the cluster! FAIL: 3 packages can be updated'
echo "bash: warning: setlocale: LC_ALL: cannot change locale" >&2
date; df -h; echo '@ spaces 0'; printf 'path no /tmp\\n'
alias df='df -h' ps='ps aux' ls='ls --color=always' date='echo today'
df() { command df -h "$@"; }
export PS1='> ' GREP_OPTIONS=--color=always LS_COLORS=x TERM=dumb IFS=:
"""


def logged(host: Host, text: str, uptime: int = 90_000) -> None:
    """Emulated: a kernel log, and how many seconds ago the host was started."""
    host.shadow("/proc/uptime", f"{uptime}.00 9.00\n")
    host.kernel_log(text)


def _profile(host: Host) -> None:
    for name in (".bashrc", ".profile", ".bash_profile", ".zshrc"):
        host.write(f"/root/{name}", LOUD)
    host.write("/etc/profile.d/loud.sh", LOUD)


def _busybox(host: Host, sh: bool = False) -> None:
    host.do(f"for t in {TOOLS}; do [ $t = dmesg ] || ln -sf /usr/bin/busybox /usr/local/bin/$t; done")
    host.do("ln -sf /usr/bin/busybox /usr/local/bin/sh; ln -sf /usr/bin/busybox /bin/sh" if sh else ":")


def _shell(host: Host, path: str) -> None:
    host.do(f"sed -i 's#^root:.*#root:x:0:0:root:/root:{path}#' /etc/passwd")


def _ash(host: Host) -> None:
    host.do("ln -s /usr/bin/busybox /usr/local/bin/ash")
    _shell(host, "/usr/local/bin/ash")


def _remote(host: Host, path: str) -> None:
    """A FUSE file system that answers, as the clients of many remote file systems do."""
    host.do(f"mkdir -p {path}; [ -e /dev/fuse ] || mknod -m 666 /dev/fuse c 10 229")
    host.spawn([sys.executable, dead_files.__file__, path, "for-all", "1"])
    host.await_that(lambda: path in host.ask("cat /proc/mounts").stdout, "file system")


def _swap(host: Host) -> None:
    """Emulated."""
    host.shadow("/proc/swaps", "Filename Type Size Used Priority\n/dev/vda2 partition 8388604 2048 -2\n")


def _huge(host: Host) -> None:
    """Emulated."""
    host.shadow(
        "/proc/meminfo",
        "MemTotal: 1056000000 kB\nMemFree: 20000000 kB\nMemAvailable: 30000000 kB\nHugePages_Total: 480000\n"
        "HugePages_Free: 480000\nHugepagesize: 2048 kB\nHugetlb: 983040000 kB\n",
    )


NIC = "ip link add {0} type veth peer name {0}-far; "

ODD.on_host("some swap is used *", _swap)
ODD.text(
    "the system's own settings",
    "cd /proc/sys/net; echo 128 >core/somaxconn; echo 32768 60999 >ipv4/ip_local_port_range",
)
ODD.on_host(
    "small limits of a login",
    lambda host: host.limits(nofile=256, memlock=65536, stack=1 << 20, core=0),
    "ulimit -n 128; ulimit -l 64; ulimit -s 1024; ulimit -c 0",
)
ODD.on_host(
    "limits of file size and CPU time",
    lambda host: host.limits(fsize=1 << 20, cpu=60),
    "ulimit -f 2000; ulimit -t 60",
)
ODD.text("umask 077", "echo umask 077 >>/root/.bashrc; echo umask 077 >>/root/.profile", "umask 077")
ODD.text("without HOME", "mv /root/.??* /tmp 2>/dev/null || :", "unset HOME USER")
ODD.text(
    "HOME does not exist",
    "sed -i 's#^root:.*#root:x:0:0:root:/nonexistent:/bin/bash#' /etc/passwd",
    "HOME=/nonexistent",
)
ODD.text("HOME is read-only", "mount -o remount,ro /root", "HOME=/root")
ODD.text(
    "HOME is a file", "touch /home/file; sed -i 's#:/root:#:/home/file:#' /etc/passwd", "HOME=/home/file"
)
ODD.text("HOME is full", "mount -o remount,size=2m /root; dd if=/dev/zero of=/root/full 2>/dev/null || :")
ODD.text(
    "an exotic language",
    "echo 'export LANG=tr_TR.UTF-8 LC_ALL=ar_EG.UTF-8 LC_NUMERIC=de_DE' >>/root/.bashrc",
    "export LANG=tr_TR.UTF-8 LC_ALL=xx_YY.NONSENSE LC_NUMERIC=de_DE LANGUAGE=zh:ar",
)
ODD.text("an empty environment", ":", "for v in $(env | cut -d= -f1); do [ $v = PATH ] || unset $v; done")
ODD.on_host("login shell: sh", lambda host: _shell(host, "/bin/sh"))
ODD.on_host("login shell: dash", lambda host: _shell(host, "/bin/dash"))
ODD.on_host(
    "login shell: busybox",
    _ash,
)
ODD.on_host("a login that prints a banner", lambda host: host.shell("garbage"))
ODD.on_host(
    "noisy profiles, with aliases and functions",
    _profile,
    "export BASH_ENV=/root/.bashrc ENV=/root/.profile GREP_OPTIONS=--color=always LS_COLORS=x TERM=dumb",
)
ODD.text("/tmp is not sticky", "chmod 777 /tmp")
ODD.text("/tmp of 64 MB, half of it free", "mount -o remount,size=64m /tmp; fallocate -l 32m /tmp/held")
ODD.text("/tmp of 16 MB, empty", "mount -o remount,size=16m /tmp")
ODD.text(
    "/tmp is on the root disk", "umount /tmp; mkdir -m 1777 /var/scratch; mount --bind /var/scratch /tmp"
)
ODD.text("TMPDIR elsewhere", "mkdir -m 1777 /scratch", "export TMPDIR=/scratch")
ODD.text("TMPDIR does not exist", ":", "export TMPDIR=/gone/tmp")
ODD.on_host("a remote file system", lambda host: _remote(host, "/data"))
ODD.text(
    "another disk is full",
    "mkdir /data; mount -t tmpfs -o size=4m data /data; dd if=/dev/zero of=/data/full 2>/dev/null || :",
)
ODD.text("a read-only bind mount", "mkdir /data; mount --bind /usr /data; mount -o remount,bind,ro /data")
ODD.text(
    "/dev/shm of 1 MB, full",
    "mount -o remount,size=1m /dev/shm; dd if=/dev/zero of=/dev/shm/x 2>/dev/null || :",
)
ODD.text(
    "IPv6 only",
    "ip route del default; echo 1 >/proc/sys/net/ipv6/conf/eth0/forwarding; "
    "ip addr add fd00:c612::99/64 dev eth0",
)
ODD.text("without IPv6", "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6")
ODD.text(
    "several interfaces, some down",
    "".join(NIC.format(n) for n in ("ib0", "eth7", "docker0")) + "ip link set ib0 up",
)
ODD.text(
    "an interface that was never plugged in",
    NIC.format("eth9") + "ip link set eth9 up; ip addr add 10.9.9.9/24 dev eth9",
)
ODD.text("no default route", "ip route del default")
ODD.text("further addresses of loopback", "ip addr add 10.255.0.1/32 dev lo; ip addr add 127.0.0.2/8 dev lo")
ODD.text("a small MTU", "ip link set eth0 mtu 1280")
ODD.text(
    "a firewall that drops everything but SSH",
    "nft 'add table inet f; add chain inet f i { type filter hook input priority 0; policy drop; }; "
    "add rule inet f i tcp dport 22 accept; add rule inet f i ct state established accept; "
    "add rule inet f i iif lo accept'",
)
ODD.on_host(
    "the kernel log may not be read",
    lambda host: host.program(
        "dmesg", "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1"
    ),
)
ODD.on_host("harmless lines in the kernel log *", lambda host: logged(host, HARMLESS))
ODD.on_host("old faults in the kernel log *", lambda host: logged(host, OLD, 900_000))
ODD.on_host(
    "a long kernel log *",
    lambda host: logged(host, "[89000.1] audit: type=1400 segfault\n" * 40_000),
)
ODD.on_host("the clock is 5 s ahead *", lambda host: host.clock(5))
ODD.on_host("the clock is 5 s behind *", lambda host: host.clock(-5))
ODD.on_host("without python", lambda host: host.no_tool("python", "python3", "perl", "pip"), "", "ssh")
ODD.on_host("tools of busybox", _busybox)
ODD.on_host("tools and shell of busybox", lambda host: _busybox(host, sh=True))
ODD.on_host("without ps", lambda host: host.no_tool("ps", "top", "pgrep", "free", "uptime"))
ODD.on_host("without ip", lambda host: host.no_tool("ip", "ss", "ifconfig", "ethtool"))
ODD.on_host("without df", lambda host: host.no_tool("df", "du", "findmnt", "lsblk"))
ODD.on_host("without dmesg and journalctl", lambda host: host.no_tool("dmesg", "journalctl"))
ODD.on_host("huge pages hold the memory *", _huge)
ODD.text("no name service", "echo 'nameserver 198.18.250.250' >/etc/resolv.conf; : >/etc/hosts")
ODD.text("a name of another host", "hostname localhost; echo localhost >/etc/hostname")

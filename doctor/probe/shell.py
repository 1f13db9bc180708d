"""The part of the probe's script that does not depend on the facts: POSIX sh, for dash, bash and busybox."""

PRELUDE = r"""
exec 3<&0 </dev/null 5>&1
LC_ALL=C; PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin:/usr/local/bin; export LC_ALL PATH T
while read -r k _ U _; do [ "$k" != Uid: ] || break; done </proc/self/status
[ "$U" ] || U=$(id -u)
N=; ! command -v nice >/dev/null 2>&1 || N='nice -n 5'
any() { for p; do [ -e "$p" ] && return; done; return 1; }
say() { # code names...: nothing was run, and why
  c=$1; shift
  for n; do printf '\n%s o %s %s 0\n\n' "$T" "$n" "$c"; done
}
there() { # patterns: print those that match a file
  o=
  for p; do [ ! -e "$p" ] || o="$o$p:
"; done
  printf '\n%s o there 0 %s\n%s\n' "$T" ${#o} "$o"
}
end() { # sessions led from outside our PID namespace all have the number 0, even those of strangers
  read -r _ _ _ _ _ s _ </proc/self/stat
  [ "${s:-0}" != 0 ] && pkill -KILL -s "$s" || kill -KILL 0
}
# Both end everything: a process that was only just made may have lost the signal, and our shell waits for it.
( trap exit USR1; trap end TERM HUP; while read -r _ <&3; do :; done; end ) >/dev/null 2>&1 5>&- & W=$!
trap end TERM HUP
exec 3<&-
a= left=
""".strip("\n")

QUICK = r"""
f() { # name cap command: print the frame on 5 and the name on 1, unless it needs a lane
  case " $a" in *" $1 "*) return;; esac
  o=$(exec 2>/dev/null 5>&-; unset o r; eval "$3")
  r=$?
  case $r:$1 in 127:python) return;; 0:*|126:*|127:*|[12]:files) ;; *) return;; esac
  [ "$2" = 0 ] || [ ${#o} -lt "$2" ] || return
  printf '\n%s o %s %s %s\n%s\n' "$T" "$1" $r ${#o} "$o" >&5
  printf '%s ' "$1"
}
""".strip("\n")
"""Most hosts answer everything at once, and then one shell and one `timeout` are enough. Commands that failed
or hung are left to the lanes, which have a limit for each command and keep its stderr. No command holds a
pipe of the probe, so even one that cannot be killed does not delay this."""

TIMEOUT = 'command -v timeout >/dev/null 2>&1 || timeout() { [ "$1" = -s ] && shift 2; shift; "$@"; }'
CALL = r"""
f() { # name cap seconds command...
  case " $a" in *" $1 "*) return;; esac
  n=$1 c=$2 s=$3; shift 3
  printf '\n%s n %s\n' "$T" "$n" >&2
  if [ "$c" -gt 0 ]; then
    o=$( exec 7>&1
         r=$( { { timeout -s KILL "$s" $N "$@" </dev/null 7>&- 8>&-; echo $? >&8; } |
                head -c "$c" >&7; } 8>&1 )
         exit ${r:-1} )
  else o=$(timeout -s KILL "$s" $N "$@" </dev/null)
  fi
  printf '\n%s o %s %s %s\n%s\n' "$T" "$n" $? ${#o} "$o"
}
any() { for p; do [ -e "$p" ] && return; done; return 1; }
now() { read -r u _ </proc/uptime; u=${u%.*}; }
g() { # name cap seconds command... before the moment E
  now
  if [ "$H" ]; then printf '\n%s o %s 121 0\n\n' "$T" "$1"; return
  elif [ $((E-u)) -gt "$3" ]; then f "$@"
  elif [ "$E" -gt "$u" ]; then n=$1 c=$2; shift 3; f "$n" "$c" $((E-u)) "$@"
  else printf '\n%s o %s 122 0\n\n' "$T" "$1"; return; fi
  case $o in *' hung '[1-9][0-9]*) H=1; esac # it had the longest possible time
}
""".strip("\n")

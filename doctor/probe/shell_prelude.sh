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

command -v timeout >/dev/null 2>&1 || timeout() { shift 3; "$@"; }
now() { read -r u _ </proc/uptime; u=${u%.*}; }
nap() { sleep "$1" 2>/dev/null || sleep 1; }
q() { # key words...: a call with these words; afterwards o is what it printed
  k=$1 b=; shift
  while :; do
    [ -e "/proc/$P" ] || exit
    now; a=$u s=$((E-u)); [ "$s" -lt "$L" ] || s=$L
    [ "$s" -gt 0 ] || w=${w:-${b:-time}}
    [ -z "$w" ] || { o=; printf '@ %s unasked %s\n' "$k" "$w"; return; }
    # In the background, for one that cannot even be killed: the pipe's other end gives up on it.
    o=$( exec 2>/dev/null 5>&- # what outlives this script holds no pipe of the probe
         { { timeout -s KILL "$s" "$t" "$@"; printf '\n@rc %s' $?; } </dev/null 2>&1 & } |
         timeout -s KILL $((s+1)) head -c "$B" )
    case $o in *'is busy, please try again'*) b=busy; nap 0.2; continue; esac
    break
  done
  r=${o##*@rc } l=${#o} o=${o%@rc *}
  case $r in
    124|137) now; [ $((u-a)) -lt $((s-1)) ] || r=hung;;
    ''|*[!0-9]*) r=stuck; [ "$l" -lt $((B-1000)) ] || r=long;;
  esac
  case $r in hung|stuck) ;; *) printf '%s\n@ %s %s\n' "$o" "$k" "$r"; return;; esac
  printf '@ %s %s %s\n' "$k" "$r" "$s"
  [ -z "$h" ] || w=hung
  h=1
}
d=/usr/local/Ascend/driver/lib64
[ ! -d $d ] || LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$d:$d/common:$d/driver
export LD_LIBRARY_PATH

f() { # name cap command: print the frame on 5 and the name on 1, unless it needs a lane
  case " $a" in *" $1 "*) return;; esac
  o=$(exec 2>/dev/null 5>&-; unset o r; eval "$3")
  r=$?
  case $r:$1 in 127:python) return;; 0:*|126:*|127:*|[12]:files) ;; *) return;; esac
  [ "$2" = 0 ] || [ ${#o} -lt "$2" ] || return
  printf '\n%s o %s %s %s\n%s\n' "$T" "$1" $r ${#o} "$o" >&5
  printf '%s ' "$1"
}

[ "$1" = ro ] || [ -n "$w" ] || { k=; for n in $c; do grep -qs "^@key@_$n=" /etc/hccn.conf && k="$k $n" || printf "@ %s unasked writes\n" "$n"; done; c=$k; }

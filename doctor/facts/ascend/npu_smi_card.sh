@calling@
q map info -m
printf '%s\n' "$o" | awk -F'  +' '{ sub(/^[ \t]+/, "") }
!k { for (i = 1; i <= NF; i++) if ($i ~ /^Chip ID/) k = i; next }
/^[0-9]/ && !/[Mm]cu/ { print $1 + 0, $k + 0 }' | head -n 64 |
@each@
case $o in *'does not support'*) break; esac; done

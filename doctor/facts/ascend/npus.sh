@calling@
L=@listing@; q all info; L=4
printf '%s\n' "$o" | awk -F'|' '
/Health/ { for (i = 2; i < NF; i++) if ($i ~ /Health/) h = i; next }
/Process id/ { exit }
h && $h ~ /:/ { split($2, b, " "); if (bad) print c, b[1]; bad = 0; next }
h && $2 ~ /^ *[0-9]/ { c = $2 + 0; bad = $h !~ /^ *OK *$/ }' | head -n 16 | tr -cd '0-9 \n' |
while read -r c i; do q "$c/$i" info -t health -i "$c" ${i:+-c $i}; done

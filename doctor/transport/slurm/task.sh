t=$DOCTOR_TOKEN n=$SLURMD_NODENAME
unset DOCTOR_TOKEN
case $n in *[!A-Za-z0-9._-]*|"") echo "no node name" >&2; exit 0;; esac
k=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
[ ${#k} = 32 ] || { echo "no random numbers" >&2; exit 0; }
e=$(printf %s "$n" | sed "s/\./[.]/g")
a="^\(,\|[^ ]*,$e,[^ ]*\)"
o="s/.\{400\}/&\n/g;s/%/%p/g;s/\n/%\n$k $n /g;s/^/$k $n /"
mark() {
  exec 6<&0
  printf '%s\n' "$o" | { exec 7<&0 <&6 6<&-; LC_ALL=C exec sed -u -f /proc/self/fd/7; }
}
exec 3>&1 4>&2
echo "$t $n %h $k"
LC_ALL=C sed -u -n "/$a q$/q;s/$a =//p" 2>/dev/null | {
  read -r l || exit 0
  c=
  while [ "$l" -gt 0 ]; do IFS= read -r x || exit 0; c="$c$x
"; l=$((l-1)); done
  r=$( { { { sh -c "$c" 3>&- 4>&- 8>&- 2>&9 9>&-; echo $? >&8
           } | mark >&3 8>&- 9>&-
         } 9>&1 | mark >&4 8>&-
       } 8>&1 )
  echo "$k $n %x $r" >&4
  echo "$k $n %x $r" >&3
}
exit 0

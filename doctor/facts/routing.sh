command -v ip >/dev/null || exit 0
r=$(exec ip -4 rule show 2>/dev/null) || exit 0
[ "$r" = "0:	from all lookup local
32766:	from all lookup main
32767:	from all lookup default" ] && exit
echo "$r"; echo tables
ip -4 route show table all 2>/dev/null | awk '{ print } NR > 2000 { exit }'
:

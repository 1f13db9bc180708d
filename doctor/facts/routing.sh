# Until the first rule is added, the kernel keeps two tables as one: that there is none is known without ip, too.
command -v ip >/dev/null || exec awk '
  /^[A-Z]/ { name = $1; next }
  { table[name] = table[name] "\n" $0 }
  END { exit table["Main:"] != "" && table["Main:"] == table["Local:"] ? 0 : 127 }' /proc/net/fib_trie
r=$(exec ip -4 rule show 2>/dev/null) || exit 0
[ "$r" = "0:	from all lookup local
32766:	from all lookup main
32767:	from all lookup default" ] && exit
echo "$r"; echo tables
ip -4 route show table all 2>/dev/null | awk '{ print } NR > 2000 { exit }'
:

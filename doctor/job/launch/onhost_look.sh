
for c in grep awk tr; do command -v $c >/dev/null || exit 127; done
unset LD_PRELOAD
cd /proc || exit
read -r _ _ _ _ _ own _ </proc/self/stat
l=$(grep -lsazE '@signs@' [0-9]*/environ [0-9]*/cmdline 2>&1)
case $l in ''|[0-9]*) ;; *) exit 127;; esac
echo jobs
seen=' ' e= c= s= o= n=0
[ self/ns/net -ef self/ns/net ] 2>/dev/null && net=self/ns/net || net=
for f in $l; do
  p=${f%/*}
  [ -O $p ] || continue
  case $f in */cmdline) case $seen in *" $p "*) continue;; esac;; esac
  [ -z "$net" ] || [ ! -e $p/ns/net ] || [ $p/ns/net -ef $net ] || o="$o $p"
  seen="$seen$p " e="$e $p/environ" c="$c $p/cmdline" s="$s $p/stat" n=$((n+1))
  [ $n -lt @candidates@ ] || { echo more; exit 0; }
done
[ "$e" ] || exit 0
r=$(grep -lsazE '^(@tables@)=[^/]' $e)
{ grep -Hsa . $s; { grep -Hsaz '' $c; grep -HsazE '^(@variables@)=' $e
for f in $r; do printf '%s:%s\0' ${f%/*}/folder "$(readlink ${f%/*}/cwd 2>/dev/null)"; done
} | tr '\0\n' '\n\001'; } |
awk -v "own=${own:-0}" -v "outside=$o" @words@

@calling@
c=
for d in @at@[0-9] @at@[0-9][0-9] @at@[0-9][0-9][0-9]; do
  [ ! -e "$d" ] || c="$c ${d#@at@}"
done
printf "devices%s\n" "$c"
@first@
for n in $c; do q $n @words@; @then@; done

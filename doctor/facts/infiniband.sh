set -- /sys/class/infiniband/*/ports/[0-9]*
[ -e "$1/state" ] || exec ibstat
for p; do for k in state phys_state rate link_layer; do
  read -r v <"$p/$k" && echo "$p/$k:$v"
done; done 2>/dev/null
:

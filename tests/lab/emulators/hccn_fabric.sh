# The fabric of emulated NPUs. The hosts of a lab share one folder with all devices: the settings
# of each device, and whether its host has power, count from the next packet on.
shared=$lab/shared

address_of() { # sets ip and mask of the device that lies in $1
  [ -e "$1/ip" ] || return 1
  { IFS=: read -r _ ip; IFS=: read -r _ mask; } <"$1/ip"
  dotted "$ip" && dotted "$mask"
}

first() { # sets `line`: the first that the device in $1 says of $2
  line=
  if [ -e "$1/$2" ]; then
    read -r line <"$1/$2"
  elif [ ! -e "$1/$2.fail" ] && [ -e "${1%/*}/all/$2" ]; then
    read -r line <"${1%/*}/all/$2"
  fi
}

routed() { # whether the device in $1, with ip and mask, has a gateway that is one
  first "$1" gateway
  line=${line#*:}
  line=${line%%,*}
  dotted "$line" && near "$line" "$ip" "$mask" && [ -e "$shared/routers/$line" ]
}

link_up() { first "$1" link; [ "$line" = 'link status: UP' ]; }

powered() { ! flock -ns 7 7<"$shared/$1/on"; } # a host holds this lock as long as it runs

near() { # whether $1 and $2 lie in one segment of netmask $3
  IFS=.
  # shellcheck disable=SC2086
  set -- $1 $2 $3
  unset IFS
  [ $(($1 & $9)) -eq $(($5 & $9)) ] && [ $(($2 & ${10})) -eq $(($6 & ${10})) ] &&
    [ $(($3 & ${11})) -eq $(($7 & ${11})) ] && [ $(($4 & ${12})) -eq $(($8 & ${12})) ]
}

reach() { # sets `holders`: how many answer at address $1
  holders=0
  read -r me <"$here/host"
  me=$me.$device
  link_up "$npu" && address_of "$npu" || return
  if [ "$1" = "$ip" ]; then
    holders=1
    return
  fi
  [ ! -e "$shared/cut/$me" ] || return
  own=$ip own_mask=$mask out=
  routed "$npu" && out=y
  if [ -e "$shared/routers/$1" ]; then
    if [ "$out" ] || near "$own" "$1" "$mask"; then holders=1; fi
    return
  fi
  for there in "$shared"/*/npu/[0-9]*; do
    [ -e "$there/ip" ] && [ ! -e "$there/gone" ] || continue
    IFS=: read -r _ ip <"$there/ip"
    [ "$ip" = "$1" ] || continue
    host=${there#"$shared/"} host=${host%%/*}
    far=$host.${there##*/}
    [ ! -e "$shared/cut/$far" ] && [ ! -e "$shared/cut/$me>$far" ] || continue
    address_of "$there" && link_up "$there" && powered "$host" || continue
    [ "$out" ] || near "$own" "$ip" "$own_mask" || continue
    near "$own" "$ip" "$mask" || routed "$there" || continue
    holders=$((holders + 1))
  done
}

packets() { # address IP [pkt N]: sets `count`
  [ "$1" = address ] && [ $# -ge 2 ] || invalid_parameters
  dotted "$2" || invalid_address
  count=3
  [ "$3" != pkt ] || count=$4
  case $count in '' | *[!0-9]* | 0*) invalid_parameters ;; esac
}

ping() {
  packets "$@"
  reach "$2"
  printf 'device %s PING %s\n' "$device" "$2"
  i=0 lost=0
  while [ $i -lt "$count" ]; do
    # Of the packets to an address held twice, one of three goes astray; held more often, two of three.
    case $holders:$((i % 3)) in
    1:* | 2:[12] | [3-9]*:2) printf 'recv seq=%s,time=0.0%s000ms\n' $i $((i % 6 + 34)) ;;
    *) printf 'recv time out seq=%s\n' $i; lost=$((lost + 1)) ;;
    esac
    i=$((i + 1))
  done
  [ $lost -eq 0 ] || { read -r wait <"$here/ping_wait"; sleep "$wait" 9>&-; }
  share=$(((lost * 20000 + count) / (2 * count)))
  printf '%s packets transmitted, %s received, %s.%02d%% packet loss\n' "$count" $((count - lost)) \
    $((share / 100)) $((share % 100))
  [ $lost -eq 0 ] || fail 1 2 'Command execute failed!'
}

hccs_ping() { # over the wires inside the super pod
  packets "$@"
  says='This pkt send fail!' time=0.000 received=0
  for there in "$shared"/*/npu/[0-9]*; do
    [ -e "$there/vnic" ] && [ ! -e "$there/gone" ] || continue
    { read -r state; read -r at; } <"$there/vnic"
    [ "$state" = 'vnic link status: UP' ] && [ "${at##* }" = "$2" ] || continue
    host=${there#"$shared/"} host=${host%%/*}
    ! powered "$host" || says='This pkt ping success!' time=20.882 received=$count
  done
  printf 'device %s PING %s\n\n' "$device" "$2"
  i=0
  while [ $i -lt "$count" ]; do
    printf '%s\nrecv seq %s, time = %sus, L1 plane check result = 0x0\n\n' "$says" $i $time
    i=$((i + 1))
  done
  printf '%s packets transmitted, %s received, %s.00%% packets loss\n' "$count" "$received" \
    $(((count - received) * 100 / count))
  for each in max min average TP95; do printf '%s time %sus\n' $each $time; done
}

net_health() {
  first "$npu" netdetect
  detect=${line##* }
  if [ "$detect" = 0.0.0.0 ]; then
    health=Init
  elif ! link_up "$npu"; then
    health=Fault
  else
    reach "$detect"
    [ "$holders" -gt 0 ] && health=Success || health='Receive timeout'
  fi
  printf 'net health status: %s\n' "$health"
}

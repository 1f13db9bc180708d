# The setters of hccn_tool: they change an emulated device, and the file that keeps its settings over a reboot.
conf=/etc/hccn.conf
. $lab/hccn_fabric.sh

keep() { # key, value: as the tool writes them into /etc/hccn.conf
  [ ! "$recovering" ] || return 0
  [ ! -e $conf ] || sed -i "/^$1_$device=/d" $conf
  printf '%s_%s=%s\n' "$1" "$device" "$2" >>$conf
}

set_ip() { # address, netmask
  dotted "$1" && dotted "$2" || invalid_address
  { printf 'ipaddr:%s\nnetmask:%s\n' "$1" "$2"; cat $here/ip_tail; } >"$npu/ip"
  rm -f "$npu/ip.fail"
  keep address "$1"
  keep netmask "$2"
}

set_gateway() {
  dotted "$1" || invalid_address
  address_of "$npu" || fail 26 2 'Unable to configure gateway, because ip is not configured!'
  near "$1" "$ip" "$mask" ||
    fail 8 2 "The segment of configured gateway doesn't match that of the configured ip adress!"
  printf 'default gateway:%s, Iface:eth%s\n' "$1" "$device" >"$npu/gateway"
  rm -f "$npu/gateway.fail"
  keep gateway "$1"
}

set_detect() {
  dotted "$1" || invalid_address
  first "$npu" netdetect
  printf '%s %s\n' "${line% *}" "$1" >"$npu/netdetect"
  keep netdetect "$1"
}

set_tls() {
  case $1 in [01]) ;; *) fail 16 2 'Get invalid enable value!' ;; esac
  [ ! -e "$npu/tls.fail" ] || fail 14 2 'No certificate found, please set certs firstly!'
  [ -e "$npu/tls" ] || sed "s/@/$device/g" $here/all/tls >"$npu/tls"
  sed -i "s/tls switch\[[01]\]/tls switch[$1]/" "$npu/tls"
  keep tls_enable "$1"
}

set_mtu() {
  printf 'mtu:%s\n' "$1" >"$npu/mtu"
  keep mtu "$1"
}

set_link() {
  case $1 in
  down) printf 'link status: DOWN\n' >"$npu/link"; : >"$npu/shut" ;;
  # A broken cable stays broken.
  up) [ ! -e "$npu/shut" ] || { printf 'link status: UP\n' >"$npu/link"; rm "$npu/shut"; } ;;
  *) unknown_option ;;
  esac
}

recover() { # what /etc/hccn.conf says of this device
  [ -e $conf ] ||
    fail 29 2 "The hccn.conf can't access, cmd execute failed! pls check the conf file or cmd run permission."
  recovering=y address='' netmask='' netdetect='' gateway='' tls='' mtu=''
  while IFS='=' read -r key value; do
    case $key in
    address_"$device") address=$value ;;
    netmask_"$device") netmask=$value ;;
    netdetect_"$device") netdetect=$value ;;
    gateway_"$device") gateway=$value ;;
    tls_enable_"$device") tls=$value ;;
    mtu_"$device") mtu=$value ;;
    esac
  done <$conf
  set_link up
  [ ! "$address" ] || set_ip "$address" "$netmask"
  [ ! "$netdetect" ] || set_detect "$netdetect"
  [ ! "$gateway" ] || set_gateway "$gateway"
  [ ! "$tls" ] || [ -e "$npu/tls.fail" ] || set_tls "$tls"
  [ ! "$mtu" ] || set_mtu "$mtu"
  printf 'dev:%s recovery success\n' "$device"
}

recover_all() {
  for npu in $here/[0-9]*; do
    device=${npu##*/}
    [ -e "$npu/gone" ] || recover
  done
}

change() {
  case $device.$what${1:+ $1}${2:+ $2}${4:+ $4} in
  all.'cfg recovery') recover_all ;;
  all.*) unknown_option ;;
  *.'cfg recovery') recover ;;
  *.'ip -s address netmask') set_ip "$3" "$5" ;;
  *.'gateway -s gateway') set_gateway "$3" ;;
  *.'netdetect -s address') set_detect "$3" ;;
  *.'tls -s enable') set_tls "$3" ;;
  *.'mtu -s size') set_mtu "$3" ;;
  *.'fec -s encoding') printf 'fec mode: %s FEC mode\n' "$3" >"$npu/fec" ;;
  *.'link -s '*) set_link "$2" ;;
  *.'stat -c') sed 's/:[0-9].*/:0/' $here/all/stat >"$npu/stat" ;;
  *.'roce_test '* | *.'optical '* | *.'link_stat -c' | *' -s '*) ;;
  *) unknown_option ;;
  esac
}

# The controller: a network namespace that is also the switch, and a mount namespace with its own names and users.
#
# usage: sh controller.sh DIR       stdin: the lifeline; the controller lives until it closes
# environment: ADDRESS, ADDRESS6 (with prefix length)
#
# The file system stays the machine's, so that the code under test runs from its own folder.
set -eu
mount --bind "$1/hosts" /etc/hosts
mount --bind "$1/passwd" /etc/passwd
[ ! -e /etc/resolv.conf ] || mount --bind "$1/resolv.conf" /etc/resolv.conf
ip -batch - <<END
link set lo up
link add lan type bridge stp_state 0 mcast_snooping 0
link set lan up
link add data type bridge stp_state 0 mcast_snooping 0
link set data up
addr add $ADDRESS dev lan
addr add $ADDRESS6 dev lan nodad
END
# As on the hosts, a lost neighbour is noticed within seconds.
for family in ipv4 ipv6; do
  echo 500 >/proc/sys/net/$family/neigh/lan/base_reachable_time_ms
  echo 0 >/proc/sys/net/$family/neigh/lan/delay_first_probe_time
  echo 1 >/proc/sys/net/$family/neigh/lan/ucast_solicit
  echo 300 >/proc/sys/net/$family/neigh/lan/retrans_time_ms
done
echo "pid $$"
exec cat >/dev/null

# PID 1 of one host of the lab. Runs inside fresh mount, PID, UTS, IPC and network namespaces.
#
# usage: sh boot.sh DIR NAME        stdin: the lifeline; the host lives until it closes
# environment: DISK (size of the root disk), KEEP (colon-separated paths to show read-only),
#              ADDRESS, ADDRESS6, DATA (may be empty), GATEWAY (with prefix length, except the gateway)
#
# The root file system is an overlay over the machine's own, its upper layer in memory: the host
# may write anywhere, and all changes disappear with its last process.
set -eu
umask 022
dir=$1
top=$dir/disk/top

# /proc is still the machine's, so this is our process id on the machine.
read -r pid _ </proc/self/stat
echo "pid $pid"
hostname "$2"

mount -t tmpfs -o "mode=755,size=$DISK" root "$dir/disk"
mkdir "$dir/disk/upper" "$dir/disk/work" "$top"
cp -a "$dir/files/." "$dir/disk/upper"
mount -t overlay -o "lowerdir=/,upperdir=$dir/disk/upper,workdir=$dir/disk/work" root "$top"

rm -f "$top/.dockerenv" # whatever the machine is, the host is not a container

mount -t proc proc "$top/proc"
# Network settings belong to the host; the rest belong to the machine and must not be written from here.
mount --bind "$top/proc/sys" "$top/proc/sys"
mount --bind "$top/proc/sys/net" "$top/proc/sys/net"
mount -o remount,bind,ro "$top/proc/sys"
mount -t sysfs -o ro sysfs "$top/sys"
[ ! -d /sys/fs/cgroup ] || mount --rbind /sys/fs/cgroup "$top/sys/fs/cgroup"

mount -t tmpfs -o mode=755 dev "$top/dev"
mkdir "$top/dev/pts" "$top/dev/shm"
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty "$top/dev"
ln -s /proc/self/fd "$top/dev/fd"
ln -s fd/0 "$top/dev/stdin"
ln -s fd/1 "$top/dev/stdout"
ln -s fd/2 "$top/dev/stderr"
ln -s pts/ptmx "$top/dev/ptmx"
mount -t devpts -o newinstance,mode=620,ptmxmode=666 devpts "$top/dev/pts"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$top/dev/shm"

for place in run:755 tmp:1777 var/tmp:1777 home:755 root:711; do
  mount -t tmpfs -o "mode=${place#*:}" tmpfs "$top/${place%:*}"
done
mkdir -p "$top/run/sshd" "$top/run/lock" "$top/home/trainee"
chmod 1777 "$top/run/lock"
chown 4001:4001 "$top/home/trainee"

# Emulated hardware is in a folder that all hosts of the lab share, so that they reach each other. The
# lock shows that this host has power.
mkdir -p "$dir/../shared/$2" "$top/run/cluster-doctor-lab/shared"
mount --bind "$dir/../shared" "$top/run/cluster-doctor-lab/shared"
exec 8>"$dir/../shared/$2/on"
flock 8

IFS=:
for path in $KEEP; do
  mkdir -p "$top$path"
  mount -o bind,ro "$path" "$top$path"
done
unset IFS

# A host does not have the machine's swap,
head -n 1 /proc/swaps >"$dir/swaps"
mount --bind "$dir/swaps" "$top/proc/swaps"
# nor the devices that are plugged into the machine.
: >"$dir/pci"
[ ! -e "$top/proc/bus/pci/devices" ] || mount --bind "$dir/pci" "$top/proc/bus/pci/devices"

# Through this descriptor the lab sees, from outside, every changed file of the root disk.
exec 9<"$dir/disk/upper"

cd "$top"
pivot_root . mnt
cd /
umount -l /mnt

# The lab connects the cable from its side and then sends "go".
read -r _
ip -batch - <<END
link set lo up
link set eth0 up
addr add $ADDRESS dev eth0
addr add $ADDRESS6 dev eth0 nodad
route add default via $GATEWAY
${DATA:+link set eth1 up}
${DATA:+addr add $DATA dev eth1}
END

# On links this short, a lost neighbour is noticed within seconds.
for family in ipv4 ipv6; do
  echo 500 >/proc/sys/net/$family/neigh/eth0/base_reachable_time_ms
  echo 0 >/proc/sys/net/$family/neigh/eth0/delay_first_probe_time
  echo 1 >/proc/sys/net/$family/neigh/eth0/ucast_solicit
  echo 300 >/proc/sys/net/$family/neigh/eth0/retrans_time_ms
done

# The kernel shows the sizes of the neighbour table to the machine only: these are the default ones.
mount -t tmpfs -o mode=755 neigh /proc/sys/net/ipv4/neigh
mkdir /proc/sys/net/ipv4/neigh/default
echo 128 >/proc/sys/net/ipv4/neigh/default/gc_thresh1
echo 512 >/proc/sys/net/ipv4/neigh/default/gc_thresh2
echo 1024 >/proc/sys/net/ipv4/neigh/default/gc_thresh3
start-sshd

echo init >/proc/self/comm
exec 3<&0 </dev/null >/dev/null 2>&1
# `wait` reaps orphans as long as the lifeline is open.
cat <&3 9<&- &
exec 3<&-
wait $!

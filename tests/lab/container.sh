# PID 1 of one container of a lab host. Runs inside fresh mount, UTS, IPC, PID and perhaps network namespaces.
#
# usage: sh container.sh NAME READY    READY: a file that gets our process id on the host after the setup
# environment: HOSTNAME, SHM (size of /dev/shm), KEEP (colon-separated paths to show read-only), NAMES (text of
#              /etc/hosts; empty: the host's), OWN_NET (1, or empty: the host's network), ADDRESS, GATEWAY (own
#              network), SYSCTLS (name=value words), CGROUP (of memory; may be empty), UNIFIED (1: cgroup v2)
#
# Like a real container: its own root, and the host's programs read-only. Unlike init, PID 1 reaps no orphan.
set -eu
umask 022
read -r pid _ </proc/self/stat
exec 7>"$2.new"
[ -z "$CGROUP" ] || echo 0 >"$CGROUP/cgroup.procs"
[ -z "$OWN_NET" ] || hostname "$HOSTNAME"

top=/mnt
mount -t tmpfs -o mode=755 root "$top"
for path in /*; do
  if [ -L "$path" ]; then
    cp -P "$path" "$top$path"
  else
    case $path in
      /bin | /sbin | /lib* | /usr | /etc | /opt | /srv)
        mkdir "$top$path"
        mount --bind "$path" "$top$path"
        mount -o remount,bind,ro "$top$path"
        ;;
    esac
  fi
done
mkdir "$top/proc" "$top/sys" "$top/dev" "$top/old"
for place in run:755 tmp:1777 home:755 root:700 var:755; do
  mkdir -m "${place#*:}" "$top/${place%:*}"
done
mkdir -m 1777 "$top/var/tmp"
: >"$top/.dockerenv"

# Like a real engine: three files of the container over those of the image.
mkdir "$top/.engine"
echo "$HOSTNAME" >"$top/.engine/hostname"
: >"$top/.engine/resolv.conf"
if [ -n "$NAMES" ]; then printf '%s\n' "$NAMES" >"$top/.engine/hosts"; else cp /etc/hosts "$top/.engine/hosts"; fi
for file in hostname resolv.conf hosts; do
  [ ! -e "$top/etc/$file" ] || mount --bind "$top/.engine/$file" "$top/etc/$file"
done

mount -t proc proc "$top/proc"
for setting in $SYSCTLS; do
  echo "${setting#*=}" >"$top/proc/sys/$(echo "${setting%%=*}" | tr . /)"
done
# The sizes of the neighbour table are only visible in the first network namespace.
if [ -z "$OWN_NET" ]; then
  mount --bind /proc/sys/net/ipv4/neigh "$top/proc/sys/net/ipv4/neigh"
fi
mount --rbind "$top/proc/sys" "$top/proc/sys"
mount -o remount,bind,ro "$top/proc/sys"
mount --bind /proc/swaps "$top/proc/swaps"
[ ! -e /proc/bus/pci/devices ] || mount --bind /proc/bus/pci/devices "$top/proc/bus/pci/devices"
mount -t sysfs -o ro sysfs "$top/sys"
if [ -n "$CGROUP" ] && [ -n "$UNIFIED" ]; then
  mount --bind "$CGROUP" "$top/sys/fs/cgroup"
elif [ -n "$CGROUP" ]; then
  mount -t tmpfs cgroup "$top/sys/fs/cgroup"
  mkdir "$top/sys/fs/cgroup/memory"
  mount --bind "$CGROUP" "$top/sys/fs/cgroup/memory"
fi

mount -t tmpfs -o mode=755 dev "$top/dev"
mkdir "$top/dev/pts" "$top/dev/shm"
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty "$top/dev"
ln -s /proc/self/fd "$top/dev/fd"
mount -t tmpfs -o "mode=1777,nosuid,nodev,size=$SHM" shm "$top/dev/shm"

IFS=:
for path in $KEEP; do
  mkdir -p "$top$path"
  mount -o bind,ro "$path" "$top$path"
done
unset IFS

if [ -n "$OWN_NET" ]; then
  echo "$pid" >"$2.net"
  until [ -e "$2.plugged" ]; do sleep 0.02; done
  ip -batch - <<END
link set lo up
link set eth0 up
addr add $ADDRESS dev eth0
route add $GATEWAY dev eth0
route add default via $GATEWAY
END
fi

cd "$top"
pivot_root . old
cd /
umount -l /old
rmdir /old
echo "$pid" >&7
exec 7>&- </dev/null >/dev/null 2>&1
exec sleep 864000

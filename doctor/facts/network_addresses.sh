command -v ip >/dev/null && echo addresses: && exec ip -o addr show
a=$(exec perl -e 'use Socket;
  socket(S, AF_INET, SOCK_DGRAM, 0) or exit 1;
  $b = "\0" x 65536; $c = pack("ix!8P", length $b, $b);
  ioctl(S, 0x8912, $c) or exit 1;
  $n = unpack("i", $c); exit 1 if $n > 65000;
  for ($i = 0; $i + 40 <= $n; $i += 40) {
    ($name, $ip) = unpack("Z16x4a4", substr($b, $i)); $name =~ /^[^:]+/;
    push @o, "0: $& inet ".inet_ntoa($ip)." $name" }
  if (open F, "/proc/net/if_inet6") { for (sort { substr($a, 39) cmp substr($b, 39) or $a cmp $b } <F>) {
    @w = split; $old = hex($w[4]) & 32 ? "deprecated" : "";
    push @o, "0: $w[5] inet6 ".Socket::inet_ntop(AF_INET6, pack "H32", $w[0])." $old" } }
  print join("\n", @o)' 2>/dev/null) ||
a=$(exec python3 -ISc 'import array, fcntl, os, socket, struct
b = array.array("B", bytes(65536))
c = bytearray(struct.pack("iP", len(b), b.buffer_info()[0]))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s: fcntl.ioctl(s, 0x8912, c)
n, = struct.unpack_from("i", c)
assert n <= 65000
o = []
for i in range(0, n - 39, 40):
    name, ip = struct.unpack_from("16s4x4s", b, i)
    name = os.fsdecode(name.split(b"\0")[0])
    o.append("0: %s inet %s %s" % (name.split(":")[0], socket.inet_ntoa(ip), name))
if os.path.exists("/proc/net/if_inet6"):
    for line in sorted(open("/proc/net/if_inet6"), key=lambda line: (line[39:], line)):
        w = line.split()
        ip = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(w[0]))
        o.append("0: %s inet6 %s %s" % (w[5], ip, "deprecated" if int(w[4], 16) & 32 else ""))
print("\n".join(o))' 2>/dev/null) && echo addresses: && echo "$a" && exit
a=$(hostname -I) && echo no ip: $a

command -v ps >/dev/null || exit 127; cd /proc
l=$(grep -lsazE '^[0-9]+ \(.*\) [DZ] |@hidden@' [0-9]*/stat [0-9]*/cmdline 2>&1)
[ "$l" ] || { echo none; exit; }
read -r _ _ _ _ _ own _ </proc/self/stat
COLUMNS=9999 ps -eo sid=,pid=,ppid=,stat=,user=,etimes=,args= |
awk -v own=$own '$2 == 1 || $1 != own && ($4 ~ /^[DZ]/ || $3 == 1 && /@worker@/) {
worker = $3 == 1 && match($0, /@worker@/) ? substr($0, RSTART, RLENGTH) : ""
if (n++ < 300) print $2, $3, $4, $5, $6, substr($7, 1, 200), worker}'

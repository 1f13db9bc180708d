read -r u _ </proc/uptime; echo uptime $u
exec awk -v worth='@worth@' 'BEGIN { dmesg = "exec dmesg"
while ((dmesg | getline line) > 0) if (tolower(line) ~ worth) kept[n++ % @most@] = line
if (close(dmesg)) exit 1; for (k = n > @most@ ? n - @most@ : 0; k < n; k++) print kept[k % @most@] }'

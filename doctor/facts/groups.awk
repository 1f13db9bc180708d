while ((getline row < "/proc/self/cgroup") > 0) {
  at = names = row; sub(/^[^:]*:[^:]*:/, "", at); sub(/^[^:]*:/, "", names); sub(/:.*/, "", names)
  top = "/sys/fs/cgroup"; names = "," names ","
  if (names == ",,") {
    if ((getline word < (top "/cgroup.controllers")) < 0) top = top "/unified"
    kinds = "memory.max memory.current memory.high pids.max pids.current cpu.max" }
  else if (index(names, ",memory,")) { top = top "/memory"; kinds = "memory.limit_in_bytes memory.usage_in_bytes" }
  else if (index(names, ",pids,")) { top = top "/pids"; kinds = "pids.max pids.current" }
  else if (index(names, ",cpu,")) { top = top "/cpu"; kinds = "cpu.cfs_quota_us cpu.cfs_period_us" }
  else continue
  count = split(kinds, kind, " ")
  for (;;) {
    for (k = 1; k <= count; k++) {
      file = top at "/" kind[k]
      if ((getline word < file) > 0) { split(word, said, " "); print "group", kind[k], said[1], (2 in said) ? said[2] : 0, at }
      close(file) }
    if (at == "" || at == "/") break
    if (!sub("/[^/]*$", "", at)) break } }

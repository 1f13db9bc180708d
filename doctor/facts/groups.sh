while IFS=: read -r n names at; do
  case ,$names, in
    ,,) g=/sys/fs/cgroup; [ -e $g/cgroup.controllers ] || g=$g/unified
      kinds='memory.max memory.current memory.high pids.max pids.current cpu.max';;
    *,memory,*) g=/sys/fs/cgroup/memory kinds='memory.limit_in_bytes memory.usage_in_bytes';;
    *,pids,*) g=/sys/fs/cgroup/pids kinds='pids.max pids.current';;
    *,cpu,*) g=/sys/fs/cgroup/cpu kinds='cpu.cfs_quota_us cpu.cfs_period_us';;
    *) continue;;
  esac
  while :; do
    for k in $kinds; do
      a=; [ ! -r "$g$at/$k" ] || read -r a b <"$g$at/$k"
      [ -z "$a" ] || echo "group $k $a ${b:-0} $at"; b=
    done
    case $at in ''|/) break;; esac
    at=${at%/*}
  done
done </proc/self/cgroup

set -f; IFS=' :'
for p in $LD_PRELOAD; do
  case $p in *'$'*) ;; */*) [ -e "$p" ] || echo "absent LD_PRELOAD $p";; esac
done
for n in NCCL_GRAPH_FILE NCCL_TOPO_FILE NCCL_CONF_FILE NCCL_NET_PLUGIN NCCL_TUNER_PLUGIN HCCL_WHITELIST_FILE RANK_TABLE_FILE; do
  eval "p=\$$n"; case $p in /*) [ -e "$p" ] || echo "absent $n $p";; esac
done
p=${PYTHONHOME%%:*} z=${TZ#:} d=${TZDIR:-/usr/share/zoneinfo}
if [ -n "$p" ]; then
  set +f
  for f in "$p"/lib*/python[0-9]*; do [ -e "$f" ] || echo "absent PYTHONHOME $p"; break; done
fi
case $z in
  ''|*[0-9]*|UTC|GMT|/etc/localtime) ;;
  /*) [ -e "$z" ] || echo "absent TZ $z";;
  *) [ ! -d $d ] || [ -e "$d/$z" ] || echo "absent TZ $z";;
esac
exec awk 'BEGIN { while ((getline row < "/proc/self/status") > 0) if (ENVIRON["LOGNAME"] && split(row, id) > 4 && id[1] == "Uid:") print "uid", id[2], ENVIRON["LOGNAME"]; for (name in ENVIRON) if (name ~ /^(@job@)$/ && name !~ /@secret@/) { split(ENVIRON[name], line, "\n"); print name "=" line[1] } @groups@}'

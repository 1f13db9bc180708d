command -v getent >/dev/null || exit 127
read -r h </proc/sys/kernel/hostname || h=$(uname -n)
set -- "$h" NAMES ${MASTER_ADDR:+"$MASTER_ADDR"}
IFS='
'; set -f
if o=$([ -z "$q" ] || exec getent ahosts "$@"; exec timeout 2 getent ahosts "$@") 2>/dev/null; then
  k=$# r=
  for l in $o; do
    case $l in
      *' STREAM '?*) k=$((k - 1)) r="$r? $1$IFS${l%% *}$IFS"; [ $# = 1 ] || shift;;
      *' STREAM'*) r="$r${l%% *}$IFS";;
    esac
  done
  [ $k != 0 ] || { printf '%s' "$r"; exit 0; }
  set -- "$h" NAMES ${MASTER_ADDR:+"$MASTER_ADDR"}
fi
for n in "$@"; do echo "? $n"; getent ahosts "$n"; done
:

set -- /proc/driver/nvidia-nvswitch/devices/*
[ -e "$1" ] || set -- /dev/nvidia-nvswitch[0-9]*
[ -e "$1" ] || { echo switches 0; exit; }
echo switches $#
[ -r /proc/1/comm ] || { echo hidden; exit; }
grep -lsx nv-fabricmanage /proc/[0-9]*/comm
:

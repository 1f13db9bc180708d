L=@SECONDS@
p() {
  q "$1/$2" -i "$1" -ping -g address "$2" pkt 1
  case $o in *' 0.00% packet loss'*) ;; *) q "$1/$2" -i "$1" -ping -g address "$2";; esac
}

l() {
  [ -h "$1" ] && k=link || k=file
  if [ ! -e "$1" ]; then printf '@ 0 0 %s missing\n' "$1"; return; fi
  if [ ! -f "$1" ] || [ ! -r "$1" ]; then printf '@ 0 0 %s unreadable\n' "$1"; return; fi
  c=$(cksum <"$1") && printf '@ %s %s %s\n' "$c" "$1" "$k"
  [ "${c#* }" -gt @most@ ] || { cat "$1"; echo; }
}

l() { h=
  if ! [ -e "$1" ]; then printf '%s\n' "$1"
  elif [ -d "$1" ]; then h='a folder'; [ -x "$1" ] || h='not readable'
  elif ! [ -r "$1" ] && ! [ -x "$1" ]; then h='not readable'
  elif [ -f "$1" ] && ! [ -s "$1" ]; then case "$1" in /proc/*|/sys/*) ;; *) h=empty;; esac; fi
  [ -z "$h" ] || printf '%s %s\n' "$h" "$1"
}
( {
echo look
@looks@
echo looked
} 2>/dev/null 5>&- & ) | cat
# the size of the file system of $b, and what is free of it: -k in kilobytes, -i in inodes
room() { df "${1}P" "$b" | sed -n '$s/.* \([0-9][0-9]*\)  *[0-9][0-9]*  *\([0-9][0-9]*\)  *[0-9-]*% .*/\1 \2/p'; }
l() { h= k=${2-}$1; [ -z "${2-}" ] || [ -n "${HOME-}" ] || return
  if [ "${2-}" = '$PATH' ]; then command -v "${1#/}" >/dev/null || printf 'missing %s\n' "$k"; return; fi
  if [ "${2-}" = '$PORT' ]; then
    [ ! -r /proc/net/tcp ] || grep -q ":$(printf %04X "${1#/}") 0*:0000 0A" /proc/net/tcp* ||
      printf 'missing %s\n' "$k"
    return
  fi
  if [ "${2-}" = '$WHOSE' ]; then id "${1#/}" >/dev/null || printf 'missing %s\n' "$k"; return; fi
  set -- "${2:+$HOME}$1"
  if [ "${1%/.}" != "$1" ]; then
    b=${1%/.}
    while ! [ -e "$b" ]; do case "$b" in */*) b=${b%/*} b=${b:-/};; *) b=.;; esac; done
    if ! [ -w "$b" ]; then h='not writable'; [ "$b" != / ] || h=missing
    elif [ -d "$b" ]; then
      set -- $(room -k)
      [ "${1:-0}" = 0 ] || [ "$2" -ge 102400 ] || h='less than 100 MB free'
      set -- $(room -i)
      [ "${1:-0}" = 0 ] || [ "$2" -ge 100 ] || h='less than 100 inodes free'
    elif [ "$b" != "${1%/.}" ]; then h='below a file'; fi
  elif ! [ -e "$1" ]; then
    if [ -d "${1%/*}/" ]; then
      h=missing: b=${1##*/} m=0
      for n in "${1%/*}/${b%"${b#?}"}"*".${b##*.}"; do
        m=$((m+1)); [ $m -lt 9 ] && [ -e "$n" ] && h="$h ${n##*/}"
      done
    else printf '%s\n' "$k"; fi
  elif [ -d "$1" ]; then
    h='a folder'; [ -x "$1" ] || h='not readable'
    b=
    for n in torch torch_npu mindspore numpy; do [ ! -e "$1/$n/__init__.py" ] || b="$b $n"; done
    [ -z "$b" ] || h="a folder with its own$b"
  elif ! [ -r "$1" ] && ! [ -x "$1" ]; then h='not readable'
  elif [ -f "$1" ] && ! [ -s "$1" ]; then case "$1" in /proc/*|/sys/*) ;; *) h=empty;; esac
  elif [ -f "$1" ]; then
    [ -x "$1" ] || h='not executable'
    case "$1" in *.bin|*.safetensors|*.pt|*.pth|*.ckpt|*.gguf|*.model|*.idx|*.npy|*.parquet)
      case $(head -c 40 "$1") in 'version https://git-lfs'*) h='a pointer of git-lfs';; esac;;
    esac
    case "$1" in
      *.sh|*.bash|*.env|*/bin/torchrun|*/bin/accelerate|*/bin/deepspeed|*/bin/msrun)
        b=$(head -c 512 "$1" | head -n 1)
        case "$b" in
          *"$r") h='lines with CR LF';;
          '#!'*) b=${b#??} b=${b# }; [ -x "${b%% *}" ] || h='a script without its interpreter';;
        esac;;
      *.py) for b in random typing types queue logging copy signal socket json inspect enum tokenize \
        operator platform numbers string threading tempfile traceback warnings functools datetime pickle torch numpy; do
          [ "$b.py" = "${1##*/}" ] || ! [ -f "${1%/*}/$b.py" ] || h="beside $b.py, which hides Python's own module"
        done;;
    esac
    case "$1" in
      *.py|*.json|*.yaml|*.yml) s=$((s+1)); [ $s -gt 4 ] || echo "= $(head -c 262144 "$1" | cksum) $k";;
    esac
  fi
  [ -z "$h" ] || printf '%s %s\n' "$h" "$k"
}
( {
s=0 r=$(printf '\r')
echo look
@looks@
echo looked
} 2>/dev/null 5>&- & ) | cat
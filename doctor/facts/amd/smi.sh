@before@
@defining@
L=@left@ a=
for n in @amd_smi@ @rocm_smi@; do
  t=$(command -v $n) || t=@home@/$n
  [ -x "$t" ] || continue
  a=1 r=
  case $n in
  @amd_smi@) q $n @amd@ --json ;;
  *) q $n @rocm@ --json ;;
  esac
  case $r in 0|hung|stuck|'') break ;; esac
done
[ "$a" ] || { echo "there is neither @amd_smi@ nor @rocm_smi@" >&2; exit 127; }
[ "$n$r" = @amd_smi@0 ] || exit 0
@after@
s=@script@
if unshare -m sh -c @protect@ 2>/dev/null
then exec unshare -m sh -c @shielded@ sh "$s"
else exec sh -c "$s" sh rw; fi

BEGIN { n = split(commands, t, " ")
  for (i = 1; i <= n; i++) { split(t[i], a, "="); starts[a[1]] = a[2]; if (a[3] != "") then[a[1]] = a[3] }
  n = split(modules, t, " "); for (i = 1; i <= n; i++) { split(t[i], a, "="); module[a[1]] = a[2] }
  n = split(options, t, " "); for (i = 1; i <= n; i++) { split(t[i], a, "=")
    if (a[1] ~ /^@/) { way = substr(a[1], 2); how[way] = "=" a[2] } else kind[way ":" a[1]] = a[2] } }
function base(w) { sub(/^.*\//, "", w); return w }
function is_python(w) { return base(w) ~ /^(python|pypy)[0-9.]*$/ }
function is_launcher(w) { return base(w) in starts }
function put(p, w) { said[p] = said[p] "\t" w }
function last(p, w) { sub(/ .*/, "", w); put(p, w); at[p] = "end" }
function enter(p, w) { lone[p] = maybe[p] = 0; w = base(w); begun[p] = starts[w]
  if (w in then) { first[p] = then[w]; at[p] = "launch" } else at[p] = starts[w] }
function begin(p, w) { last(p, w); if (is_launcher(w)) enter(p, w); else
  if (is_python(w)) at[p] = "py"; else if (base(w) ~ "^(" wrapped ")$") at[p] = "wrap" }
function is_mine(p, w, n) { n = ++words[p]
  if (n == 1) { pure[p] = is_python(w); return base(w) == "doctor" }
  if (!pure[p] || w ~ /^-/) return 0
  pure[p] = 0; return base(w) == "doctor" }
function word(p, w, a) { a = at[p]; if (is_mine(p, w)) mine[p] = 1
  if (a == "end") return
  if (skip[p] > 0) { skip[p]--; return }
  if (value[p]) { put(p, w); value[p] = 0; return }
  if (a == "") begin(p, w)
  else if (a == "wrap") { if (is_launcher(w) || is_python(w)) begin(p, w) }
  else if (a == "py") python(p, w)
  else if (a == "launch") { if (w == first[p]) { put(p, w); at[p] = begun[p] } else at[p] = "end" }
  else if (a == "code") { helper[p] = w ~ /^from multiprocessing/; at[p] = "end" }
  else if (a == "module") runs(p, w)
  else option(p, w, a) }
function runs(p, w) { if (w in module) { put(p, w); at[p] = module[w] } else last(p, w) }
function python(p, w) {
  if (w ~ /^-[bBdEiIOPqRsSuvx]*c/) { put(p, "-c"); at[p] = w ~ /c$/ ? "code" : "end" }
  else if (w ~ /^-[bBdEiIOPqRsSuvx]*m$/) { put(p, w); at[p] = "module" }
  else if (w ~ /^-[bBdEiIOPqRsSuvx]*m/) { sub(/^-[^m]*m/, "", w); put(p, "-m"); runs(p, w) }
  else if (w ~ /^-[bBdEiIOPqRsSuvx]*[XW]$/) skip[p] = 1
  else if (w ~ /^-[bBdEiIOPqRsSuvx]+$/) put(p, w)
  else if (w !~ /^-./) { if (is_launcher(w)) { put(p, w); enter(p, w) } else last(p, w) } }
function named(a, o, k, n, f) { if ((a ":" o) in kind || how[a] !~ /a/ || length(o) < 3) return kind[a ":" o]
  for (k in kind) if (kind[k] ~ /[vu]/ && index(k, a ":" o) == 1) { n++; f = kind[k] }
  return n == 1 ? f : "" }
function option(p, w, a, o, e, k) { held[p] = ""
  if (w == "--" && !lone[p]) { put(p, w); lone[p] = 1; return }
  if (lone[p] || w !~ /^-./) {
    if (maybe[p] && !lone[p] && w !~ /[.]py|^-/ && !is_python(w)) { held[p] = w; maybe[p] = 0 }
    else if (how[a] ~ /o/) begin(p, w); else last(p, w)
    return }
  maybe[p] = 0; o = w; sub(/^-+/, "", o); e = index(o, "="); if (e) o = substr(o, 1, e - 1); gsub(/-/, "_", o)
  k = named(a, o)
  if (k == "f" && !e) put(p, w)
  else if (k == "p") skip[p] = 2
  else if (k == "v") { put(p, w); value[p] = !e }
  else if (k == "u") skip[p] = !e
  else if (how[a] ~ /g/ && w !~ /^--/ && kind[a ":" substr(o, 1, 1)] ~ /[vu]/) {
    if (kind[a ":" substr(o, 1, 1)] == "v") put(p, w) }
  else maybe[p] = !e }
{ slash = index($0, "/"); p = substr($0, 1, slash - 1); r = substr($0, slash + 1)
  colon = index(r, ":"); k = substr(r, 1, colon - 1); v = substr(r, colon + 1) }
k == "stat" { sub(/^.*\) /, "", v); split(v, s, " "); up[p] = s[2]; session[p] = s[4]; next }
k == "cmdline" { if (!(p in name)) { name[p] = v; sub(/^.*\//, "", name[p]); sub(/^-/, "", name[p]) }
  gsub(/\t/, " ", v); v = substr(v, 1, 300); word(p, v)
  if (length(line[p]) < 4000) line[p] = line[p] "\t" v
  next }
k == "folder" { folder[p] = substr(v, 1, 4000); next }
k == "environ" { e = index(v, "="); x = substr(v, 1, e - 1); if (x !~ ("^(" names ")$") || x ~ secret) next
  who[p, x] = substr(v, e)
  if (length(env[p]) < 16000) env[p] = env[p] "e " substr(v, 1, 400) "\n" }
function numbered(p, i) { for (i = 1; i <= count; i++) if (who[p, keys[i]] != "") return 1
  return by_device(p) }
function by_device(p, i) {
  for (i = 1; i <= tables; i++) if (who[p, table[i]] != "") return who[p, "DEVICE_ID"] != ""
  return 0 }
function same(p, q, i) { if (by_device(p) && who[p, "DEVICE_ID"] != who[q, "DEVICE_ID"]) return 0
  for (i = 1; i <= count; i++) if (who[p, keys[i]] != who[q, keys[i]]) return 0
  return 1 }
function above(p, q, n) { q = up[p]
  for (n = 0; n < 50 && (q in name); n++) { if (name[q] !~ wrapper) return q; q = up[q] }
  return "" }
function is_kin(p, n) {
  for (n = 0; n < 50 && (p in name); n++) { if (p in mine) return 1; p = up[p] }
  return 0 }
END { n = 0; count = split(numbers, keys, " "); tables = split(told, table, " ")
  for (k = split(outside, t, " "); k > 0; k--) away[t[k]] = 1
  for (p in mine) { q = p; for (k = 0; k < 50 && (q in name); k++) { host[q] = 1; q = up[q] } }
  for (p in name) if (name[p] !~ wrapper && (own == 0 || session[p] != own) && name[p] != "" \
      && !(p in host) && !is_kin(p)) {
    q = above(p)
    if (q != "" && same(p, q) && (numbered(p) || helper[p] || line[p] == line[q])) {
      if (line[p] ~ /multiprocessing.spawn/) spawns[q] = 1 }
    else if (!helper[p]) kept[p] = 1 }
  for (p in kept) { if (++n > most) { print "more"; exit }
    if (held[p] != "") put(p, held[p])
    if (folder[p] != "") env[p] = env[p] "f " folder[p] "\n"
    print "p " p " " up[p] " " (p in spawns) "\n" env[p] (p in away ? "o\n" : "") "a" said[p] } }

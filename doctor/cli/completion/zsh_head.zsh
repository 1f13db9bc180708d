#compdef doctor
# Completion of doctor for zsh: eval "$(doctor completion zsh)"
_doctor() {
    local at= next i
    local -a commands
    for ((i = 2; i < CURRENT; i++)); do
        next="${at:+$at }${words[i]}"
        case $next in (@PATHS@) at=$next ;; esac
    done
    case $at in

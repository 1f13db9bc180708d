# Completion of doctor for bash: eval "$(doctor completion bash)"
_doctor_offer() {
    mapfile -t COMPREPLY < <(compgen "$@" -- "$word")
}
_doctor_files() {
    compopt -o filenames 2>/dev/null
    _doctor_offer "$@"
}
_doctor_list() {  # behind the last comma
    local before=
    [[ $word == *,* ]] && before=${word%,*},
    mapfile -t COMPREPLY < <(compgen -P "$before" "$@" -- "${word##*,}")
}
_doctor() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} at= next i
    COMPREPLY=()
    if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        next="${at:+$at }${COMP_WORDS[i]}"
        case $next in @PATHS@) at=$next ;; esac
    done
    case $before in

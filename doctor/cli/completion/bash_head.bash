# Completion of doctor for bash: eval "$(doctor completion bash)"
_doctor_offer() {  # what begins with $word: values of the kind $1, and of the words $2
    local IFS=' ' how=()
    local words=($2)
    case $1 in
        files) how=(-f) ;;
        folders) how=(-d) ;;
        hosts) how=(-A hostname) ;;
        list) if [[ $word == *,* ]]; then how=(-P "${word%,*},") word=${word##*,}; fi ;;
    esac
    if [[ $1 == f* ]]; then compopt -o filenames 2>/dev/null; fi
    # So many words would hide the files.
    if [[ $1 == files && ! $word && ${#words[@]} -gt 40 ]]; then words=(); fi
    # -W evaluates what is not quoted.
    mapfile -t COMPREPLY < <(compgen "${how[@]}" -W "${words[*]@Q}" -- "$word")
}
_doctor() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} at=doctor next i
    local - IFS=$'\n' row cells options= kind= words= table=@ROWS@
    set -f
    COMPREPLY=()
    if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        next="$at ${COMP_WORDS[i]}"
        if [[ $table == *"|$next|"* ]]; then at=$next; fi
    done
    local rows=($table)
    IFS=';'
    for row in "${rows[@]}"; do
        if [[ $row != *"|$at|"* ]]; then continue; fi
        cells=($row)  # paths, names, kind, words, about
        case ${cells[1]} in
            -*) options+="${cells[1]} "
                if [[ ${cells[2]} != switch && " ${cells[1]} " == *" $before "* ]]; then
                    _doctor_offer "${cells[2]}" "${cells[3]}"
                    return
                fi ;;
            '') kind=${cells[2]} words=${cells[3]} ;;
            *) words+="${cells[1]} " ;;
        esac
    done
    if [[ $word == -* ]]; then _doctor_offer '' "$options"; else _doctor_offer "$kind" "$words"; fi
}
complete -F _doctor doctor

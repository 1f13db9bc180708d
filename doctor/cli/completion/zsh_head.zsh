#compdef doctor
# Completion of doctor for zsh: eval "$(doctor completion zsh)"
_doctor_offer() {  # the values of the row with the number that comes last, behind the options of compadd
    local -a cells=("${(@s:;:)rows[$argv[-1]]}")
    local -a known=(${(s: :)cells[4]})
    argv[-1]=()
    if [[ $cells[3] == list ]]; then
        _values "$@" -s , value $known
        return
    fi
    compadd "$@" -a known
    case $cells[3] in
        files) _files "$@" ;;
        folders) _files "$@" -/ ;;
        hosts) _hosts "$@" ;;
        *) (( $#known )) || _message value ;;
    esac
}
_doctor() {
    local at=doctor next name i table=@ROWS@
    local -a rows=("${(@f)table}") cells commands specs
    for ((i = 2; i < CURRENT; i++)); do
        next="$at $words[i]"
        if [[ $table == *"|$next|"* ]]; then at=$next; fi
    done
    for ((i = 1; i <= $#rows; i++)); do
        if [[ $rows[i] != *"|$at|"* ]]; then continue; fi
        cells=("${(@s:;:)rows[i]}")  # paths, names, kind, words, about
        for name in "${(@s: :)cells[2]}"; do
            case $name:$cells[3] in
                -*:switch) specs+=("*${name}[$cells[5]]") ;;
                --*) specs+=("*${name}=[$cells[5]]:value:_doctor_offer $i") ;;
                -*) specs+=("*${name}+[$cells[5]]:value:_doctor_offer $i") ;;
                :*) specs+=("*: :_doctor_offer $i") ;;
                *) commands+=("$name:$cells[5]") ;;
            esac
        done
    done
    if [[ $#commands -gt 0 && $words[CURRENT] != -* ]]; then
        _describe command commands
    else
        _arguments $specs
    fi
}
if [[ $funcstack[1] == _doctor ]]; then _doctor "$@"; else compdef _doctor doctor; fi

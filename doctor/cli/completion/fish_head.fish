# Completion of doctor for fish: doctor completion fish | source
set -g __doctor_rows (string split \n -- @ROWS@)
set -g __doctor_paths (string replace -r ';.*' '' -- $__doctor_rows | string split '|')
function __doctor_at
    set -l at doctor
    for word in (commandline -opc)[2..-1]
        if contains -- "$at $word" $__doctor_paths
            set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
function __doctor_offer  # the values of a row that are not files
    set -l cells (string split ';' -- $__doctor_rows[$argv])
    set -l words (string split -n ' ' -- $cells[4])
    switch $cells[3]
        case folders
            __fish_complete_directories
        case hosts
            __fish_print_hostnames
        case list  # behind the last comma
            set -l before (string replace -rf '^(?:--[^=]*=)?(.*,).*' '$1' -- (commandline -ct))
            set words "$before"$words
    end
    string join \n -- $words
end
complete -c doctor -f
for number in (seq (count $__doctor_rows))
    set -l cells (string split ';' -- $__doctor_rows[$number])  # paths, names, kind, words, about
    set -l offer -x -a "(__doctor_offer $number)"
    set -l names
    for name in (string split -n ' ' -- $cells[2])
        switch $name
            case '--*'
                set names $names -l (string sub -s 3 -- $name)
            case '-*'
                set names $names -s (string sub -s 2 -- $name)
        end
    end
    switch $cells[3]
        case switch
            set offer
        case command
            set offer -a $cells[2]
        case files
            set offer -r -F -a "(__doctor_offer $number)"
    end
    for path in (string split -n '|' -- $cells[1])
        complete -c doctor -n "__doctor_at '$path'" $names $offer -d "$cells[5]"
    end
end

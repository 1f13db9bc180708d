# Completion of doctor for fish: doctor completion fish | source
function __doctor_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        set -l next (string trim -- "$at $word")
        if contains -- $next @PATHS@
            set at $next
        end
    end
    test "$at" = "$argv"
end
function __doctor_list  # behind the last comma
    set -l before (string replace -rf '^(?:--[^=]*=)?(.*,).*' '$1' -- (commandline -ct))
    printf '%s\n' "$before"$argv
end
complete -c doctor -f

# The mesh agent for hosts without Python: bash's /dev/tcp can connect but not listen.
# Commands and answers are those of agent.py. Details of a failure come from bash's own messages.
IFS=$' \t\n'
set +f
export LC_ALL=C
say() { printf '%s\n' "$1" 2>/dev/null || exit 0; }

# The limit covers connecting and answering: bash cannot limit them separately.
call() { # TOKEN NUMBER LIMIT PEER PORT ADDRESS
    timeout "$3" bash --norc --noprofile -c '
        exec 3<>"/dev/tcp/$4/$3" || exit 1
        echo up
        printf "doctor-mesh %s %s\n" "$0" "$1" >&3 || exit 1
        IFS= read -r -n 100 answer <&3 || exit 1
        [ "$answer" = "doctor-mesh OK $2" ] && echo right || echo wrong
    ' "$1" "$2" "$4" "$5" "$6" 2>&1
}

# Connects once more, to see whether a load gets there and back.
carry() { # TOKEN NUMBER SECONDS PORT ADDRESS LOAD
    timeout "$3" bash --norc --noprofile -c '
        exec 3<>"/dev/tcp/$3/$2" || exit 1
        printf "doctor-mesh %s %s\n" "$0" "$1" >&3 || exit 1
        IFS= read -r -u 3 answer || exit 1
        echo up
        printf "%*s\n" "$(($4 - 1))" "" >&3
        IFS= read -r -u 3 answer || exit 1
        echo there
        IFS= read -r -N "$4" -u 3 answer && echo back
    ' "$1" "$2" "$4" "$5" "$6" 2>&1
}

try() { # TOKEN NUMBER ID LIMIT ANSWER TRIES PEER PORT ADDRESS LOAD
    local token=$1 number=$2 id=$3 limit=$((${4%.*} + 1)) most=$6 tries=0 outcome=dropped detail='' said rc
    local carried=''
    while [ "$tries" -lt "$most" ] && [ "$outcome" = dropped ]; do
        tries=$((tries + 1))
        said=$(call "$token" "$number" "$limit" "$7" "$8" "$9")
        rc=$?
        case $said in
            up*right) outcome=ok ;;
            up*wrong) outcome=wrong-answer detail='something else answered' ;;
            up*) outcome=reset detail='connected, then closed before any answer'
                [ "$rc" = 124 ] && outcome=silent detail="connected, but no answer within $limit s" ;;
            *'onnection refused'*) outcome=refused detail='Connection refused' ;;
            *'o route to host'* | *'unreachable'*) outcome=no-route detail='No route to host' ;;
            *'timed out'*) detail='Connection timed out' ;;
            '') detail="no answer of any kind within $limit s"
                [ "$rc" = 124 ] || outcome=untested detail="bash ended with $rc" ;;
            *'/dev/tcp/'*'o such file'* | *'ommand not found'*)
                outcome=untested detail='this bash has no /dev/tcp, or the host has no timeout command' ;;
            *) outcome=error detail=$(printf %s "${said:0:150}" | tr -c 'A-Za-z0-9 :/.,_-' ' ') ;;
        esac
    done
    if [ "$outcome" = ok ] && [ "${10}" -gt 0 ]; then
        said=$(carry "$token" "$number" "$((${5%.*} + 2))" "$8" "$9" "${10}")
        case $said in
            up*there*back) carried=both ;;
            up*there*'invalid'*) ;; # a bash before 4.1 cannot count what it reads
            up*there*) carried=back ;;
            up*) carried=out ;;
        esac
    fi
    said="\"id\":$id,\"outcome\":\"$outcome\",\"tries\":$tries,\"detail\":\"$detail\",\"carried\":\"$carried\""
    say "{\"say\":\"link\",$said}"
}

token='' number=-1 lease=10 running=0
say "{\"say\":\"ready\",\"agent\":\"bash $BASH_VERSION\"}"
while read -r -t "$lease" -a words; do
    case ${words[0]} in
        hello) token=${words[1]} number=${words[2]} lease=$((${words[3]%.*} + 1)) ;;
        listen)
            say "{\"say\":\"listener\",\"id\":${words[1]},\"error\":\"cannot-listen\",\"detail\":\"no Python\"}" ;;
        connect)
            try "$token" "$number" "${words[@]:1}" </dev/null &
            running=$((running + 1))
            if [ "$running" -ge 32 ]; then
                wait
                running=0
            fi ;;
        stop)
            say '{"say":"bye"}'
            break ;;
    esac
done
children=$(jobs -p)
[ -z "$children" ] || kill $children 2>/dev/null
exit 0

# Ends the processes of one command once the pipe on standard input closes: its other end is held by the agent alone,
# so that happens however the agent died. $1 is the command's mark in the environment, $2 that on the limit of file
# locks or empty. Each line read is one of `leader PID` (the command's session), `gone` (its number may come to mean
# another one) and `kin PID START` (a process that left the session, with the tick it began at).
trap '' HUP INT QUIT TERM PIPE
mark=$1 limit=$2 leader= kin=' '
while read -r what pid start; do
    case $what in
        leader) leader=$pid ;;
        gone) leader= ;;
        kin) kin="$kin$pid:$start " ;;
    esac
done

# Adds the living of the family to $found, then their children, until none is new.
look() {
    grown=1
    while [ "$grown" = 1 ]; do
        grown=0
        for stat in /proc/[0-9]*/stat; do
            read -r line <"$stat" || continue
            pid=${stat#/proc/} pid=${pid%/stat}
            # What follows the name, which may hold spaces and brackets: state, parent, group, session, …
            set -- ${line##*) }
            case $1 in Z | X) continue ;; esac
            case $found in *" $pid "*) continue ;; esac
            ours=
            [ "$4" = "$leader" ] && ours=1
            case $found in *" $2 "*) ours=1 ;; esac
            case $kin in *" $pid:${20} "*) ours=1 ;; esac
            [ "$ours" ] && found="$found$pid " grown=1
        done
    done
}

quiet=0 round=0
while [ "$quiet" -lt 2 ] && [ "$round" -lt 50 ]; do
    round=$((round + 1)) found=' '
    [ "$leader" ] && kill -KILL -- "-$leader"
    for marked in $(grep -lsF "$mark=1" /proc/[0-9]*/environ); do
        pid=${marked#/proc/}
        found="$found${pid%/environ} "
    done
    [ "$limit" ] && for marked in $(grep -ls "^Max file locks.* $limit " /proc/[0-9]*/limits); do
        pid=${marked#/proc/}
        found="$found${pid%/limits} "
    done
    look
    if [ "$found" = ' ' ]; then
        # Once more: the agent may have died while it was starting the command.
        quiet=$((quiet + 1))
        sleep 0.1
    else
        quiet=0
        kill -KILL $found
    fi
done

#!/bin/bash
# The program ``play`` of the simulated shell (tests/chaos/machine/simulated_programs.py), for a real one.
what=$1
shift
case $what in
  exit) exit "$1" ;;
  die) kill -s "$1" $$ ;;
  print)
    for ((done = 0; done < $1; done++)); do
      ((done > 0 && done % $2 == 0)) && sleep "$3"
      echo "0123456789abcdef $done"
    done
    ;;
  repeat) for ((done = 1; done <= $2; done++)); do echo "$1 $done"; done ;;
  flood) head -c "$1" /dev/zero | tr '\0' x && echo ;;
  ask)
    printf '%s' "$1"
    IFS= read -r answer
    status=$?
    echo "got $answer"
    exit "$status"
    ;;
  secret)
    stty -echo
    printf '%s' "$1"
    IFS= read -r answer
    stty echo
    printf '\ngot %d\n' "${#answer}"
    ;;
  keys)
    stty -icanon -echo
    printf '%s' "$1"
    IFS= read -r -n1 answer
    stty icanon echo
    echo "got $answer"
    ;;
  forge) printf '\e]133;D;0\a\e]133;D;0;n=0123456789abcdef01234567;q=99999;s=1\aforged\n' ;;
  half) printf 'half\e]133;D;7;n=' ;;
  hang)
    trap '' INT
    echo deaf
    sleep "$1"
    ;;
  stay)
    case $1 in
      nohup) (trap '' HUP && exec sleep "$2") </dev/null >/dev/null 2>&1 & ;;
      setsid) setsid sleep "$2" </dev/null >/dev/null 2>&1 & ;;
      deaf) (trap '' HUP TERM && exec sleep "$2") </dev/null >/dev/null 2>&1 & ;;
      hold) (trap '' HUP && exec sleep "$2") & ;;
    esac
    ;;
esac

#!/bin/sh
# Prints the marks of command boundaries for shells that can do no more than run a program:
#     mark begin WHICH; <command>; mark end WHICH
#     mark last WHICH [STATUS]     the prompt; reports the end if `mark end` was not reached
#     mark probe
# A file beside this one holds the last number, and the command whose end was reported last.

directory=${0%/*}
IFS= read -r secret <"$directory/mark.secret" || exit
read -r number ended <"$directory/mark.count" || exit

# print KIND PARAMETERS
print() { printf '\033]133;%s;n=%s;q=%s%s\007' "$1" "$secret" "$number" "$2"; }

# count KIND PARAMETERS: prints a mark with the next number.
count() {
  number=$((number + 1))
  echo "$number $ended" >"$directory/mark.count"
  print "$1" "$2"
}

case $1 in
  # The command before has ended, whether or not its mark was seen.
  begin) count C ";s=1;b=$number" ;;
  end) ended=$2 && count D ;;
  last)
    if [ "$3" ]; then count "D;$3"; elif [ "$ended" != "$2" ]; then count D ';s=1'; fi
    print A && print B
    ;;
  # The shell has read this line, so it is at its prompt, also if a Ctrl-C took `mark last` away.
  probe) print A && print B && print 'P;k=l' ';l=0' ;;
esac >/dev/tty

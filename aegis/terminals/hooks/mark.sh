#!/bin/sh
# Prints the marks of command boundaries for shells that can do no more than run a program:
#     mark begin WHICH; <command>; mark end WHICH [STATUS]
#     mark last WHICH         reports the end if `mark end` was not reached
#     mark probe
# A file beside this one holds the last number, and the command whose end was reported last.

directory=${0%/*}
IFS= read -r secret <"$directory/mark.secret" || exit
read -r number ended <"$directory/mark.count" || exit

# print KIND PARAMETERS
print() { printf '\033]133;%s;n=%s;q=%s%s\007' "$1" "$secret" "$number" "$2"; }

count() {
  number=$((number + 1))
  echo "$number $ended" >"$directory/mark.count"
}

# end KIND PARAMETERS
end() {
  count && print "$1" "$2" && print A && print B
}

case $1 in
  # The command before has ended, whether or not its mark was seen.
  begin) count && print C ";s=1;b=$((number - 1))" ;;
  end) ended=$2 && end "D${3:+;$3}" ;;
  last) [ "$ended" = "$2" ] || end D ';s=1' ;;
  probe) print 'P;k=l' ';l=0' ;;
esac >/dev/tty

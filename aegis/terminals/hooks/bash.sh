# Marks of command boundaries (OSC 133) for an interactive bash, 4.4 or newer.
#
# Started as `bash --rcfile <dir>/init.sh -i`, with the secret of this shell in <dir>/init.secret.
# The user's ~/.bashrc is read first and stays in force. Rules:
#   - State lives in arrays: bash never exports an array, not even under `set -a`.
#   - Prompts name the variables, so their value is in no prompt, and an exported PS1 leaks nothing.
#   - No mark forks. Marks go where the prompt goes: to standard error.
#   - What runs inside PROMPT_COMMAND never replaces or shortens that array (bash walks along it
#     meanwhile): elements are only rewritten in place or appended.
#   - PS0 changes inside PROMPT_COMMAND only: bash keeps a pointer to it while a line is edited.
#   - Output of a trace (`set -x`) or of the user's DEBUG, ERR or RETURN trap about the hook is discarded:
#     bash traces each function of the hook where it is called, so the call itself is redirected.

# With an older one the user gets a message, and the shell ends before a prompt.
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
  builtin printf 'a terminal needs bash 4.4 or newer, this is %s: name another shell\n' "$BASH_VERSION"
  builtin exit 1
fi

# Aliases would change how the functions below are read.
builtin shopt -u expand_aliases

# n: the secret. q: the number of the last C or D. s: 1 while the line is the daemon's.
# owed: 1 from a C until its D, else empty. event: the history number, as a prompt. past, lines and
# begun: the number of the newest entry of the history, how many lines bash had read, and q, all at the
# last prompt. armed: how prompts and PROMPT_COMMAND look with everything in place. blind: 1 while standard error, and so
# what bash draws, goes elsewhere than to a terminal. err: the PTY for standard error of submitted
# commands, if it is split; parted: 1 while it is, and joined: 1 while it is not. deaf: 1 while
# an ignored Ctrl-C is enabled. int: restores the trap of INT, while Ctrl-C is ignored.
# fd: where standard error is. traced: 1 while a trace of the user is switched off. status: that of the
# command that ended. calls and line: what PROMPT_COMMAND calls. whole: 1 while the prompts and
# PROMPT_COMMAND have all that is ours. plain: a parameter of B, from the last prompt until the next C.
__aegis_n=() __aegis_q=(0) __aegis_s=(0) __aegis_owed=('')
__aegis_event=('\!') __aegis_past=(0) __aegis_lines=(0) __aegis_begun=(0) __aegis_dir=("${BASH_SOURCE[0]%/*}")
__aegis_armed=('') __aegis_blind=('') __aegis_literal=('') __aegis_theirs=() __aegis_look=()
__aegis_err=('') __aegis_parted=('') __aegis_joined=(1) __aegis_deaf=('') __aegis_int=('')
__aegis_fd=(2) __aegis_traced=('') __aegis_status=(0) __aegis_calls=() __aegis_line=('')
__aegis_whole=('') __aegis_plain=('')

# The marks as the prompts hold them. The D in PS1 is printed only if the end was not reported before
# (PROMPT_COMMAND was unset, overwritten, or is readonly), with p=1: the line editor has begun. It
# changes no variable: between the lines of a script bash expands PS1 without showing it. The next C
# skips the number that D may have used. With e=1 on B an empty line needs no submit key: all of the hook
# is in place. While a C is owed its D, the index is 1, where nothing is: PROMPT_COMMAND was not run.
# The second one of PS0 marks, between the lines of a script, the user's PS0 as no output. With split
# standard error it comes on the other PTY, where its begin could not be marked.
__aegis_ps0=(
  '\e]133;C;n=${__aegis_n-};q=$((__aegis_q=${__aegis_q:-0}+1+${__aegis_owed:-0},__aegis_owed=1,__aegis_q));s=${__aegis_s-};b=${__aegis_begun:-0}\a${__aegis_blind:+$(__aegis_start)}'
  '${__aegis_owed:+${__aegis_joined:+\e]133;P;k=e;n=${__aegis_n-};q=${__aegis_q-}\a}}'
)
__aegis_ps1=(
  '\[${__aegis_owed:+\e]133;D;$?;n=${__aegis_n-};q=$((__aegis_q+1));s=${__aegis_s-};p=1\a}\e]133;A;n=${__aegis_n-};q=${__aegis_q-}\a\]'
  '\[\e]133;B;n=${__aegis_n-};q=${__aegis_q-}${__aegis_plain[${__aegis_owed:-0}]-}\a\]'
)
__aegis_ps2=('\[\e]133;P;k=s;n=${__aegis_n-};q=${__aegis_q-};s=${__aegis_s-}\a\]')

# What PROMPT_COMMAND calls, first and last; the first one also as it is in a string of several lines,
# which need the status. In a group that is redirected a trace is too. The function that is defined
# there takes the place of a command: bash-preexec knows a command of PROMPT_COMMAND by the `;` before
# it, and takes one that it does not know for a command line. If standard error is closed the group
# fails, and nothing needs to be hidden. The status is read where the group is redirected: the
# definition changes it. __aegis_join redirects for good, so it is in no group.
__aegis_lines_of_prompt() {
  local hush= resume=
  [[ $__aegis_err ]] && hush=' __aegis_hush;' resume=' __aegis_resume;'
  __aegis_line='{ __aegis_quiet() ((1)); __aegis_ended 3;'$hush
  __aegis_line+=' } 3>&"$((__aegis_status=$?,2))" >/dev/null 2>&1'
  __aegis_calls=(
    "$__aegis_line || __aegis_first"
    "{ __aegis_quiet() ((1)); __aegis_last;$resume } >/dev/null 2>&1"
  )
}

# First in PROMPT_COMMAND: reports the end of the command, and the text of a typed one. $1: where standard
# error is; $2: 1 where a function of ours called it. What it runs is traced to where PROMPT_COMMAND sends it.
# The status is handed on, except from an array element of its own: there bash hands it on itself,
# and any other status than 0 would only set off errexit and the ERR trap.
__aegis_ended() {
  local event status=$__aegis_status typed= lines=${BASH_LINENO[${2:-0}]} ran=$__aegis_owed
  local -
  builtin set +euvxET
  local -a __aegis_fd=("$1")
  [[ $__aegis_int ]] && __aegis_heed_again
  __aegis_find_event
  if [[ $__aegis_s == 0 ]]; then
    [[ $__aegis_owed ]] || __aegis_start_late
    [[ $__aegis_owed ]] && __aegis_keep_typed && typed=";h=$event"
  fi
  [[ $__aegis_deaf ]] && __aegis_deaf= && builtin trap '' INT
  __aegis_q=$((__aegis_q + 1))
  if [[ $__aegis_parted ]]; then
    __aegis_fd=3
    __aegis_print "D;$status" ";s=$__aegis_s;b=$__aegis_begun$typed" 3>>"$__aegis_err"
    __aegis_print "D;$status" ";s=$__aegis_s;b=$__aegis_begun$typed" 3>/dev/tty
  else
    __aegis_print "D;$status" ";s=$__aegis_s;b=$__aegis_begun$typed"
  fi
  __aegis_s=0 __aegis_owed= __aegis_past=$event __aegis_lines=$lines __aegis_begun=$__aegis_q
  [[ $ran ]] && ((status)) && __aegis_mend_tty
  [[ ${PROMPT_COMMAND-} == "$__aegis_calls" ]] && return 0
  return "$status"
}

# The same where nothing is redirected.
__aegis_first() {
  { local -; builtin set +euvxET; } 2>/dev/null
  __aegis_ended 2 1
}

# Where PS0 is readonly, or was overwritten after our last function, the start of a typed line was not
# reported: it is reported with its end, so that there is a record. Whether it was a comment is not known.
__aegis_start_late() {
  [[ $__aegis_begun == 0 ]] && return 0
  [[ ${PS0-} == *"$__aegis_ps0"* || ${PS0-} == *'${__aegis_look[0]-}'* ]] && return 0
  ((lines > __aegis_lines && event > __aegis_past)) || return 0
  __aegis_q=$((__aegis_q + 1)) __aegis_owed=1 ran=1
  __aegis_print C ';s=0'
}

# Sets the caller's `event` to the number of the newest entry of the history, 0 if it has none. As a
# prompt bash shows 1 for an empty history too, where HISTCMD, the next number, is 1. Before 5.1 it shows 1
# always, and later while the history is switched off: then the entry is looked at.
__aegis_find_event() {
  event=${__aegis_event@P}
  [[ $event == 1 && ${HISTCMD-} != 2 ]] || return 0
  event=0
  [[ -o history && ${HISTCMD-} ]] && ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)) && return 0
  local file=$__aegis_dir/typed.0
  { builtin fc -l -0 -0 >|"$file" && IFS=$' \t' builtin read -r event _ <"$file"; } 2>/dev/null
  [[ $event && $event != *[!0-9]* ]] || event=0
}

# Writes the new entries of the history to a file for the reader of the marks, after a line with the
# facts about them: the numbers of the first and the last one; how many lines
# bash has read, and how many commands it began, since the last prompt; whether `fc` writes as in
# posix mode. `fc` shows no times, whatever HISTTIMEFORMAT is; -0 is the newest entry. A line that was
# read makes one entry at most: if there are more, the history is not about these lines. Without the file
# `typed.wanted` nobody has sent keys since the last submission: nothing was typed.
__aegis_keep_typed() {
  [[ -e $__aegis_dir/typed.wanted ]] || return 1
  local first=$((__aegis_past + 1)) posix=0
  ((event >= first && event - __aegis_past <= lines - __aegis_lines)) || return 1
  [[ -o posix ]] && posix=1
  {
    builtin printf '%d %d %d %d %d\n' "$first" "$event" "$((lines - __aegis_lines))" \
      "$(((__aegis_q - __aegis_begun + 1) / 2))" "$posix" && builtin fc -l "$first" -0
  } 2>/dev/null >|"$__aegis_dir/typed.$event"
}

# A command that failed may have left the tty raw and without echo, and bash would keep that. Only these
# settings are restored: others are the user's. A Ctrl-C is ignored meanwhile: bash would
# not wait for stty then, which would change the tty later, under the line editor.
__aegis_mend_tty() {
  __aegis_int=$(builtin trap -p INT)
  __aegis_int=${__aegis_int:-trap - INT}
  builtin trap '' INT
  builtin command stty icanon iexten isig echo opost -nl </dev/tty >/dev/null 2>&1 || :
  __aegis_heed_again
}

# Also called later: a Ctrl-C just before it was to be ignored lets bash leave the function above.
__aegis_heed_again() {
  [[ $__aegis_int ]] || return 0
  builtin eval "builtin $__aegis_int"
  __aegis_int=
}

# Joins standard error to the terminal again, also if the command redirected its own.
__aegis_join() {
  [[ $__aegis_parted ]] || return 0
  if [[ -t 0 ]]; then exec 2>&0; else exec 2>/dev/tty; fi
  __aegis_parted= __aegis_joined=1
}

# The key before the Enter of a submission: from here on bash draws and reports on the other PTY. The
# submit key has switched off a trace.
__aegis_part() {
  __aegis_join
  if [[ $__aegis_err && -w $__aegis_err && -t 2 ]]; then
    __aegis_print 'P;k=a'
    __aegis_parted=1 __aegis_joined=
    exec 2<>"$__aegis_err"
  fi
  __aegis_resume
}

# Only where standard error is split: from the end of a command until the prompt, and while a
# submission is read, nothing is traced, because the functions that redirect for good would be.
__aegis_hush() {
  [[ $- == *x* ]] && __aegis_traced=1
  builtin set +x
}

__aegis_resume() {
  [[ $__aegis_traced ]] && __aegis_traced= && builtin set -x
  return 0
}

# Prints the mark $1 with the parameters $2 behind secret and number.
__aegis_print() {
  if [[ -t $__aegis_fd ]]; then
    __aegis_blind=
    builtin printf '\e]133;%s;n=%s;q=%s%s\a' "$1" "$__aegis_n" "$__aegis_q" "$2" >&"$__aegis_fd"
  else
    __aegis_blind=1
    builtin printf '\e]133;%s;n=%s;q=%s%s\a' "$1" "$__aegis_n" "$__aegis_q" "$2" >/dev/tty
  fi
}

# Where bash's own C is discarded, this one goes to the terminal: the only mark that forks.
__aegis_start() {
  __aegis_print C ";s=$__aegis_s;b=$__aegis_begun"
}

# Last in PROMPT_COMMAND: restores everything that was overwritten or switched off since the last prompt.
# Entries that the user's own commands add to the history (`history -n`) are not the next typed text.
__aegis_last() {
  local event -
  builtin set +euvxET
  __aegis_find_event
  __aegis_past=$event
  [[ ${PS0-}${PS1-}${PS2-}${PROMPT_COMMAND[*]-} == "$__aegis_armed" ]] &&
    builtin shopt -q promptvars || __aegis_arm
  __aegis_plain=
  [[ $__aegis_whole && ! $__aegis_err && ! $__aegis_int && $- != *H* ]] && __aegis_plain=';e=1'
  return 0
}

__aegis_arm() {
  { local -; builtin set +euvxET; } 2>/dev/null
  __aegis_in_order || __aegis_order
  builtin shopt -q promptvars || __aegis_literal=1
  [[ $__aegis_literal ]] && __aegis_keep_literal
  __aegis_arm_prompts
  __aegis_armed=${PS0-}${PS1-}${PS2-}${PROMPT_COMMAND[*]-}
  __aegis_whole=
  [[ ${PS0-} == *"$__aegis_ps0" && ${PS2-} == *"$__aegis_ps2"* ]] && __aegis_in_order && __aegis_whole=1
  [[ $__aegis_literal ]] && __aegis_armed= __aegis_whole=
  return 0
}

# Whether our functions are first and last in PROMPT_COMMAND. bash-preexec takes the command after
# its own last function for one of the user, so that one may stay behind ours.
__aegis_in_order() {
  local IFS=$'\n' first
  __aegis_find_first
  [[ ${PROMPT_COMMAND[*]-} == "$first"$'\n'*"${__aegis_calls[1]}"?($'\n__bp_interactive_mode') ]]
}

# Sets the caller's `first` to the call that comes first: in a string before 5.1, else as an element.
__aegis_find_first() {
  first=$__aegis_calls
  ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 501)) && first=$__aegis_line
  return 0
}

# Puts them there: as elements from 5.1 on, as lines of the one string before. A shorter list is
# padded with empty elements, none is removed.
__aegis_order() {
  builtin printf -v PROMPT_COMMAND %s "${PROMPT_COMMAND-}" 2>/dev/null || return 0
  if [[ ${PROMPT_COMMAND-} == *__bp_install* ]]; then
    # bash-preexec will take itself out of the first element, and of no other, and arm itself.
    [[ $PROMPT_COMMAND == *__aegis_first* ]] ||
      PROMPT_COMMAND=$__aegis_line$'\n'${__aegis_calls[1]}$'\n'$PROMPT_COMMAND
    return 0
  fi
  local -a theirs=() last=("${__aegis_calls[1]}")
  local first
  __aegis_find_first
  __aegis_find_theirs
  [[ $__aegis_err ]] && theirs=(__aegis_join "${theirs[@]}")
  if [[ $first == "$__aegis_line" ]]; then
    local IFS=$'\n'
    theirs=("$first" "${theirs[@]}" "${last[@]}")
    PROMPT_COMMAND="${theirs[*]}"
    builtin export -n PROMPT_COMMAND
    return
  fi
  local -a present=("${!PROMPT_COMMAND[@]}")
  while ((1 + ${#theirs[@]} + ${#last[@]} <= present[${#present[@]} - 1])); do theirs+=(''); done
  theirs=("$first" "${theirs[@]}" "${last[@]}")
  local i
  for i in "${!theirs[@]}"; do PROMPT_COMMAND[i]=${theirs[i]}; done
}

# Fills the caller's `theirs` with PROMPT_COMMAND without our functions; `last` with what ends it.
__aegis_find_theirs() {
  local text name
  for text in "${PROMPT_COMMAND[@]}"; do
    text=$'\n'$text$'\n'
    [[ $text == *$'\n__bp_interactive_mode\n'* ]] &&
      last=("${__aegis_calls[1]}" __bp_interactive_mode)
    for name in "${__aegis_calls[@]}" "$__aegis_line" __aegis_join __bp_interactive_mode; do
      text=${text//$'\n'"$name"$'\n'/$'\n'}
    done
    text=${text#$'\n'} text=${text%$'\n'}
    for name in "${__aegis_calls[@]}" "$__aegis_line" __aegis_first __aegis_last __aegis_join; do
      text=${text//"$name"/:}
    done
    [[ $text ]] && theirs+=("$text")
  done
  return 0
}

# Adds the marks to the prompts that lack them: the start of a command is the last thing in PS0, and
# what the user has there is between two marks.
__aegis_arm_prompts() {
  local theirs=${PS0-} mark
  for mark in "${__aegis_ps0[@]}"; do theirs=${theirs//"$mark"/}; done
  __aegis_set PS0 "${theirs:+${__aegis_ps0[1]}$theirs}$__aegis_ps0"
  __aegis_arm_lines
}

__aegis_arm_lines() {
  [[ ${PS1-} == *"$__aegis_ps1"* ]] || __aegis_set PS1 "$__aegis_ps1$PS1"
  [[ ${PS1-} == *"${__aegis_ps1[1]}"* ]] || __aegis_set PS1 "$PS1${__aegis_ps1[1]}"
  [[ ${PS2-} == *"$__aegis_ps2"* ]] || __aegis_set PS2 "$__aegis_ps2$PS2"
}

# The user switched promptvars off, which the marks need: it is switched on, and the user's prompts are
# shown through a variable that holds, anew at every prompt, how they look without it.
__aegis_keep_literal() {
  local prompts=(PS0 PS1 PS2) i shown text mark
  builtin shopt -u promptvars
  for i in 0 1 2; do
    shown="\${__aegis_look[$i]-}" text=${!prompts[i]-}
    for mark in "${__aegis_ps0[@]}" "${__aegis_ps1[@]}" "$__aegis_ps2"; do text=${text//"$mark"/}; done
    __aegis_theirs[i]=${text//"$shown"/"${__aegis_theirs[i]-}"}
    __aegis_look[i]=${__aegis_theirs[i]@P}
    __aegis_set "${prompts[i]}" "$shown"
  done
  builtin shopt -s promptvars
}

# Sets the variable $1 to $2; leaves a readonly one alone.
__aegis_set() {
  builtin printf -v "$1" %s "$2" 2>/dev/null || return 0
}

# The submit key: an empty line, whatever was on it, and the line accepted next is the daemon's.
__aegis_submit() {
  builtin set +H
  [[ $__aegis_err ]] && __aegis_hush
  __aegis_heed_again
  __aegis_in_order || __aegis_order
  # Still owed at a prompt: the D in PS1 has reported it, and used a number.
  [[ $__aegis_owed ]] && __aegis_q=$((__aegis_q + 1)) __aegis_owed=
  __aegis_s=1 READLINE_LINE= READLINE_POINT=0
}

# The probe key: reports the length of the line and changes nothing, unless the prompts have lost their
# marks: then they are restored (r=1), all but PS0.
__aegis_probe() {
  { local -; builtin set +euvxET; } 2>/dev/null
  local again=
  local -a __aegis_fd=("${1:-2}")
  if [[ ${PS1-} != *"${__aegis_ps1[1]}"* && ${PROMPT_COMMAND[*]-} != *__aegis_first* ]]; then
    again=';r=1'
    __aegis_order
    __aegis_arm_lines
  fi
  __aegis_print 'P;k=l' ";l=${#READLINE_LINE}$again"
}

# The key before a Ctrl-C that drops an unfinished line: a shell that ignores Ctrl-C heeds it until the
# line has ended. The daemon gets the report that the line continues, and sends the Ctrl-C.
__aegis_heed() {
  { local -; builtin set +euvxET; } 2>/dev/null
  local -a __aegis_fd=("${1:-2}")
  if [[ $(builtin trap -p INT) == "trap -- '' SIGINT" ]]; then
    __aegis_deaf=1
    builtin trap - INT
  fi
  __aegis_print 'P;k=l' ';l=0'
}

# Keys that no terminal sends: 1 submits, 2 probes, 6 splits standard error, 7 enables Ctrl-C, 8 only
# empties the line. 1 and 2 are macros for 3
# and 4, because bash finds no command behind a key that ends a search in the history; from vi's
# command mode 1 goes through insert mode. 0 does nothing: sent first, it is what a waiting quoted-insert or prefix swallows.
# 100+n inserts the control character n, one that the tty or the paste would not pass on.
__aegis_bind_keys() {
  local map control
  for map in emacs vi-insert vi-command; do
    __aegis_bind_quietly 3 __aegis_submit
    __aegis_bind_quietly 4 __aegis_probe
    builtin bind -m "$map" -x '"\e[8133;7~": __aegis_heed'
    builtin bind -m "$map" -x '"\e[8133;6~": __aegis_part'
    builtin bind -m "$map" '"\e[8133;8~": kill-whole-line'
    builtin bind -m "$map" '"\e[8133;1~": "\e[8133;3~"'
    builtin bind -m "$map" '"\e[8133;2~": "\e[8133;4~"'
    builtin bind -m "$map" '"\e[8133;0~": ""'
    builtin bind -m "$map" '"\e[8133;5~": quoted-insert'
    for control in 3 13 17 19 26 28; do
      builtin printf -v control '"\\e[8133;%d~": "\\e[8133;5~\\%03o"' "$((100 + control))" "$control"
      builtin bind -m "$map" "$control"
    done
  done
  builtin bind -m vi-command '"\e[8133;1~": "i\e[8133;3~"'
  # Answers of the terminal that nobody read begin so (DCS): as a key it would open a search, which swallows what
  # is typed up to an Enter. The same key in lower case goes on searching.
  builtin bind -m emacs '"\eP": ""'
  builtin bind 'set enable-bracketed-paste on'
}

# Binds the key $1 to the function $2 in the caller's `map`, called as in PROMPT_COMMAND. At a secondary
# prompt bash reads the call as if it were behind the last word of the unfinished line, where `{` is no
# reserved word: so it begins with a newline. That does not help behind `case x in`, where bash reports
# a syntax error; therefore the key 7, which has to work there, calls its function by its name alone.
__aegis_bind_quietly() {
  local call=$'\n'"{ __aegis_quiet() ((1)); $2 3; } 3>&2 >/dev/null 2>&1 || $2"
  builtin bind -m "$map" -x "\"\\e[8133;$1~\": $call"
}

# Fails without a secret (this file was started by hand): then nothing is armed.
__aegis_begin() {
  { local -; builtin set +euvxET; } 2>/dev/null
  [[ ${__aegis_n-} ]] || return 1
  __aegis_lines_of_prompt
  __aegis_arm
  __aegis_bind_keys
  return 0
}

IFS= builtin read -r __aegis_n <"$__aegis_dir/init.secret"
builtin declare +x __aegis_n
# Emptied, not removed: a fork for rm takes a fifth of this start. A link is never written through.
if [[ -L $__aegis_dir/init.secret ]] || ! { builtin : >|"$__aegis_dir/init.secret"; } 2>/dev/null; then
  builtin command rm -f -- "$__aegis_dir/init.secret"
fi
if [[ -r $__aegis_dir/init.stderr ]]; then
  IFS= builtin read -r __aegis_err <"$__aegis_dir/init.stderr"
fi
builtin shopt -s expand_aliases

# `again`: the daemon typed a line that reads this file into a bash that has read the user's files,
# and lost the hook or never had it. That line is no command of theirs.
if [[ ${1-} == again ]]; then
  [[ $__aegis_err && /dev/fd/2 -ef $__aegis_err ]] && exec 2>/dev/tty
  [[ $(HISTTIMEFORMAT='' builtin history 1) == *"$__aegis_dir/init.sh"*' again' ]] &&
    builtin history -d -1 2>/dev/null
elif [[ -f ~/.bashrc && -r ~/.bashrc ]]; then
  builtin source ~/.bashrc
fi

{ __aegis_begin && \builtin set +H; } >/dev/null 2>&1

# Marks of command boundaries (OSC 133) for an interactive zsh, 5.1 or newer.
#
# Read by arming.zsh before any file of the user, as the text of an `emulate -R zsh -c`: zsh runs
# every function that is defined here with its own options, whatever the user's are (KSH_ARRAYS,
# XTRACE, ERR_EXIT, …), and untraced. What must set options that stay, or run widgets of the user
# under the user's options, is in arming.zsh. Rules:
#   - State lives in arrays: zsh never exports an array, not even under `setopt all_export`.
#   - Nothing is put into a prompt: marks are printed by hooks and widgets.
#   - No mark forks.

# n: the secret. q: the number of the last C or D. ended: that of the last D. s: 1 while the line is the daemon's.
# owed: 1 from a C until its D. due: 1 once a line may end. typed: the number under which the
# text of a typed command is kept, else empty. sp: 1 if the user wants PROMPT_SP. err: the PTY for
# standard error of submitted commands, if it is split; parted: 1 while it is. ask: the
# descriptor by which the daemon asks for the length of the line.
typeset -ga __aegis_n=() __aegis_q=(0) __aegis_ended=(0) __aegis_s=(0) __aegis_owed=(0) __aegis_due=(1)
typeset -ga __aegis_typed=('') __aegis_exit=(0) __aegis_last_word=('') __aegis_readable=(0)
typeset -ga __aegis_err=('') __aegis_parted=(0) __aegis_ask=()

# What stays when this file is read again: how the user's options and the widgets were changed.
# newest: the number of the newest layer around zle-line-init.
typeset -ga __aegis_sp __aegis_layers __aegis_newest __aegis_options __aegis_chars __aegis_coloured
(( $#__aegis_sp )) || __aegis_sp=(0)
(( $#__aegis_layers )) || __aegis_layers=(0)

# Prints marks: a line that ended, or the text $1.
__aegis_print() {
  if [[ -t 1 ]]; then
    builtin print -rn -- $1
  else
    builtin print -rn -- $1 >/dev/tty
  fi
}

# First of all functions after a line: reports the end of the command and, for a typed one, the file
# of its text. Traps of the user are off meanwhile, and `$_` is kept.
__aegis_first() {
  __aegis_exit[1]=$? __aegis_last_word[1]=$_ && builtin trap - DEBUG ZERR
  if (( __aegis_due[1] )); then
    local -i ran=$__aegis_owed[1]
    __aegis_end
    (( ran && __aegis_exit[1] )) && __aegis_mend_tty
  fi
  builtin : "$__aegis_last_word[1]"
}

# A command that failed may have left the tty raw and without echo. zsh restores what it needs itself,
# but not Ctrl-C and newlines. The same settings as in bash; others are the user's.
__aegis_mend_tty() {
  command -p stty icanon iexten isig echo opost -nl </dev/tty &>/dev/null
}

# $1: further parameters of the end's mark.
__aegis_end() {
  local end="D;$(( __aegis_exit[1] & 255 ));n=$__aegis_n[1];q=$(( ++__aegis_q[1] ))"
  end+=";s=$__aegis_s[1];b=$__aegis_ended[1]${__aegis_typed[1]:+;h=$__aegis_typed[1]}${1-}"
  __aegis_ended=("$__aegis_q[1]") __aegis_due=(0) __aegis_owed=(0) __aegis_s=(0) __aegis_typed=('')
  (( __aegis_parted[1] )) && __aegis_join $'\e]133;'$end$'\a'
  local spaces=
  (( __aegis_sp[1] )) && __aegis_start_a_line
  __aegis_print $'\e]133;'$end$'\a'$spaces$'\e]133;A;n='$__aegis_n[1]';q='$__aegis_q[1]$'\a'
}

# What PROMPT_SP does, which is off because zsh would print it before the end of the command: if
# the cursor is not at the start of a line, `%` and as many spaces as lead to the next one.
__aegis_start_a_line() {
  local mark=${(%)${PROMPT_EOL_MARK-%B%S%#%s%b}}
  local -i width=${(m)#${mark//$'\e'\[[0-9;]#m}}
  spaces=$mark${(l:COLUMNS-width:: :)}$'\r'${(l:width:: :)}$'\r'
}

# The status of the command for a `precmd` of the user.
__aegis_status() {
  return $__aegis_exit[1]
}

# Last in preexec_functions: a command begins. $1 is the typed text.
__aegis_last() {
  __aegis_last_word[1]=$_ && builtin trap - DEBUG ZERR
  (( ++__aegis_q[1] ))
  if [[ $__aegis_s[1] == 0 && $__aegis_readable[1] == 1 && -n $1 ]]; then
    builtin print -rn -- $1 2>/dev/null >|$__aegis_dir[1]/typed.$__aegis_q[1] &&
      __aegis_typed=($__aegis_q[1])
  fi
  __aegis_due=(1) __aegis_owed=(1)
  __aegis_print $'\e]133;C;n='$__aegis_n[1]';q='$__aegis_q[1]';s='$__aegis_s[1]';b='$__aegis_ended[1]$'\a'
  builtin : "$__aegis_last_word[1]"
}

# The line editor has drawn its prompt. $1 is the status of the last command: if its end was not
# reported (precmd_functions was emptied, and precmd too), it is reported here, with r=1 and the number
# of lines of the prompt.
__aegis_stand() {
  case $CONTEXT in
    start)
      if (( __aegis_owed[1] )); then
        local -a rows=("${(@f)${(%)PS1-}}")
        __aegis_exit=($1) && __aegis_end ";r=1;l=$#rows"
      fi
      __aegis_due=(1)
      __aegis_print $'\e]133;B;n='$__aegis_n[1]';q='$__aegis_q[1]$'\a'
      ;;
    cont)
      __aegis_print $'\e]133;P;k=s;n='$__aegis_n[1]';q='$__aegis_q[1]';s='$__aegis_s[1]$'\a'
      ;;
  esac
}

# The line editor is about to return a line. All drawing of that moment is done now: output follows.
# The end of paste mode, which zle reported before, is reported again.
__aegis_let_go() {
  builtin trap - DEBUG ZERR
  if [[ $__aegis_s[1] == 1 && $CONTEXT == (start|cont) ]]; then
    builtin zle -R
    __aegis_print $'\e[?2004l'
    __aegis_part
  fi
}

# From here on standard error is that of a submitted line, and is sent to the other PTY.
__aegis_part() {
  [[ $__aegis_parted[1] == 0 && -n $__aegis_err[1] && -w $__aegis_err[1] && -t 2 ]] || return 0
  __aegis_print $'\e]133;P;k=e;n='$__aegis_n[1]';q='$__aegis_q[1]$'\a'
  exec 2<>$__aegis_err[1]
  __aegis_parted=(1)
}

# Joins standard error to the terminal again; $1 is the mark of the end for the other PTY.
__aegis_join() {
  builtin print -rn -- $1 >>$__aegis_err[1]
  if [[ -t 0 ]]; then exec 2>&0; else exec 2>/dev/tty; fi
  __aegis_parted=(0)
}

# Puts our functions first and last where a framework or the user changed that.
__aegis_order() {
  if [[ ${(j: :)precmd_functions} != '__aegis_first '(*' '|)__aegis_ready &&
    ${(t)precmd_functions} != *readonly* ]]; then
    precmd_functions=(__aegis_first ${precmd_functions:#__aegis_(first|ready)} __aegis_ready)
  fi
  if [[ ${(j: :)preexec_functions} != (*' '|)'__aegis_restore __aegis_last' &&
    ${(t)preexec_functions} != *readonly* ]]; then
    preexec_functions=(${preexec_functions:#__aegis_(restore|last)} __aegis_restore __aegis_last)
  fi
}

# Reads what follows the submit key into `text`: pastes, keys that stand for one control character
# each, and Enter; fails if anything else comes. Read here, it passes no widget that the user put
# around pasting or Enter. zsh would end a paste that rests for KEYTIMEOUT (hundredths of a second).
__aegis_read_submission() {
  local KEYTIMEOUT=360000 key= part
  text=
  while builtin read -rsk 1 key && [[ $key == $'\e' ]]; do
    while [[ $key != *'~' ]] && builtin read -rsk 1 part; do key+=$part; done
    case $key in
      $'\e[200~') builtin zle .bracketed-paste part && text+=$part ;;
      $'\e[8133;1'*) text+=${(#)$(( ${${key#*;}%'~'} - 100 ))} ;;
    esac
  done
  [[ $key == $'\r' ]]
}

# Puts the submitted text on the line, and nothing else, and accepts it.
__aegis_accept() {
  local text
  PREDISPLAY= POSTDISPLAY= BUFFER= region_highlight=()
  __aegis_s=(1) __aegis_due=(1)
  if __aegis_read_submission; then
    BUFFER=$text CURSOR=$#text
    builtin zle .accept-line
  else
    builtin zle .send-break
  fi
}

# While the daemon's line is read nothing is history: neither `!` nor `^` means anything. Nor is the
# line coloured: zsh-syntax-highlighting takes the better part of a minute for 100 kB.
__aegis_read_plainly() {
  __aegis_chars=("$histchars") __aegis_coloured=()
  (( ${+ZSH_HIGHLIGHT_MAXLENGTH} )) && __aegis_coloured=("$ZSH_HIGHLIGHT_MAXLENGTH")
  histchars=$'\0\0'${${histchars:2:1}:-'#'}
  typeset -g ZSH_HIGHLIGHT_MAXLENGTH=0
}

__aegis_read_as_before() {
  histchars=$__aegis_chars[1]
  if (( $#__aegis_coloured )); then
    ZSH_HIGHLIGHT_MAXLENGTH=$__aegis_coloured[1]
  else
    unset ZSH_HIGHLIGHT_MAXLENGTH
  fi
}

# Whether the prompt is shown, and the end of the command before it was not reported.
__aegis_is_owed() {
  [[ $CONTEXT == start ]] && (( __aegis_owed[1] ))
}

# Reports the length of the line.
__aegis_report() {
  local -i length=$(( $#PREBUFFER + $#BUFFER ))
  __aegis_print $'\e]133;P;k=l;n='$__aegis_n[1]';q='$__aegis_q[1]';l='$length$'\a'
}

__aegis_nothing() { }

# Lets the line editor answer what comes through the FIFO. Unlike a key that leaves searches, menus,
# pending keys and the kill ring as they are. Programs do not inherit the descriptor.
__aegis_listen() {
  (( $#__aegis_ask )) && return
  local -i fd=0
  zmodload zsh/system 2>/dev/null || return 0
  builtin sysopen -rw -o cloexec -u fd $__aegis_dir[1]/.zdotdir/ask 2>/dev/null && __aegis_ask=($fd)
}

# $1 is the descriptor; $2, if given, is its error.
__aegis_answer() {
  local question
  if [[ -n ${2-} ]]; then
    builtin zle -F $1
  elif builtin sysread -i $1 question; then
    # A kill that follows one before the question is still added to it.
    [[ ${LASTWIDGET-} != *kill* ]] || builtin zle -f kill 2>/dev/null
    __aegis_report
  fi
}

# Keys that no terminal sends, in every keymap: 0 does nothing, but ends what waits for a key; 1
# submits, 2 probes. Bound anew at each prompt, and the widgets made anew: plugins wrap all
# widgets, and keymaps come and go.
__aegis_bind_keys() {
  local map
  for map in ${keymaps:#.safe}; do
    builtin bindkey -M $map '\e[8133;0~' __aegis-nothing '\e[8133;1~' __aegis-submit \
      '\e[8133;2~' __aegis-probe
  done
  if (( ${keymaps[(I)command]} )); then builtin bindkey -M command '\e[8133;0~' send-break; fi
}

# The secret, by its file, which is removed before the users' files are read.
__aegis_read_secret() {
  local file=$__aegis_dir[1]/init.secret secret=
  IFS= builtin read -r secret <$file && __aegis_n=($secret)
  command -p rm -f -- $file
  if [[ -r $__aegis_dir[1]/init.stderr ]]; then
    IFS= builtin read -r secret <$__aegis_dir[1]/init.stderr && __aegis_err=($secret)
  fi
}

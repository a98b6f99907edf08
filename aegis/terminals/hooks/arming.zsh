# The part of the hook that runs under the options of the user, quoted where an alias could change
# a word; nothing here uses what those options change. Read by zshenv.zsh before any file of the user,
# or by again.zsh; __aegis_dir names the directory. See zsh.zsh for the rest.

'builtin' 'emulate' '-R' 'zsh' '-o' 'extendedglob' '-o' 'nodebugbeforecmd' '-o' 'localtraps' \
  '-c' 'builtin source -- "$__aegis_dir[1]/.zdotdir/hook.zsh"; __aegis_read_secret 2>/dev/null'

# The functions that zsh itself calls begin with a group that switches a trace off; zsh switches it on
# again when such a function ends. The group hides the trace of its own.

# Options that the hook needs until the next line is read.
__aegis_set_options() {
  'builtin' 'unsetopt' localoptions
  [[ -o promptsp && -o promptcr ]] && __aegis_sp=(1)
  'builtin' 'setopt' nopromptsp zle
}

# What must not alter the daemon's line while it is read, and must not ask about it either.
__aegis_submit() {
  { 'builtin' 'unsetopt' xtrace } 2>/dev/null
  'builtin' 'unsetopt' localoptions
  'builtin' 'local' option
  __aegis_options=()
  for option in interactivecomments correct correctall; do
    if [[ -o $option ]]; then
      __aegis_options+=($option)
    else
      __aegis_options+=(no$option)
    fi
  done
  'builtin' 'setopt' interactivecomments nocorrect nocorrectall
  __aegis_read_plainly
  __aegis_accept
}

# The line was read: a line that somebody types is read as they have it. Also says whether the
# text $1 of a typed one may be kept.
__aegis_restore() {
  { 'builtin' 'unsetopt' xtrace } 2>/dev/null
  'builtin' 'unsetopt' localoptions
  if [[ -n "${__aegis_options[*]}" ]]; then
    'builtin' 'setopt' "${__aegis_options[@]}"
    __aegis_options=()
    __aegis_read_as_before
  fi
  __aegis_readable=(1)
  if [[ -o histignorespace && "${1-}" == ' '* ]]; then
    __aegis_readable=(0)
  fi
}

# Last in precmd_functions: restores everything that was overwritten.
__aegis_ready() {
  { 'builtin' 'unsetopt' xtrace } 2>/dev/null
  'builtin' 'unsetopt' localoptions
  __aegis_restore
  __aegis_arm
}

__aegis_arm() {
  'builtin' 'unsetopt' localoptions
  __aegis_set_options
  __aegis_order
  __aegis_follow_precmd
  __aegis_is_layer zle-line-init || __aegis_add_layer zle-line-init
  __aegis_is_layer zle-line-finish || __aegis_add_layer zle-line-finish
  'builtin' 'zle' -N __aegis-submit __aegis_submit
  'builtin' 'zle' -N __aegis-probe __aegis_probe
  'builtin' 'zle' -N __aegis-nothing __aegis_nothing
  'builtin' 'zle' -N __aegis-answer __aegis_answer
  __aegis_listen
  [[ -z "${__aegis_ask[*]}" ]] || 'builtin' 'zle' -F -w "${__aegis_ask[@]}" __aegis-answer
  __aegis_bind_keys
  __aegis_due=(1)
}

# A `precmd` of the user runs before all of precmd_functions: it is called by one of ours, with the
# status of the command in `$?`, which must not look like a failure of ours (ERR_EXIT). Without one,
# ours stays when precmd_functions is emptied: the prompt would be the first to say that a command ended.
# zsh reads precmd_functions after that, so they are put back in time.
__aegis_follow_precmd() {
  [[ "${functions[precmd]-}" != *__aegis_first* && "${functions[precmd]-}" != *__aegis_end* ]] ||
    'builtin' 'return' 0
  'builtin' 'setopt' localoptions noaliases noallexport
  if [[ -z "${functions[precmd]-}" ]]; then
    'builtin' 'emulate' -R zsh -o nodebugbeforecmd -o localtraps -c \
      "precmd() { ${functions[__aegis_first]}
        __aegis_order; builtin : \"\$__aegis_last_word[1]\" }"
    'builtin' 'return' 0
  fi
  if [[ "${functions[precmd]}" == 'builtin autoload'* ]]; then
    'builtin' 'autoload' +X precmd || 'builtin' 'return' 0
  fi
  functions[__aegis_their_precmd]="${functions[precmd]}"
  # Only without a second PTY: __aegis_first redirects standard error for good then.
  'builtin' 'local' call='{ __aegis_first; __aegis_order } 2>/dev/null'
  [[ -z "${__aegis_err[*]}" ]] || call='__aegis_first; __aegis_order'
  functions[precmd]="$call
    if { __aegis_status } 2>/dev/null; then __aegis_their_precmd; else __aegis_their_precmd; fi"
}

# Whether the widget $1 is one of ours, whose function is still there.
__aegis_is_layer() {
  [[ "${widgets[$1]-}" == user:__aegis_layer_* && -n "${functions[${widgets[$1]#user:}]-}" ]]
}

# The probe key: reports the length of the line and changes nothing; but if a command has ended and that
# was not reported (precmd_functions and zle-line-init are both gone), it is now, by $? and with r=1:
# the prompt is before it. The hook is armed again.
__aegis_probe() {
  { 'builtin' 'local' code="$?"; 'builtin' 'unsetopt' xtrace } 2>/dev/null
  if __aegis_is_owed; then
    'builtin' 'unsetopt' localoptions
    __aegis_arm
    __aegis_stand "$code"
  fi
  __aegis_report
}

# Puts a function of ours before the widget zle-line-init, or behind zle-line-finish, whosoever it
# is now. A widget around an earlier function of ours finds that one disabled.
__aegis_add_layer() {
  (( __aegis_layers < 100 )) || 'builtin' 'return' 0
  'builtin' 'setopt' localoptions noaliases noallexport
  __aegis_layers=($((__aegis_layers + 1)))
  'builtin' 'local' theirs=:
  if [[ -n "${widgets[$1]-}" && "${widgets[$1]}" != user:__aegis_layer_* ]]; then
    'builtin' 'zle' -A "$1" "__aegis-theirs-$__aegis_layers"
    theirs="'builtin' 'zle' __aegis-theirs-$__aegis_layers -- \"\$@\" || 'builtin' :"
  fi
  if [[ "$1" == zle-line-init ]]; then
    __aegis_newest=("$__aegis_layers")
    functions[__aegis_layer_$__aegis_layers]="__aegis_line_init $__aegis_layers \"\$?\"; $theirs"
  else
    functions[__aegis_layer_$__aegis_layers]="$theirs; __aegis_line_finish $__aegis_layers"
  fi
  'builtin' 'zle' -N "$1" "__aegis_layer_$__aegis_layers"
}

# $1 is the number of the layer, $2 the status of the last command. A theme that wraps zle-line-init
# while the first prompt is drawn (powerlevel10k) is outside of all layers: then the newest one speaks,
# and puts layers around the theme, so that the end of this line is followed already.
__aegis_line_init() {
  case "${widgets[zle-line-init]-}" in
    "user:__aegis_layer_$1")
      __aegis_order
      ;;
    user:__aegis_layer_*)
      'builtin' 'return' 0
      ;;
    *)
      [[ "$1" == "${__aegis_newest[*]}" ]] || 'builtin' 'return' 0
      __aegis_arm
      ;;
  esac
  __aegis_stand "$2"
}

__aegis_line_finish() {
  [[ "${widgets[zle-line-finish]-}" != "user:__aegis_layer_$1" ]] || __aegis_let_go
}

# The .zshenv of a terminal's zsh: what comes before the user's own .zshenv, and that.
#
# Words are quoted where an alias could change them; functions that stay run under the options of
# the user, and use nothing that those change. See zsh.zsh for the rest.

'builtin' 'typeset' -ga __aegis_dir __aegis_zdotdir __aegis_exported __aegis_rcs
__aegis_dir=("${ZDOTDIR%/*}")
'builtin' 'emulate' '-R' 'zsh' '-o' 'extendedglob' '-o' 'nodebugbeforecmd' '-o' 'localtraps' \
  '-c' 'builtin source -- "$__aegis_dir[1]/.zdotdir/hook.zsh"; __aegis_read_secret 2>/dev/null'

# Options that the hook needs until the next line is read.
__aegis_set_options() {
  [[ -o promptsp && -o promptcr ]] && __aegis_sp=(1)
  'builtin' 'setopt' nopromptsp zle
}

# What must not alter the daemon's line while it is read, and must not ask about it either.
__aegis_submit() {
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
  __aegis_hide_history
  __aegis_accept
}

# The line was read: a line that somebody types is read as they have it. Also says whether the
# text $1 of a typed one may be kept.
__aegis_restore() {
  if [[ -n "${__aegis_options[*]}" ]]; then
    'builtin' 'setopt' "${__aegis_options[@]}"
    __aegis_options=()
    __aegis_show_history
  fi
  __aegis_readable=(1)
  if [[ -o histignorespace && "${1-}" == ' '* ]]; then
    __aegis_readable=(0)
  fi
}

# Last in precmd_functions: puts back what was overwritten.
__aegis_ready() {
  __aegis_restore
  __aegis_arm
}

__aegis_arm() {
  __aegis_set_options
  __aegis_order
  __aegis_follow_precmd
  [[ "${widgets[zle-line-init]-}" == "user:__aegis_line_init_$__aegis_layer" ]] || __aegis_add_layer
  'builtin' 'zle' -N __aegis-submit __aegis_submit
  'builtin' 'zle' -N __aegis-probe __aegis_probe
  'builtin' 'zle' -N __aegis-nothing __aegis_nothing
  __aegis_bind_keys
  __aegis_due=(1)
}

# A `precmd` of the user runs before all of precmd_functions: it is called by one of ours.
__aegis_follow_precmd() {
  [[ -n "${functions[precmd]-}" && "${functions[precmd]}" != *__aegis_first* ]] || 'builtin' 'return' 0
  'builtin' 'setopt' localoptions noaliases
  [[ "${functions[precmd]}" != 'builtin autoload'* ]] || 'builtin' 'autoload' +X precmd
  functions[__aegis_their_precmd]="${functions[precmd]}"
  functions[precmd]='__aegis_first; __aegis_status; __aegis_their_precmd "$@"'
}

# Puts a function of ours in front of the widget zle-line-init, whosoever it is now. One that was
# put around an earlier function of ours finds that one silent.
__aegis_add_layer() {
  (( __aegis_layer < 50 )) || 'builtin' 'return' 0
  __aegis_layer=($((__aegis_layer + 1)))
  'builtin' 'local' theirs=
  if [[ -n "${widgets[zle-line-init]-}" ]]; then
    'builtin' 'zle' -A zle-line-init "__aegis-theirs-$__aegis_layer"
    theirs="'builtin' 'zle' __aegis-theirs-$__aegis_layer -- \"\$@\""
  fi
  'builtin' 'eval' "__aegis_line_init_$__aegis_layer() {
    __aegis_line_init $__aegis_layer \"\$?\"
    $theirs
  }"
  'builtin' 'zle' -N zle-line-init "__aegis_line_init_$__aegis_layer"
}

__aegis_line_init() {
  [[ "$1" == "$__aegis_layer" ]] || 'builtin' 'return' 0
  __aegis_set_options
  __aegis_order
  __aegis_stand "$2"
}

# ZDOTDIR as the user has it: value and export, or not set.
if [[ -n "${AEGIS_ZDOTDIR+set}" ]]; then
  'builtin' 'export' ZDOTDIR="$AEGIS_ZDOTDIR"
  'builtin' 'unset' AEGIS_ZDOTDIR
else
  'builtin' 'unset' ZDOTDIR
fi

if [[ -f "${ZDOTDIR-$HOME}/.zshenv" && -r "${ZDOTDIR-$HOME}/.zshenv" ]]; then
  'builtin' 'source' "${ZDOTDIR-$HOME}/.zshenv"
fi

# Theirs is put aside again, so that zsh finds our .zshrc. If their file switched start-up files
# off, ours is still read, and then none of theirs.
if [[ -n "${ZDOTDIR+set}" ]]; then
  __aegis_zdotdir=("$ZDOTDIR")
  [[ "${(t)ZDOTDIR}" != *export* ]] || __aegis_exported=(1)
fi
if [[ ! -o rcs ]]; then
  __aegis_rcs=(norcs noglobalrcs)
  [[ ! -o globalrcs ]] || __aegis_rcs=(norcs globalrcs)
  'builtin' 'setopt' rcs noglobalrcs
fi
ZDOTDIR="${__aegis_dir[@]}/.zdotdir"

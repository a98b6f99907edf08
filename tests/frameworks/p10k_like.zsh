# Works as powerlevel10k does: a prompt is shown before anything else is loaded, and what loading
# prints is shown behind it; each precmd builds PROMPT anew and switches PROMPT_SP on; a line that is
# accepted leaves a short prompt behind; an answer from a descriptor redraws the prompt. The widgets
# around a line are wrapped only while the first prompt is on its way, and a Ctrl-C runs code of the
# theme.
print -n 'P10K instant> '
exec {p10k_out}>&1 {p10k_err}>&2 >~/p10k.out 2>&1
print 'printed while loading'

typeset -gi p10k_fd=0 p10k_wrapped=0
typeset -g p10k_state=waiting p10k_short=

p10k_start() {
  if (( p10k_out )); then
    exec >&$p10k_out 2>&$p10k_err {p10k_out}>&- {p10k_err}>&-
    print -n '\r\e[J'
    cat ~/p10k.out
    p10k_out=0
  fi
}

p10k_wrap() {
  (( p10k_wrapped++ )) && return
  local widget
  for widget in zle-line-init zle-line-finish; do
    zle -A $widget ._p10k_orig_$widget
    functions[p10k_widget_$widget]="zle ._p10k_orig_$widget -- \"\$@\"; p10k_${widget#zle-}"
    zle -N $widget p10k_widget_$widget
  done 2>/dev/null
  precmd_functions=(${precmd_functions:#p10k_precmd} p10k_precmd)
}

p10k_precmd() {
  local last=$?
  p10k_start
  p10k_wrap
  setopt prompt_cr prompt_sp prompt_percent prompt_subst
  p10k_short= p10k_state=waiting
  PROMPT='${${p10k_short:-%K{blue\} P10K '$last' ${p10k_state} %k%F{blue\}%f }:-}'
  RPROMPT='%F{green}P10K-RIGHT%f'
  (( p10k_fd )) && zle -F $p10k_fd && exec {p10k_fd}<&-
  exec {p10k_fd}< <(print answered)
  zle -F $p10k_fd p10k_answer
}

p10k_answer() {
  IFS= read -r p10k_state <&$1
  zle -F $1
  exec {p10k_fd}<&-
  p10k_fd=0
  zle && zle reset-prompt && zle -R
}

p10k_line-init() {
  zmodload zsh/zselect
  zselect -t 2
}

p10k_line-finish() {
  [[ $CONTEXT == start ]] || return 0
  p10k_short='short> ' RPROMPT=
  zle reset-prompt
  zle -R
}

TRAPINT() {
  zle && p10k_line-finish
  return 0
}

precmd_functions=(p10k_precmd $precmd_functions)

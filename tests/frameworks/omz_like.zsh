# A theme as oh-my-zsh has them: PROMPT is built anew by a precmd, RPROMPT on the right, and what git
# says comes from a process in the background whose answer redraws the prompt.
setopt prompt_subst transient_rprompt
autoload -Uz add-zsh-hook colors
colors
typeset -g omz_git=
typeset -gi omz_fd=0 omz_answers=0

omz_build() {
  PROMPT="%{$fg_bold[cyan]%}OMZ%{$reset_color%} %(?.ok.failed:%?) %c \$omz_git"$'\n'"> "
  RPROMPT="%{$fg[yellow]%}RIGHT %*%{$reset_color%}"
}

omz_answer() {
  local line
  if [[ -z $2 || $2 == hup ]] && IFS= read -r line <&$1; then
    omz_git=$line
    (( ++omz_answers ))
  fi
  zle -F $1
  exec {1}<&-
  omz_fd=0
  zle && zle reset-prompt && zle -R
}

omz_ask() {
  (( omz_fd )) && zle -F $omz_fd && exec {omz_fd}<&-
  exec {omz_fd}< <(git rev-parse --abbrev-ref HEAD 2>/dev/null; print no-git)
  zle -F $omz_fd omz_answer
}

omz_title() { print -n "\e]0;$1\a" }
add-zsh-hook precmd omz_build
add-zsh-hook precmd omz_ask
add-zsh-hook preexec omz_title

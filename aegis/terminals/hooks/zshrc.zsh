# The .zshrc of a terminal's zsh: the user's own .zshrc, with ZDOTDIR as the user has it; then the
# hook is armed. See zshenv.zsh for how this is written.

'builtin' 'unset' ZDOTDIR
if [[ "${#__aegis_zdotdir[@]}" != 0 ]]; then
  ZDOTDIR="${__aegis_zdotdir[@]}"
  [[ -z "${__aegis_exported[*]}" ]] || 'builtin' 'export' ZDOTDIR
fi

# A start-up file of the system may have put the history beside this file.
if [[ "${HISTFILE-}" == "${__aegis_dir[@]}/.zdotdir/"* ]]; then
  HISTFILE="${ZDOTDIR-$HOME}/${HISTFILE##*/}"
fi

if [[ -n "${__aegis_rcs[*]}" ]]; then
  'builtin' 'setopt' "${__aegis_rcs[@]}"
elif [[ -f "${ZDOTDIR-$HOME}/.zshrc" && -r "${ZDOTDIR-$HOME}/.zshrc" ]]; then
  'builtin' 'source' "${ZDOTDIR-$HOME}/.zshrc"
fi

# Without a secret (these files were read by hand) nothing is armed. It is counted, not looked at:
# the user may have switched tracing on.
if [[ "${#__aegis_n[@]}" == 1 ]]; then
  __aegis_arm
fi

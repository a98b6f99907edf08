# The .zshenv of a terminal's zsh: what comes before the user's own .zshenv, and that.
#
# Words are quoted where an alias could change them. See zsh.zsh and arming.zsh for the hook.

'builtin' 'typeset' -ga __aegis_dir __aegis_zdotdir __aegis_exported __aegis_rcs
__aegis_dir=("${ZDOTDIR%/*}")
'builtin' 'source' "${__aegis_dir[@]}/.zdotdir/arming.zsh"

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

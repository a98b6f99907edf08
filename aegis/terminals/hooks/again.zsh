# Read by a line that the daemon types into a zsh at its prompt, which has read the user's files and
# lost the hook or never had it. $1 is the directory of the hook.

'builtin' 'typeset' -ga __aegis_dir
__aegis_dir=("$1")
'builtin' 'source' "$1/.zdotdir/arming.zsh"
if [[ -n "${__aegis_err[*]}" && /dev/fd/2 -ef "${__aegis_err[*]}" ]]; then
  'builtin' 'exec' 2>/dev/tty
fi
if [[ "${#__aegis_n[@]}" == 1 ]]; then
  __aegis_arm
fi

# Marks of command boundaries (OSC 133) for a shell of the POSIX family that has no hook of its own:
# dash, ash, mksh, ksh, yash, sh. Read as its $ENV, with the secret in init.secret beside this file.
#
# The prompt reports the end of a line and its status; l is the number of the last one. Nothing in
# these shells runs before a command, so the line that the daemon types reports its start itself:
#     __aegis_c;. "$__aegis_f";__aegis_d
# Prompts name the variables; what must be known later is in no variable that is exported.

# Also read by a line that the daemon types into such a shell at its prompt: then __aegis_again is the
# directory, and the user's $ENV was read.
if [ "${__aegis_again-}" ]; then
  __aegis_dir=$__aegis_again
  # Prompts are drawn there, which was another terminal if standard error was split.
  if [ -r "$__aegis_dir/init.stderr" ]; then exec 2>/dev/tty; fi
else
  __aegis_dir=${ENV%/*}
  if [ "${AEGIS_ENV+set}" ]; then ENV=$AEGIS_ENV; else unset ENV; fi
  unset AEGIS_ENV
fi

# A shell that was started inside finds no secret, and is left alone.
if IFS= read -r __aegis_n 2>/dev/null <"$__aegis_dir/init.secret"; then
  command rm -f -- "$__aegis_dir/init.secret"
  __aegis_f=$__aegis_dir/submission __aegis_q=0 __aegis_l=0 __aegis_r=0
  __aegis_e=$(printf '\033') __aegis_b=$(printf '\007')
  __aegis_prompt='${__aegis_e}]133;D;$?;n=${__aegis_n};q=$((__aegis_q+1));b=$((__aegis_l))${__aegis_b}${__aegis_e}]133;A;n=${__aegis_n};q=$((__aegis_l=__aegis_q=__aegis_q+1))${__aegis_b}'
  __aegis_stand='${__aegis_e}]133;B;n=${__aegis_n};q=${__aegis_q}${__aegis_b}'
  __aegis_more='${__aegis_e}]133;P;k=s;n=${__aegis_n};q=${__aegis_q}${__aegis_b}'

  # A mark goes to the terminal, wherever the output goes. Some of these shells have no printf of
  # their own.
  if [ "${KSH_VERSION-}" ]; then
    __aegis_put() { print -nr -- "$__aegis_e]133;$1;n=$__aegis_n;q=$__aegis_q$2$__aegis_b" >/dev/tty; }
  else
    __aegis_put() { printf %s "$__aegis_e]133;$1;n=$__aegis_n;q=$__aegis_q$2$__aegis_b" >/dev/tty; }
  fi

  # Gives back the status before, for the text that comes next. Under errexit that would end the
  # shell, where the status must have been looked at.
  __aegis_back() {
    case $- in *e*) return 0 ;; esac
    return "$__aegis_r"
  }

  __aegis_c() {
    __aegis_r=$?
    __aegis_q=$((__aegis_q + 1))
    __aegis_put C ";s=1;b=$__aegis_l"
    __aegis_back
  }

  __aegis_d() {
    __aegis_r=$?
    __aegis_arm
    __aegis_back
  }

  # The answer to a probe: this line was read, so nothing else was on it.
  __aegis_p() {
    __aegis_r=$?
    __aegis_put 'P;k=l' ';l=0'
    __aegis_back
  }

  # The marks go around the user's prompts, and there again if they were set anew. The prompt of a
  # second line is not expanded by every one of these shells.
  __aegis_arm() {
    case ${PS1-} in *"$__aegis_prompt"*) ;; *) PS1=$__aegis_prompt${PS1-}$__aegis_stand ;; esac
    [ "${KSH_VERSION-}" ] && return
    case ${PS2-} in *"$__aegis_more"*) ;; *) PS2=$__aegis_more${PS2-} ;; esac
  }

  if [ -z "${__aegis_again-}" ]; then
    __aegis_rc=${ENV-}
    case ${KSH_VERSION-} in
      *MIRBSD* | *LEGACY*) __aegis_rc=${ENV-$HOME/.mkshrc} ;;
      ?*) __aegis_rc=${ENV-$HOME/.kshrc} ;;
    esac
    eval "__aegis_rc=\"$__aegis_rc\""
    [ -r "$__aegis_rc" ] && . "$__aegis_rc"
  fi
  unset __aegis_again
  __aegis_arm
fi

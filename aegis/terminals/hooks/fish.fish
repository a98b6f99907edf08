# Marks of command boundaries (OSC 133) for an interactive fish, 3.4 or newer.
#
# Sourced by `fish --init-command` after the user's own start-up files, with the secret of this
# shell in <dir>/init.secret. Rules:
#   - State lives in global variables that are not exported; no prompt holds any of it.
#   - Marks are printed by event handlers and by the functions behind keys. Nothing of the user's is
#     wrapped: fish_prompt and its like may be replaced at any time.
#   - No mark forks: only builtins and functions run here.

# With an older one the user gets a message, and the shell ends before a prompt.
if not builtin string match -qr '^(3\.([4-9]|[1-9]\d)|[4-9]|[1-9]\d)' -- $version
    builtin printf 'a terminal needs fish 3.4 or newer, this is %s: name another shell\n' $version
    exec false
end

# n: the secret. q: the number of the last C or D. ended: that of the last D. s: 1 while the line is the daemon's.
# typed: the mark's parameter for the stored text of a typed command. owed: 1 from a C until its D.
set -g __aegis_file (builtin status filename)
set -g __aegis_dir (builtin string replace -r '/[^/]*$' '' -- $__aegis_file)
set -g __aegis_q 0
set -g __aegis_ended 0
set -g __aegis_s 0
set -g __aegis_typed ''
set -g __aegis_owed 0

# Prints the mark $argv[1] with the parameters $argv[2] behind secret and number.
function __aegis_print
    builtin printf '\e]133;%s;n=%s;q=%s%s\a' $argv[1] $__aegis_n $__aegis_q $argv[2]
end

# The next number.
function __aegis_count
    set -g __aegis_q (builtin math $__aegis_q + 1)
end

# A command begins. Lines of comments run nothing, though fish calls this for them.
function __aegis_preexec --on-event fish_preexec
    builtin string match -qvr '^\s*(#.*)?$' -- (builtin string split \n -- $argv[1]); or return
    __aegis_count
    if test $__aegis_s = 0
        set -g __aegis_typed ";h=$__aegis_q"
        builtin printf %s $argv[1] >$__aegis_dir/typed.$__aegis_q
    end 2>/dev/null
    set -g __aegis_owed 1
    __aegis_print C ";s=$__aegis_s;b=$__aegis_ended"
end

# A line has ended, with the status $argv[1].
function __aegis_end
    __aegis_count
    __aegis_print "D;$argv[1]" ";s=$__aegis_s;b=$__aegis_ended$__aegis_typed"
    set -g __aegis_ended $__aegis_q
    set -g __aegis_s 0
    set -g __aegis_typed ''
    set -g __aegis_owed 0
end

# A command has ended, but it may have been `exit`: its end is reported with the prompt, if one comes.
# Output of the user's own handlers until then is not the command's.
function __aegis_postexec --on-event fish_postexec
    __aegis_print 'P;k=e'
end

function __aegis_prompt --on-event fish_prompt
    __aegis_end $status
    __aegis_stand
end

# Ctrl-C has dropped a line. It may have overtaken the probe key, whose answer then was wrong.
function __aegis_cancel --on-event fish_cancel
    __aegis_end $status
    __aegis_stand
    __aegis_print 'P;k=l' ';l=0'
end

# The prompt is shown.
function __aegis_stand
    __aegis_print A
    __aegis_print B
    builtin bind \x1e >/dev/null 2>&1; or __aegis_bind_keys
end

# The submit key: the line is what the file `submission` holds behind its first character, and runs.
# A file without that character was read before: then the key drops a text that was not complete, or
# is a stray one and does nothing.
function __aegis_submit
    if test $__aegis_s = 1
        __aegis_end $status
        __aegis_stand
        return
    end
    set -l text
    builtin read -z text <$__aegis_dir/submission; or return
    builtin printf '' >$__aegis_dir/submission
    test -n "$text"; or return
    set text (builtin string sub -s 2 -- $text | builtin string collect)
    set -g __aegis_s 1
    __aegis_leave_modes
    builtin commandline -r -- "$text"
    builtin commandline --is-valid
    set -l verdict $status
    builtin string match -qr '(?<!\\\\)(\\\\\\\\)*\\\\$' -- "$text"; and set verdict 2
    switch $verdict
        case 2
            builtin commandline -r ''
            __aegis_print 'P;k=s' ";s=1"
            return
        case 1
            if builtin string match -qr '\S' -- "$text"
                __aegis_refuse "$text"
                return
            end
    end
    # A blank behind the last word keeps fish from taking it for an abbreviation; no history has it.
    builtin commandline -r -- "$text "
    builtin commandline -f execute
end

# Text that is not valid syntax: fish would show what is wrong and leave it on the line.
function __aegis_refuse
    builtin commandline -r ''
    builtin printf '\e[?2004l\n'
    set -l fish (builtin status fish-path)
    builtin printf %s $argv[1] | $fish --no-execute
    set -l code $pipestatus[2]
    __aegis_end $code
    builtin printf '\e[?2004h'
    __aegis_stand
    builtin commandline -f repaint
end

# The probe key: reports the length of the line and changes nothing. At a prompt that came without the
# end of its command the handlers are gone: no answer means that the hook must be read again. (While a
# command runs, current-command is its name: then the command reads a line itself.)
function __aegis_probe
    if test $__aegis_owed = 1; and test (builtin status current-command) = fish
        return
    end
    set -l line (builtin commandline)
    # An open pager (a completion, or the search in the history) is no empty line.
    set -l length (builtin string length -- "$line")
    builtin commandline --paging-mode; and test "$length" = 0; and set length 1
    __aegis_print 'P;k=l' ";l=$length"
end

# Out of vi's command mode and of a paste that never ended.
function __aegis_leave_modes
    if test "$fish_key_bindings" = fish_vi_key_bindings
        set -g fish_bind_mode insert
    else
        set -g fish_bind_mode default
    end
end

# Ctrl-^ submits, Ctrl-] probes, whatever the mode. Each is one byte: a Ctrl-C that the tty turns into
# a signal overtakes the bytes behind it, and would cut a longer key in two.
function __aegis_bind_keys
    for mode in (builtin bind --list-modes) default insert visual replace replace_one paste
        builtin bind -M $mode \x1e __aegis_submit
        builtin bind -M $mode \x1d __aegis_probe
    end
end

# Handlers are called in the order in which they were defined: the end of a command is reported before
# the user's own handlers print anything.
function __aegis_come_first
    for line in (builtin functions --handlers-type generic)
        set -l words (builtin string split -n ' ' -- $line)
        test "$words[1]" = fish_postexec; and test "$words[2]" != __aegis_postexec; or continue
        builtin functions -- $words[2] | builtin source
    end
end

# Without a secret (this file was sourced by hand) nothing is armed.
if builtin read -g __aegis_n <$__aegis_dir/init.secret
    command rm -f -- $__aegis_dir/init.secret
    __aegis_come_first
    __aegis_bind_keys
end

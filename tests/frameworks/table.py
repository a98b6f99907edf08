"""What people load for their prompts and lines, as Debian packages it, and two themes of our own.

The two of our own stand for what is not packaged: a theme as oh-my-zsh has them, and one that works
as powerlevel10k does. The real powerlevel10k is neither in Debian nor on PyPI or npm: its tests run
where the environment variable AEGIS_TEST_POWERLEVEL10K names a checkout of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

import attrs

HERE = Path(__file__).parent


@attrs.frozen
class Framework:
    """One framework in one shell: what loads it, and how it shows that it is in force.

    ``load`` stands in the start-up file. ``file`` must exist for it; it comes with the Debian
    package ``package``, or as ``source`` says. ``shows`` is printed with each prompt. ``proof`` are
    commands, run one after another, each with what it prints.
    """

    name: str
    load: str
    file: str = ""
    package: str = ""
    shows: bytes = b""
    proof: tuple[tuple[str, str], ...] = ()
    source: str = ""

    @property
    def is_missing(self) -> bool:
        return bool(self.file) and not Path(self.file).exists()

    def __str__(self) -> str:
        return self.name


ARROW = "\ue0b0".encode()
"""What powerline and its relatives draw between two segments."""

KITTY = "/usr/lib/kitty/shell-integration"
FZF = "/usr/share/doc/fzf/examples/key-bindings"
VTE = "/etc/profile.d/vte-2.91.sh"
LIQUIDPROMPT = "/usr/share/liquidprompt/liquidprompt"
COMPLETION = "/usr/share/bash-completion/bash_completion"
GIT_PROMPT = "/usr/lib/git-core/git-sh-prompt"
POWERLINE = "/usr/share/powerline/bindings"
SUGGESTIONS = "/usr/share/zsh-autosuggestions/zsh-autosuggestions.zsh"
HIGHLIGHTING = "/usr/share/zsh-syntax-highlighting/zsh-syntax-highlighting.zsh"
POWERLEVEL9K = "/usr/share/powerlevel9k/powerlevel9k.zsh-theme"

CHEVRON = "\u276f".encode()
"""The prompt character of powerlevel10k."""

POWERLEVEL10K = os.environ.get("AEGIS_TEST_POWERLEVEL10K", "/nonexistent/powerlevel10k")
P10K_SOURCE = "AEGIS_TEST_POWERLEVEL10K must name a checkout of romkatv/powerlevel10k"


def powerlevel10k(style: str, transient: str, instant: str) -> Framework:
    """The real theme, with one of the configurations that it brings; ``p10k`` needs no network."""
    theme = quote(POWERLEVEL10K)
    instant_file = "~/.cache/p10k-instant-prompt-${(%):-%n}.zsh"
    return Framework(
        f"powerlevel10k-{style}-transient-{transient}-instant-{instant}",
        f"""[[ {instant} == off || ! -r {instant_file} ]] || . {instant_file}
POWERLEVEL9K_DISABLE_CONFIGURATION_WIZARD=true
. {theme}/powerlevel10k.zsh-theme
. {theme}/config/p10k-{style}.zsh
POWERLEVEL9K_DISABLE_GITSTATUS=true
POWERLEVEL9K_TRANSIENT_PROMPT={transient}
POWERLEVEL9K_INSTANT_PROMPT={instant}
(( ! $+functions[p10k] )) || p10k reload""",
        f"{POWERLEVEL10K}/powerlevel10k.zsh-theme",
        source=P10K_SOURCE,
        shows=CHEVRON if style != "rainbow" else ARROW,
    )


ALLOW_ENVRC = "echo export FROM_DIRENV=yes >~/.envrc; direnv allow ~ 2>/dev/null"
FROM_ENVRC = (('echo "$FROM_DIRENV"', "yes\n"),)
VISITED = (
    ("cd /usr/share 2>/dev/null", ""),
    ("cd 2>/dev/null", ""),
    ("zoxide query share", "/usr/share\n"),
)


def of_both(shell: str, ending: str) -> list[Framework]:
    """What there is for bash and for zsh alike."""
    return [
        Framework("liquidprompt", f". {LIQUIDPROMPT}", LIQUIDPROMPT, "liquidprompt", b"\x1b[1m~"),
        Framework(
            "powerline",
            f". {POWERLINE}/{shell}/powerline.{ending}",
            f"{POWERLINE}/{shell}/powerline.{ending}",
            "powerline",
            ARROW,
        ),
        Framework(
            "direnv",
            f'{ALLOW_ENVRC}\neval "$(direnv hook {shell})"',
            "/usr/bin/direnv",
            "direnv",
            proof=FROM_ENVRC,
        ),
        Framework(
            "zoxide",
            f'eval "$(zoxide init {shell})"',
            "/usr/bin/zoxide",
            "zoxide",
            proof=VISITED,
        ),
        Framework(
            "vte",
            f"VTE_VERSION=7000; . {VTE}",
            VTE,
            "libvte-2.91-common",
            b"\x1b]7;file://",
        ),
    ]


BASH = [
    *of_both("bash", "sh"),
    Framework(
        "kitty",
        f"KITTY_SHELL_INTEGRATION=enabled; . {KITTY}/bash/kitty.bash",
        f"{KITTY}/bash/kitty.bash",
        "kitty-shell-integration",
        b"\x1b[5 q",
    ),
    Framework(
        "fzf", f". {FZF}.bash", f"{FZF}.bash", "fzf", proof=(("bind -X | grep -c fzf-file", "1\n"),)
    ),
    Framework(
        "bash-completion",
        f". {COMPLETION}",
        COMPLETION,
        "bash-completion",
        proof=(("declare -F _init_completion", "_init_completion\n"),),
    ),
    Framework(
        "git-prompt",
        f". {GIT_PROMPT}\ngit init -q -b trunk ~\n"
        'PROMPT_COMMAND=\'__git_ps1 "${VIRTUAL_ENV:-}\\w" "\\\\\\$ " "<%s>"\'',
        GIT_PROMPT,
        "git",
        b"<trunk",
    ),
]

ZSH = [
    *of_both("zsh", "zsh"),
    Framework(
        "kitty",
        f"KITTY_SHELL_INTEGRATION=enabled; . {KITTY}/zsh/kitty.zsh",
        f"{KITTY}/zsh/kitty.zsh",
        "kitty-shell-integration",
        b"\x1b[5 q",
    ),
    Framework(
        "fzf",
        f". {FZF}.zsh",
        f"{FZF}.zsh",
        "fzf",
        proof=(("bindkey '^T'", '"^T" fzf-file-widget\n'),),
    ),
    Framework("powerlevel9k", f". {POWERLEVEL9K}", POWERLEVEL9K, "zsh-theme-powerlevel9k", ARROW),
    Framework(
        "autosuggestions",
        f". {SUGGESTIONS}",
        SUGGESTIONS,
        "zsh-autosuggestions",
        proof=(("print $widgets[accept-line]", "user:_zsh_autosuggest_bound_1_accept-line\n"),),
    ),
    Framework(
        "syntax-highlighting",
        f". {HIGHLIGHTING}",
        HIGHLIGHTING,
        "zsh-syntax-highlighting",
        proof=(("print $+functions[_zsh_highlight]", "1\n"),),
    ),
    Framework("omz-like", f". {quote(str(HERE))}/omz_like.zsh", "/usr/bin/git", "git", b"OMZ"),
    Framework(
        "completion",
        "autoload -Uz compinit; compinit -u -d ~/.zcompdump",
        proof=(("print ${_comps[git]}", "_git\n"),),
    ),
    Framework("p10k-like", f". {quote(str(HERE))}/p10k_like.zsh", shows=b"P10K-RIGHT"),
]

POWERLEVEL10KS = [
    powerlevel10k("lean", "off", "off"),
    powerlevel10k("rainbow", "always", "off"),
    powerlevel10k("pure", "always", "verbose"),
    powerlevel10k("lean", "same-dir", "quiet"),
]

ALONE = {"bash": BASH, "zsh": [*ZSH, *POWERLEVEL10KS]}


def together(shell: str, names: str) -> list[Framework]:
    """These frameworks, in this order."""
    by_name = {each.name: each for each in ALONE[shell]}
    return [by_name[name] for name in names.split()]


# In orders in which they leave each other in force, also without us: vte.sh replaces a
# PROMPT_COMMAND that is no array, and liquidprompt the PS1 of whoever came before it.
TOGETHER = {
    "bash": [
        together("bash", "vte bash-completion liquidprompt fzf zoxide direnv kitty"),
        together("bash", "vte powerline direnv kitty zoxide fzf bash-completion"),
        together("bash", "git-prompt direnv zoxide kitty bash-completion"),
    ],
    "zsh": [
        together(
            "zsh",
            "completion fzf zoxide direnv vte kitty powerlevel9k autosuggestions "
            "syntax-highlighting",
        ),
        together(
            "zsh",
            "p10k-like completion syntax-highlighting autosuggestions kitty direnv fzf zoxide vte",
        ),
        together("zsh", "powerline syntax-highlighting autosuggestions direnv kitty"),
        together("zsh", "autosuggestions kitty omz-like vte completion fzf syntax-highlighting"),
        together("zsh", "kitty liquidprompt direnv autosuggestions"),
        together(
            "zsh",
            "powerlevel10k-lean-transient-off-instant-off completion autosuggestions kitty direnv "
            "fzf zoxide syntax-highlighting",
        ),
    ],
}


def startup_of(frameworks: Sequence[Framework]) -> str:
    """The start-up file of somebody who has these."""
    return "\n".join(["PS1='$ '", *(each.load for each in frameworks), ""])


def why_not(frameworks: Sequence[Framework]) -> str:
    """Why they cannot be tried here; empty if they can."""
    missing = [
        f"{each.file} ({each.source or 'package ' + each.package})"
        for each in frameworks
        if each.is_missing
    ]
    return f"not there: {', '.join(missing)}" if missing else ""

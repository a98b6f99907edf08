"""``completion``: the script that lets a shell complete this program."""

from __future__ import annotations

import click

from aegis.cli.grammar.completing import script


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script with which a shell completes names.

    bash: eval "$(aegis-actors completion bash)" in .bashrc. zsh: the same in .zshrc, behind
    compinit. fish: aegis-actors completion fish | source, in config.fish.
    """
    root = context.find_root()
    click.echo(script(shell, str(root.info_name), root.command), nl=False)

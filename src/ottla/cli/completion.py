"""`ottla completion`: shell completion scripts."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_OTTLA_COMPLETE"


@click.command(
    epilog="""\b
Examples:
  eval "$(ottla completion bash)"                                       (in ~/.bashrc)
  eval "$(ottla completion zsh)"                                        (in ~/.zshrc)
  ottla completion fish > ~/.config/fish/completions/ottla.fish
""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell completion script."""
    kind = get_completion_class(shell)
    if kind is not None:
        root = context.find_root()
        click.echo(kind(root.command, {}, root.info_name or "ottla", VARIABLE).source())

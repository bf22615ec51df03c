"""The `dsc` command: ready for signals before anything else is imported."""

from __future__ import annotations

from dsc.cli.signals import own_process

own_process()


def run() -> None:
    """Run the program."""
    from dsc.cli.main import main

    main()

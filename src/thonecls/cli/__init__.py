"""The command `thonecls`."""

from __future__ import annotations

import inspect
import io
import json as jsonlib
import logging
import os
import sys
from typing import NoReturn

from cyclopts import CycloptsError, MissingArgumentError
from rich.markup import escape

# They add their commands.
from thonecls.cli import benchmark, catalogues, check, map, report, studio, train  # noqa: F401
from thonecls.cli.app import INTERRUPTED, UNREAD, app, errors, with_flags
from thonecls.errors import ThoneclsError
from thonecls.io.drivers import keep_from_networks

LONGEST = 2000  # characters of an error


def main(arguments: list[str] | None = None) -> None:
    """Run the command line.

    Exits 0; 2 on an error that the user can correct; 3 if some of many scenes could not be mapped;
    130 after Ctrl-C.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    keep_from_networks()
    for stream in (sys.stdout, sys.stderr):
        # A console that has no letter for a name or a mark gets another; no work is lost by it.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    # GDAL's and Dask's troubles come as errors; what they log besides stands around the one line.
    for name in ("rasterio", "distributed"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        try:
            app(arguments, exit_on_error=False, print_error=False)
        finally:
            sys.stdout.flush()
    except ThoneclsError as error:
        _fail(with_flags(str(error), error.options), arguments)
    except MissingArgumentError as error:
        _fail(_missing(error), arguments)
    except CycloptsError as error:
        _fail(str(error), arguments)
    except BrokenPipeError:  # as `| head` leaves it: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(UNREAD)
    except OSError as error:
        from thonecls.files import is_full  # here: help and typos must not wait for it

        where = f" ({error.filename})" if error.filename else ""
        step = "free disk space" if is_full(error) else "check the path"
        _fail(f"{error.strerror or error}{where}: {step}", arguments)
    except KeyboardInterrupt:
        errors.print("stopped")
        sys.exit(INTERRUPTED)


def _missing(error: MissingArgumentError) -> str:
    """What a command needs, in the order in which it is to be written."""
    if error.target is None or error.argument is None or error.argument.tokens or error.keyword:
        return str(error)  # of an option without its value
    needed = [
        name.upper()
        for name, parameter in inspect.signature(error.target).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    command = " ".join(["thonecls", *(error.command_chain or ())])
    return (
        f"{command} needs {' and '.join(needed)}: write {command} {' '.join(needed)}; "
        f"{command} --help explains them"
    )


def _fail(message: str, arguments: list[str]) -> NoReturn:
    message = " ".join(line.strip() for line in message.splitlines())
    if len(message) > LONGEST:  # of a cell that holds a book, or a name
        message = f"{message[: LONGEST // 2]} … {message[-LONGEST // 2 :]}"
    if "--json" in arguments:
        print(jsonlib.dumps({"error": message}))
    else:
        errors.print(f"[bold red]error:[/bold red] {escape(message)}", soft_wrap=True)
    sys.exit(2)

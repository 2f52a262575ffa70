"""`python -m thonecls.cli` is the command `thonecls`."""

from thonecls.cli import main

main()

"""`python -m thonecls.cli` is the command `thonecls`."""

from thonecls.cli import main

if __name__ == "__main__":  # processes that are started from here import it again
    main()

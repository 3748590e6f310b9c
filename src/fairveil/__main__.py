"""`python -m fairveil`: the command line without its console script."""

from .cli import main

if __name__ == "__main__":
    main()

"""`python -m roundel` is the command line."""

from roundel.cli import main

main()

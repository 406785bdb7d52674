"""`python -m heddle`: the command line."""
from ._command import main

main()

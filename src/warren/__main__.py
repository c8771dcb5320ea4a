"""`python -m warren` is `warren`."""

from warren.cli.main import main

if __name__ == "__main__":
    main()

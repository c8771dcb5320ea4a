"""`python -m warrenmq` is `warren`."""

from warrenmq.cli.main import main

if __name__ == "__main__":
    main()

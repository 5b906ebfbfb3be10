"""`python -m assay`: the command."""

from assay.cli import main

raise SystemExit(main())

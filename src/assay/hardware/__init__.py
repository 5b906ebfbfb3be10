"""What chips can do at most, each figure with its source: memory, bandwidth, matrix products, links, power.

One file a chip, in `chips/`. Rates are of dense matrix products; figures for matrices with two zeros in four, which
vendors like to print, are twice these and appear nowhere.
"""

from assay.hardware.catalogue import DTYPES, FIGURES, chip, chips
from assay.hardware.chip import Chip, Source

__all__ = ["DTYPES", "FIGURES", "Chip", "Source", "chip", "chips"]

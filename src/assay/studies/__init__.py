"""Questions over many models or settings: a sweep, a comparison, a design; each reads with the readings alone.

ranges     1,8 · 1k:1M · 1k:1M:20 · 0:100k:+10k · mlp.width=4*width
sweep      every figure of the report at every setting, as columns
written    a sweep as CSV, JSON, Parquet
figures    a sweep as pictures
compare    several models side by side, and what differs
design     plain architectures that meet targets, as descriptions
"""

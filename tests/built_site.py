"""What a built site would fetch from elsewhere: scripts, styles, fonts, pictures. Links that a reader follows are none.

python tests/built_site.py site
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

_TAG = re.compile(
    r"<(?P<tag>script|link|img|iframe|source|video|audio|object|embed|use)\b(?P<rest>[^>]*)>", re.IGNORECASE
)
_ADDRESS = re.compile(r"""\b(?:src|href|srcset|data)\s*=\s*["']?(?P<where>(?:https?:)?//[^\s"'>]+)""", re.IGNORECASE)
_STYLE = re.compile(r"""(?:url\(\s*["']?|@import\s+["']?)(?P<where>(?:https?:)?//[^\s"')]+)""", re.IGNORECASE)
# the theme's script fetches these when a page has a diagram of this class or a repository is named
_LATER = ('class="mermaid"', 'data-md-component="source"')


def fetched(folder: Path) -> Iterator[str]:
    """Each thing that a page would fetch from elsewhere: the file, and what."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".html", ".css", ".svg"):
            continue
        text = path.read_text(encoding="utf-8")
        found = [*_STYLE.findall(text), *(later for later in _LATER if later in text)]
        for tag in _TAG.finditer(text):
            if 'rel="canonical"' not in tag["rest"]:
                found += _ADDRESS.findall(tag["rest"])
        yield from (f"{path.relative_to(folder)}: {what}" for what in found)


if __name__ == "__main__":
    (site,) = sys.argv[1:]
    pages = sum(1 for _ in Path(site).rglob("*.html"))
    elsewhere = list(fetched(Path(site)))
    print("\n".join(elsewhere) or f"{site}: {pages} pages, nothing from elsewhere")
    sys.exit(bool(elsewhere) or not pages)

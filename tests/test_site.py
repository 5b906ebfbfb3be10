"""The site: every document has its place in it, and it fetches nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from built_site import fetched

ROOT = Path(__file__).parents[1]


def test_every_document_has_its_place() -> None:
    placed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    there = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(placed) == sorted(there)


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://a.example/x.js"></script>',
        "<link rel=stylesheet href=//a.example/x.css>",
        '<img alt="" src="http://a.example/x.png">',
        "<style>@import 'https://a.example/x.css'</style>",
        "<style>body { background: url(https://a.example/x.png) }</style>",
        '<pre class="mermaid">',
    ],
)
def test_what_is_fetched_is_found(text: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    (what,) = fetched(tmp_path)
    assert what.startswith("page.html: ")


def test_links_of_a_reader_are_no_fetching(tmp_path: Path) -> None:
    text = '<link rel="canonical" href="https://a.example/"><a href="https://a.example/">there</a><script src="x.js">'
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    assert not list(fetched(tmp_path))


def test_it_builds_and_fetches_nothing(tmp_path: Path) -> None:
    """Strictly: no link and no anchor leads nowhere."""
    pytest.importorskip("material", reason="needs the extra `docs`")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert not built.returncode, built.stderr
    assert (tmp_path / "questions" / "cache.html").exists()
    assert not list(fetched(tmp_path))

"""The site: every document has its place in it, and it fetches nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from built_site import fetched
from documents import recipe

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


def build(folder: Path, into: Path) -> subprocess.CompletedProcess[str]:
    """What `make site` runs: --quiet would hide the warnings that --strict counts."""
    pytest.importorskip("material", reason="needs the extra `docs`")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(into)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_it_builds_and_fetches_nothing(tmp_path: Path) -> None:
    """Strictly: no link and no anchor leads nowhere."""
    built = build(ROOT, tmp_path)
    assert not built.returncode, built.stderr
    assert (tmp_path / "questions" / "cache.html").exists()
    assert not list(fetched(tmp_path))


def test_an_anchor_that_leads_nowhere_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").write_text("site_name: x\nvalidation: {anchors: warn}\n", encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A\n\n[there](#nowhere)\n", encoding="utf-8")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode
    assert "does not contain an anchor '#nowhere'" in built.stderr or "no such anchor" in built.stderr


def test_make_lets_warnings_stop_it() -> None:
    assert "--strict" in recipe("site")
    assert "--quiet" not in recipe("site").partition("#")[0]

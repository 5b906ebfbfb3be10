"""Repositories of the hub: the config.json in the local cache, else fetched, alone, within five seconds.

Plain urllib: a single small GET needs no client library, and one bound over name look-up, connection and
transfer together is kept here by a thread that is left behind. Logins are not handled: what is gated is
fetched once with the hub's own client, and is then found in the cache.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from assay.sources.files import CONFIG
from assay.sources.jsontext import LIMIT
from assay.sources.shown import name

SECONDS = 5.0
ENDPOINT = "https://huggingface.co"

_PART = r"[A-Za-z0-9](?:[\w.-]{0,94}[\w])?"
_NAME = re.compile(rf"(?P<repo>(?:{_PART}/)?{_PART})(?:@(?P<revision>\w[\w./-]{{0,199}}))?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_TRUE = {"1", "ON", "YES", "TRUE"}


class Repository:
    """`org/name`, or a name alone as the oldest have it, and a branch, tag or commit of it."""

    def __init__(self, repo: str, revision: str | None) -> None:
        self.repo = repo
        self.revision = revision or "main"

    def __str__(self) -> str:
        return self.repo if self.revision == "main" else f"{self.repo}@{self.revision}"

    @property
    def owned(self) -> bool:
        """True for org/name; a name alone is looked for in the cache and never fetched."""
        return "/" in self.repo


def parse(text: str) -> Repository | None:
    """`org/name[@revision]`, or None for what no repository can be called."""
    found = _NAME.fullmatch(text)
    if found is None or ".." in text or "--" in found["repo"] or "//" in text:
        return None
    return Repository(found["repo"], found["revision"])


def cache_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Where the hub's client keeps what it fetched: the same variables in the same order."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environ.get(variable):
            return os.path.expanduser(environ[variable])
    home = environ.get("HF_HOME") or os.path.join(environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return os.path.join(os.path.expanduser(home), "hub")


def offline(environ: Mapping[str, str] = os.environ) -> str | None:
    """The setting that forbids the network, or None."""
    for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if environ.get(variable, "").upper() in _TRUE:
            return variable
    return None


def cached(repository: Repository) -> str | None:
    """The path of a repository's config.json in the local cache, or None."""
    folder = os.path.join(cache_folder(), f"models--{repository.repo.replace('/', '--')}")
    commit = repository.revision
    if not _COMMIT.fullmatch(commit):
        try:
            with open(os.path.join(folder, "refs", commit), encoding="ascii") as file:
                commit = file.read(100).strip()
        except (OSError, ValueError):
            return None
        if not _COMMIT.fullmatch(commit):
            return None
    found = os.path.join(folder, "snapshots", commit, CONFIG)
    return found if os.path.lexists(found) else None


def fetch(repository: Repository) -> tuple[bytes, str]:
    """The config.json from the hub; or nothing, and what was tried and came of it, after five seconds at most."""
    from threading import Thread

    endpoint = (os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")
    if not endpoint.startswith(("https://", "http://")):
        return b"", f"HF_ENDPOINT is {name(endpoint)!r}, which must begin with https:// or http://"
    url = f"{endpoint}/{repository.repo}/resolve/{repository.revision.replace('/', '%2F')}/{CONFIG}"
    answer: list[bytes | str] = []
    thread = Thread(target=lambda: answer.append(_get(url)), daemon=True)  # a name look-up has no limit of its own
    thread.start()
    thread.join(SECONDS)
    outcome = answer[0] if answer else f"no answer in {SECONDS:g} s"
    if isinstance(outcome, bytes):
        return outcome, ""
    return b"", f"{name(url)} gave {outcome}; the path of a config.json works without it"


def _get(url: str) -> bytes | str:
    """The body, or what went wrong in a few words."""
    import http.client
    import urllib.error
    import urllib.request

    request = urllib.request.Request(url, headers={"User-Agent": "assay"})  # noqa: S310 - the scheme is checked above
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as response:  # noqa: S310
            return bytes(response.read(LIMIT + 1))
    except urllib.error.HTTPError as error:
        error.close()
        return _status(error.code)
    except urllib.error.URLError as error:
        return f"no connection ({name(error.reason)})"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"no connection ({name(error) or type(error).__name__})"


def _status(code: int) -> str:
    if code in (401, 403):
        return f"{code}: it needs a login or does not exist; `hf download` with yours puts it into the cache"
    if code == 404:
        return "404: no such repository, revision, or no config.json in it"
    return f"status {code}"

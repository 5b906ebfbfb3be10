"""Values and names from outside, short and safe to print: a message stays one line whatever a file holds."""

from __future__ import annotations

LONGEST = 60  # characters of a value
LONGEST_NAME = 200  # of a path or key


def short(value: object) -> str:
    """A value of a config as JSON would write it, control characters escaped, cut to one short piece."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of about {int(value.bit_length() * 0.30103)} digits"
    try:
        text = repr(_cut(value))
    except (ValueError, RecursionError):  # an integer too long to print somewhere within; too deep
        return f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _cut(value: object) -> object:
    """The beginning of what may be megabytes long: the rest would not be shown."""
    if isinstance(value, str | list | tuple):
        return value[: LONGEST + 1]
    if isinstance(value, dict) and len(value) > LONGEST:
        return dict(list(value.items())[:LONGEST])
    return value


def name(text: object) -> str:
    """A path or a key as it is, where it is printable; else escaped. Long ones lose their middle."""
    shown = str(text)
    if not shown.isprintable():
        shown = repr(shown)[1:-1]
    if len(shown) > LONGEST_NAME:
        half = LONGEST_NAME // 2 - 2
        shown = f"{shown[:half]}...{shown[-half:]}"
    return shown

"""What a mistaken option was meant to be: other tools' names for ours, or the nearest spelling."""

from __future__ import annotations

from collections.abc import Collection, Iterable

# how transformers, vLLM and counters of FLOPs call what is asked for here
ELSEWHERE = {
    "--seq": "--tokens",
    "--seq-len": "--tokens",
    "--seqlen": "--tokens",
    "--sequence-length": "--tokens",
    "--length": "--tokens",
    "--batch-size": "--batch",
    "--bs": "--batch",
    "-b": "--batch",
    "--ctx": "--context",
    "--ctx-len": "--context",
    "--context-length": "--context",
    "--max-model-len": "--context",
    "--dtype": "--weights",
    "--precision": "--weights",
    "--quantization": "--weights",
    "--kv-dtype": "--cache",
    "--kv-cache-dtype": "--cache",
    "--max-new-tokens": "--generate",
    "--new-tokens": "--generate",
    "-v": "--version",
    "-V": "--version",
}
# options of other commands that people ask the report for
COMMANDS_OF = {
    "--gpu": ("fit", "train"),
    "--gpus": ("fit", "train"),
    "--mfu": ("train",),
    "--train": ("memory", "fit"),
    "--optimizer": ("memory", "fit", "train"),
    "--recompute": ("memory", "fit", "train"),
    "--lora": ("memory", "fit"),
    "--page": ("memory", "fit"),
    "--chunk": ("memory", "fit"),
    "--plot": ("sweep",),
    "--columns": ("sweep",),
    "--csv": ("sweep",),
    "--out": ("draw",),
    "--format": ("explain",),
}


# what a library calls its arguments and nobody else does; those with a _ as well
_NO_WORDS = ("mfu", "pue")


def as_typed(message: str, options: Iterable[str]) -> str:
    """A message of the library, its arguments as the command line has them: `mfu is 2` is of --mfu.

    An argument is one where a message begins with it, alone or in a list, and says what it is, needs or cannot; a name
    that is no word is one wherever it stands, but in quotes and paths.
    """
    import re

    names = {option[2:].replace("-", "_"): option for option in options if option.startswith("--")}
    names |= {name.replace("_", " "): option for name, option in names.items()}
    word = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    if not word:
        return message
    more = rf"(?:(?:, | and | \+ | x )(?:{word}))"
    first = re.match(rf"(?:{word})(?:{more}* (?=is |cannot |needs )|{more}+ (?=are |need ))", message)
    said, rest = (first[0], message[first.end() :]) if first else ("", message)
    said = re.sub(rf"\b(?:{word})\b", lambda found: names[found[0]], said)
    odd = "|".join(name for name in names if "_" in name or name in _NO_WORDS) or "(?!)"
    return said + re.sub(rf"""(?<![\w./'"-])(?:{odd})(?![\w./'"=-])""", lambda found: names[found[0]], rest)


def hint(words: str, options: Iterable[str], commands: Collection[str]) -> str:
    """What to write in place of the first of some words that no option takes; `;` alone where nobody can tell.

    It ends as what is in front of more words does. `commands` are those that could have stood before it.
    """
    from difflib import get_close_matches

    known = [option for option in options if option.startswith("--")]
    first = words.split()[0].partition("=")[0] if words.split() else ""
    if not first.startswith("-"):
        return f"; a command ({', '.join(commands)}) comes first, then one MODEL;" if first and commands else ";"
    option = first.replace("_", "-")
    named = ELSEWHERE.get(option)
    takers = [f"assay {command}" for command in COMMANDS_OF.get(option, ()) if command in commands]
    if takers:
        return f"; {option} is an option of {' and '.join(takers)};"
    near = [named] if named in known else get_close_matches(option, known, 1, 0.75)
    return f"; did you mean {near[0]}?" if near else ";"

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

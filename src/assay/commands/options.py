"""The options that commands share: which model, and at what setting."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from assay.commands.frame import Parser, as_json, as_text, version
from assay.errors import SettingError
from assay.readings.setting import SIZES
from assay.report.table import Style
from assay.report.units import parse_number, parse_size, shorten
from assay.spec import Model

if TYPE_CHECKING:
    from assay.sources import Found

MODEL = """\
MODEL is one of, tried in this order:
  -                        a config.json on standard input
  a path                   a config.json, a folder holding one, a description (.toml), a .gguf file
  a preset                 `assay models` lists them
  org/name[@revision]      in the local hub cache, then on the hub (the config only)
A folder named like a command is written ./ops.

Sizes may be written 2048, 131,072, 8k = 8,000 (k M G B T: powers of 1000) or 128Ki = 131,072
(Ki Mi Gi: powers of 1024). GB is 10^9 bytes, GiB is 2^30."""


def model_options(parser: Parser, json: bool = True) -> None:
    """MODEL and how it is read."""
    parser.add_argument("model", metavar="MODEL", nargs="?", help="what to read; see below")
    if json:
        parser.add_argument("--json", action="store_true", help="one object of JSON, its keys stable")
    parser.add_argument("--class", dest="cls", metavar="NAME", help="the class to build, where a config fits several")
    parser.add_argument("--mtp", action="store_true", help="with the modules that predict further tokens")
    parser.add_argument(
        "--allow", metavar="KEY", action="append", default=[], help="let an unknown config key pass; may be repeated"
    )
    parser.add_argument(
        "--set",
        dest="sizes",
        metavar="KEY=N",
        action="append",
        default=[],
        help="another size, of a key such as layers or attention.heads; may be repeated",
    )


def setting_options(parser: Parser, lengths: bool = True) -> None:
    """The setting that `setting` reads; without lengths where a command goes through them itself."""
    add = parser.add_argument_group("setting").add_argument
    add("--batch", metavar="B", help="sequences; 1 if not given")
    if lengths:
        add("--tokens", metavar="N", help="tokens processed now; 2,048 if not given, or the position table's rows")
        add("--past", metavar="P", help="tokens before them, in the cache; 0 if not given")
        add("--context", metavar="C", help="past and present together, in place of --past")
    add("--source", metavar="M", help="source tokens of an encoder-decoder; as many as --tokens if not given")
    add(
        "--images", metavar="I", help="images (or sounds) of each sequence, where the model has a tower; 0 if not given"
    )
    add("--sounds", metavar="S", help="sounds of each sequence, where the model has towers of both; 0 if not given")
    add("--image-tokens", metavar="T", help="tokens that one image makes, where images may have any size")
    add("--logits", metavar="WHICH", default="all", help="positions that get logits: all (the default) or last")
    add("--latent", metavar="HOW", default="expanded", help="latent attention: expanded (the default) or absorbed")
    add(
        "--convention", metavar="NAME", default="matmul", help="what a FLOP is: matmul (the default); list explains all"
    )
    add("--weights", metavar="DTYPE", help="of the weights: fp32, bf16, fp8, int4, …; the config's if not given")
    kept = "of keys, values and convolution states; the weights' if not given, bf16 where that is narrower"
    add("--cache", metavar="DTYPE", help=kept)
    add("--state", metavar="DTYPE", default="fp32", help="of recurrent states; fp32 if not given")


def setting(args: Namespace) -> dict[str, Any]:
    """The arguments of `count`: what was given, sizes as integers. Raises SettingError."""
    given = {name: getattr(args, name) for name in ("logits", "latent", "convention", "weights", "cache", "state")}
    sizes = {name: getattr(args, name, None) for name in SIZES}
    return given | {
        name: parse_size(t, f"--{name.replace('_', '-')}", SIZES[name]) for name, t in sizes.items() if t is not None
    }


def dropout(text: str) -> float:
    """The rate of a dropout, 0.1 or 10%, 0 for none. Raises SettingError."""
    if text.strip() in ("0", "0.0", "0%"):
        return 0.0
    try:
        return float(parse_number(text, "--dropout", percent=True))
    except SettingError:
        said = f"--dropout is {shorten(text)!r}; it must be a rate from 0 to below 1, such as 0.1 or 10%"
        raise SettingError(said) from None


def load(parser: Parser, args: Namespace) -> Model:
    """The model that was asked for. Raises AssayError."""
    return found(parser, args)[1]


def found(parser: Parser, args: Namespace) -> tuple[Found, Model]:
    """What MODEL stands for, and the model as it was asked for. Raises AssayError."""
    if args.model is None:
        parser.error("MODEL is missing: a config.json, a preset, or org/name")
    from assay.sources import find

    what = find(args.model)
    return what, what.model(allow=args.allow, cls=args.cls, mtp=args.mtp, sizes=given_sizes(args.sizes))


def given_sizes(words: Iterable[str]) -> dict[str, int]:
    """The sizes that `--set KEY=N` gives. Raises SettingError."""
    found: dict[str, int] = {}
    for word in words:
        key, value = split_size(word)
        if key in found:
            raise SettingError(f"--set gives {shorten(key)} twice")
        found[key] = parse_size(value, f"--set {shorten(key)}", 0)
    return found


def split_size(word: str) -> tuple[str, str]:
    """Key and value of `KEY=VALUE`. Raises SettingError."""
    key, equals, value = word.partition("=")
    if not equals or not key.strip() or not value.strip():
        raise SettingError(f"--set is {shorten(word)!r}; it must be KEY=SIZE, such as width=2048 or attention.heads=16")
    return key.strip(), value.strip()


def list_conventions(style: Style, json: bool = False) -> str:
    """What can be counted as a FLOP."""
    from assay.report.model import conventions, conventions_document

    return as_json(conventions_document(version())) if json else as_text(conventions(style))

"""The options that commands share: which model, and at what setting."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from assay.commands.frame import Parser, as_json, as_text, version
from assay.errors import SettingError
from assay.readings.setting import SIZES
from assay.records import dataclass
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


def word(text: str, option: str) -> str:
    """What is read later, where it is known what it may be. Raises SettingError for none."""
    if not text.strip():
        raise SettingError(f"{option} is {text!r}; it must say something, as --help has it")
    return text


@dataclass(frozen=True)
class Option:
    """An option and the argument that it gives: what help calls its value, what it says, how its text is read.

    `value` is "" for one that stands alone. `read` is given the text and the option's name, for what it may raise.
    """

    value: str
    says: str
    read: Callable[[str, str], Any] = word


Options = dict[str, Option]  # by the argument that each gives: logits_chunk is --logits-chunk


def size(least: int = 1) -> Callable[[str, str], int]:
    """How an integer of at least so much is read."""
    return lambda text, option: parse_size(text, option, least)


def share(text: str, option: str) -> int | float:
    """A fraction, 0.4 or 40%. Raises SettingError."""
    return parse_number(text, option, percent=True)


def _setting(name: str, value: str, says: str) -> Options:
    """A size of the setting."""
    return {name: Option(value, says, size(SIZES[name]))}


BATCH = _setting("batch", "B", "sequences (default 1)")
LENGTHS = (
    _setting("tokens", "N", "new tokens of each sequence (default 2,048, or the rows of a shorter position table)")
    | _setting("past", "P", "tokens before them, in the cache (default 0)")
    | _setting("context", "C", "past and present together, in place of --past")
)
SHOWN = (  # beside a text
    _setting("source", "M", "source tokens of an encoder-decoder (default: as many as the target's)")
    | _setting("images", "I", "images (or sounds) of each sequence, where the model has a tower (default 0)")
    | _setting("sounds", "S", "sounds of each sequence, where the model has towers of both (default 0)")
    | _setting("image_tokens", "T", "tokens that one image makes, where images may have any size")
)
LATENT = {"latent": Option("HOW", "latent attention: expanded (default) or absorbed")}
CONVENTION = {"convention": Option("NAME", "what a FLOP is: matmul (default); list explains all")}
DTYPES = {
    "weights": Option("DTYPE", "of the weights: fp32, bf16, fp8, int4, … (default: the config's)"),
    "cache": Option(
        "DTYPE", "of keys, values and convolution states (default: that of the weights, bf16 where it is narrower)"
    ),
    "state": Option("DTYPE", "of recurrent states (default fp32)"),
}
LOGITS = {"logits": Option("WHICH", "positions that get logits: all (default) or last")}
SETTING = BATCH | LENGTHS | SHOWN | LOGITS | LATENT | CONVENTION | DTYPES


def add(parser: Parser, title: str, options: Options) -> None:
    """A group of options, as help shows it."""
    group = parser.add_argument_group(title).add_argument
    for name, option in options.items():
        if option.value:
            group(spelled(name), metavar=option.value, help=option.says)
        else:
            group(spelled(name), action="store_true", default=None, help=option.says)


def spelled(name: str) -> str:
    """The option of an argument."""
    return f"--{name.replace('_', '-')}"


def given(args: Namespace, options: Options) -> dict[str, Any]:
    """The arguments of those options that were given. Raises SettingError."""
    texts = {name: getattr(args, name, None) for name in options}
    return {
        name: options[name].read(text, spelled(name)) if options[name].value else True
        for name, text in texts.items()
        if text is not None
    }


def setting_options(parser: Parser, lengths: bool = True) -> None:
    """The setting that `setting` reads; without lengths where a command goes through them itself."""
    add(parser, "setting", SETTING if lengths else {name: o for name, o in SETTING.items() if name not in LENGTHS})


def setting(args: Namespace) -> dict[str, Any]:
    """The arguments of `count`: what was given, sizes as integers. Raises SettingError."""
    return given(args, SETTING)


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

"""The command: `assay MODEL` is the report; a first word may name another command.

Errors are one line on standard error, nothing on standard output, exit code 2.
"""

from __future__ import annotations

import gc
import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from assay.errors import AssayError, SettingError
from assay.report.table import Style, style_of_stdout
from assay.report.units import parse_size, shorten
from assay.spec import Model

Lines = list[str]
Answer = str | tuple[str, int]  # what to print, and an exit code other than 0

DESCRIPTION = """\
What a transformer is made of and what it costs, exactly, from its config alone.

  assay MODEL              the report: parameters, FLOPs, weight and cache bytes
  assay ops MODEL          every op of every distinct layer, with shapes, FLOPs and bytes
  assay ops attention      one attention alone, as numbers and formulas; no model needed
  assay tensors MODEL      every weight tensor: path, shape, count, how often it occurs
  assay checkpoint PATH    what weight files hold, from their headers alone
  assay models             the presets, with their main sizes
  assay families           the model types that are read, what is exact, and what is refused

`assay COMMAND --help` tells more of a command."""

MODEL = """\
MODEL is one of, tried in this order:
  -                        a config.json on standard input
  a path                   a config.json, a folder holding one, a description (.toml), a .gguf file
  a preset                 `assay models` lists them
  org/name[@revision]      in the local hub cache, then on the hub (the config only)
A folder named like a command is written ./ops.

Sizes may be written 2048, 131,072, 8k = 8,000 (k M G B T: powers of 1000) or 128Ki = 131,072
(Ki Mi Gi: powers of 1024). GB is 10^9 bytes, GiB is 2^30."""

EXAMPLES = """\
examples:
  assay llama-3-8b
  assay config.json --batch 8 --context 128Ki --tokens 1     one decode step of 8 sequences
  assay llama-3-8b --tokens 2k --generate 500                a prefill and 500 cached steps
  assay llama-3-8b --convention list                         what can be counted as a FLOP
  assay llama-3-8b --json | jq .parameters.total
  cat config.json | assay -"""

OPS = """\
Every op of every distinct layer, in order: what it computes in the notation, the shapes of its
inputs, weights and output, parameters, FLOPs, bytes read and written, and FLOPs per byte.

`assay ops attention` costs one attention alone, without a model: scores, scaling, bias, softmax and
output. A size given as a letter stays a symbol (SymPy must be installed). A folder named attention
is written ./attention."""

OPS_EXAMPLES = """\
examples:
  assay ops llama-3-8b --tokens 1 --context 8k
  assay ops config.json --json
  assay ops attention --tokens 5 --qk-width 3 --v-width 3
  assay ops attention --tokens n --qk-width 64 --v-width 64"""

TENSORS_EXAMPLES = """\
examples:
  assay tensors llama-3-8b
  assay tensors config.json --json"""


class Parser(ArgumentParser):
    """One line for a mistake; options in full only."""

    def __init__(self, prog: str, usage: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog,
            usage=usage,
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=_Formatter,
            add_help=False,
        )
        self.add_argument("-h", "--help", action="help", help="show this and exit")

    def error(self, message: str) -> NoReturn:
        """A mistake in the command line, as any other."""
        from assay.report.meant import hint

        said, colon, words = message.partition("unrecognized arguments: ")
        options = (option for action in self._actions for option in action.option_strings)
        meant = hint(words, options, COMMANDS if self.prog == "assay" else ()) if colon and not said else ";"
        raise SettingError(f"{shorten(message, 200)}{meant} see {self.prog} --help")


class _Formatter(RawDescriptionHelpFormatter):
    """Text as written, options in a column of 26."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=100)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code: 0, 1 where a check finds a difference, 2 for what has no answer."""
    if argv is None:
        gc.disable()  # the process is over before collecting would pay
    try:
        made = _answer(list(sys.argv[1:] if argv is None else argv))
        text, code = (made, 0) if isinstance(made, str) else made
        return _write(text) or code
    except AssayError as error:
        return _fail(str(error))
    except RecursionError:
        return _fail("the input is nested too deeply")
    except KeyboardInterrupt:
        return 130


def _answer(words: list[str]) -> Answer:
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    command = COMMANDS.get(words[0]) if words else None
    if command is not None:
        return command(words[1:])
    return report(words)


def _fail(message: str) -> int:
    if sys.stderr is not None:
        print(f"assay: {shorten(' '.join(message.split()), 2000)}", file=sys.stderr)
    return 2


def _write(text: str) -> int:
    """Print an answer. A reader that has gone away is no error."""
    if sys.stdout is None:
        return _fail("standard output is closed")
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")  # a terminal may lack · or ×
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _fail(f"standard output cannot be written: {error.strerror}")
    return 0


def report(words: list[str]) -> Answer:
    """`assay MODEL`: the report."""
    parser = Parser("assay", "assay MODEL [options]", DESCRIPTION, f"{MODEL}\n\n{EXAMPLES}")
    _model_options(parser)
    _setting_options(parser)
    parser.add_argument(
        "--generate", metavar="N", help="N tokens behind the prompt: a prefill and N cached steps, summed exactly"
    )
    parser.add_argument(
        "--check", metavar="PATH", help="weight files: list what the model lacks or has otherwise; exit 1 if anything"
    )
    parser.add_argument("--version", action="version", version=f"assay {version()}", help="show the version and exit")
    args = parser.parse_args(words)
    style = style_of_stdout()
    if args.convention == "list":
        return _list_conventions(style)
    if args.check is None and args.model is not None and _is_weights(args.model):
        return _checkpoint(args.model, args.json)
    model = _load(parser, args)
    if args.check is not None:
        return _check(model, args.check, args.json)

    from assay.readings.count import count
    from assay.readings.published import formulas
    from assay.report import contract
    from assay.report import model as text

    asked = _setting(args)
    if args.generate is None:
        counted, generated = count(model, **asked), None
    else:
        from assay.readings.generate import generate_setting, with_room

        new = parse_size(args.generate, "--generate")
        counted = count(model, **with_room(model, new, asked))
        generated = generate_setting(model, new, counted.setting)
    published, said = formulas(model, counted), text.notes(model, counted, args.weights)
    if args.json:
        return _json(contract.document(version(), model, counted, generated, published, said))
    return _text(text.report(model, counted, generated, published, said, style))


def ops(words: list[str]) -> str:
    """`assay ops MODEL`, or one attention alone."""
    if words[:1] == ["attention"]:
        return attention(words[1:])
    parser = Parser("assay ops", "assay ops MODEL [options]", OPS, f"{MODEL}\n\n{OPS_EXAMPLES}")
    _model_options(parser)
    _setting_options(parser)
    args = parser.parse_args(words)
    style = style_of_stdout()
    if args.convention == "list":
        return _list_conventions(style)
    model = _load(parser, args)

    from assay.readings.count import count
    from assay.readings.ops import list_ops
    from assay.report import ops as text

    counted = count(model, **_setting(args))
    listings = list_ops(model, counted.setting)
    if args.json:
        return _json(text.document(version(), model, counted, listings))
    return _text(text.report(model, counted, listings, style))


def attention(words: list[str]) -> str:
    """`assay ops attention`: one attention alone."""
    usage = "assay ops attention [options]"
    parser = Parser("assay ops attention", usage, OPS.partition("\n\n")[2], OPS_EXAMPLES)
    size = "SIZE or a letter"
    parser.add_argument("--tokens", metavar="N", default="n", help=f"queries and keys: {size}, n if not given")
    parser.add_argument("--qk-width", metavar="K", default="d_k", help=f"width of queries and keys: {size}")
    parser.add_argument("--v-width", metavar="V", default="d_v", help=f"width of values: {size}")
    parser.add_argument("--heads", metavar="H", help=f"that many side by side: {size}; one if not given")
    parser.add_argument("--json", action="store_true", help="one object of JSON")
    args = parser.parse_args(words)

    from assay.report import alone

    given = {"tokens": args.tokens, "qk_width": args.qk_width, "v_width": args.v_width, "heads": args.heads}
    made = alone.read({name: _letter(text, name) for name, text in given.items() if text is not None})
    if args.json:
        return _json(alone.document(version(), made))
    return _text(alone.report(made, style_of_stdout()))


def tensors(words: list[str]) -> str:
    """`assay tensors MODEL`: the ledger."""
    says = "Every weight tensor: path, how often it occurs, shape, elements, part."
    parser = Parser("assay tensors", "assay tensors MODEL [options]", says, f"{MODEL}\n\n{TENSORS_EXAMPLES}")
    _model_options(parser)
    args = parser.parse_args(words)
    model = _load(parser, args)

    from assay.readings.tensors import tensors as ledger
    from assay.report import tensors as text

    entries = ledger(model)
    if args.json:
        return _json(text.document(version(), model, entries))
    return _text(text.report(model, entries, style_of_stdout()))


def models(words: list[str]) -> str:
    """`assay models`: the presets."""
    says = "The presets, with their main sizes; each is a description with its source."
    parser = Parser("assay models", "assay models [WORD ...] [options]", says)
    told = "only those that have each word in their name or family, or are of this kind: decoder, encoder, "
    parser.add_argument("words", metavar="WORD", nargs="*", help=f"{told}encoder-decoder, vision")
    parser.add_argument("--json", action="store_true", help="one object of JSON")
    args = parser.parse_args(words)

    from assay.readings.count import count
    from assay.report import presets as text
    from assay.sources.presets import find, read_preset

    found = [(name, read_preset(name)) for name in find(args.words)]
    listed = [(name, model, count(model, tokens=1)) for name, model in found]
    return _json(text.document(version(), listed)) if args.json else _text(text.report(listed, style_of_stdout()))


def families(words: list[str]) -> str:
    """`assay families`: what is read and what is refused."""
    says = "Every model_type that is read, with what is exact and the tests that say so; and what is refused by name."
    parser = Parser("assay families", "assay families [WORD ...] [options]", says)
    parser.add_argument("words", metavar="WORD", nargs="*", help="only types that have each word in their name")
    parser.add_argument("--json", action="store_true", help="one object of JSON")
    args = parser.parse_args(words)

    from assay.report import families as text
    from assay.sources.support import refused, supported

    def named(model_type: str) -> bool:
        return all(word in model_type for word in args.words)

    read = [one for one in supported() if named(one.model_type)]
    left = [one for one in refused() if named(one.model_type)]
    if not read and not left:
        raise SettingError(f"no model_type has {' and '.join(map(repr, args.words))} in its name")
    if args.json:
        return _json(text.document(version(), read, left))
    return _text(text.report(read, left, style_of_stdout()))


def checkpoint(words: list[str]) -> str:
    """`assay checkpoint PATH`: what weight files hold."""
    says = "What weight files hold, by dtype and by part, from their headers alone: no weight is read."
    parser = Parser("assay checkpoint", "assay checkpoint PATH [options]", says)
    parser.add_argument("path", metavar="PATH", help="a .safetensors or .gguf file, an index, or a folder of them")
    parser.add_argument("--json", action="store_true", help="one object of JSON")
    args = parser.parse_args(words)
    return _checkpoint(args.path, args.json)


def _checkpoint(path: str, as_json: bool) -> str:
    from assay.report import checkpoint as text
    from assay.sources.checkpoints import read_checkpoint
    from assay.sources.checkpoints.parts import totals

    held = read_checkpoint(os.path.expanduser(path))
    found = totals(held)
    if as_json:
        return _json(text.document(version(), held, *found))
    return _text(text.report(held, *found, style_of_stdout()))


def _is_weights(path: str) -> bool:
    """True for weight files without a config: those of safetensors; GGUF's metadata are one."""
    from assay.sources import is_bare_weights

    return is_bare_weights(os.path.expanduser(path))


def _check(model: Model, path: str, as_json: bool) -> Answer:
    from assay.readings.check import check
    from assay.report import checkpoint as text
    from assay.sources.checkpoints import read_checkpoint, speller

    held = read_checkpoint(os.path.expanduser(path))
    found = check(model, {tensor.name: tensor.shape for tensor in held.tensors}, speller(held))
    code = 1 if found.differences else 0
    if as_json:
        return _json(text.check_document(version(), model, held, found)), code
    return _text(text.check_report(model, held, found, style_of_stdout())), code


COMMANDS: dict[str, Callable[[list[str]], str]] = {
    "ops": ops,
    "tensors": tensors,
    "checkpoint": checkpoint,
    "models": models,
    "families": families,
}


def version() -> str:
    """The version of the package."""
    import assay

    return str(assay.__version__)


def _model_options(parser: Parser) -> None:
    parser.add_argument("model", metavar="MODEL", nargs="?", help="what to read; see below")
    parser.add_argument("--json", action="store_true", help="one object of JSON, its keys stable")
    parser.add_argument("--class", dest="cls", metavar="NAME", help="the class to build, where a config fits several")
    parser.add_argument("--mtp", action="store_true", help="with the modules that predict further tokens")
    parser.add_argument(
        "--allow", metavar="KEY", action="append", default=[], help="let an unknown config key pass; may be repeated"
    )


def _setting_options(parser: Parser) -> None:
    add = parser.add_argument_group("setting").add_argument
    add("--batch", metavar="B", help="sequences; 1 if not given")
    add("--tokens", metavar="N", help="tokens processed now; 2,048 if not given, or the position table's rows")
    add("--past", metavar="P", help="tokens before them, in the cache; 0 if not given")
    add("--context", metavar="C", help="past and present together, in place of --past")
    add("--source", metavar="M", help="source tokens of an encoder-decoder; as many as --tokens if not given")
    add(
        "--images", metavar="I", help="images (or sounds) of each sequence, where the model has a tower; 0 if not given"
    )
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


# the settings that are sizes, with the least that each may be
SIZES = {"batch": 1, "tokens": 1, "past": 0, "context": 1, "source": 1, "images": 0, "image_tokens": 1}


def _setting(args: Namespace) -> dict[str, Any]:
    """The arguments of `count`: what was given, sizes as integers. Raises SettingError."""
    given = {name: getattr(args, name) for name in ("logits", "latent", "convention", "weights", "cache", "state")}
    sizes = {name: getattr(args, name) for name in SIZES}
    return given | {
        name: parse_size(t, f"--{name.replace('_', '-')}", SIZES[name]) for name, t in sizes.items() if t is not None
    }


def _letter(text: str, name: str) -> int | str:
    """A size, or the name of a symbol."""
    if text.isascii() and text.isidentifier() and len(text) <= 12:
        return text
    return parse_size(text, f"--{name.replace('_', '-')}")


def _load(parser: Parser, args: Namespace) -> Model:
    if args.model is None:
        parser.error("MODEL is missing: a config.json, a preset, or org/name")
    from assay.sources import load

    return load(args.model, allow=args.allow, cls=args.cls, mtp=args.mtp)


def _list_conventions(style: Style) -> str:
    from assay.report.model import conventions

    return _text(conventions(style))


def _json(document: dict[str, Any]) -> str:
    import json

    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _text(lines: Lines) -> str:
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())

"""The frame of the command line: how a command is declared, its help, how an error is said, and how a
command ends.

    @command("Models", "TABLE --out! --epsilon=1.0 | --seed --force", "fairveil fit t.csv --out m")
    def fit(ask: Ask) -> None: ...

The words are arguments (`TABLE`; `TABLE?` may be left out) and options of `words.WORDS`, else fields
of the estimator (`fields`); `!` marks what must be there, `=` a default, `@other` what means something
beside `--other` alone. Those after `|` are shown by `--help` and not by `-h`. Before a command runs,
the files that it would write are looked at, and the words that a statement would hold.

| exit status | |
|---|---|
| 0 | done |
| 1 | the answer is no: said by the command itself, and nothing else ends so |
| 2 | refused: wrong input, or a file that cannot be read or written |
| 3 | spent, and not written where it was asked (`files.already_charged`) |
| 70 | failed: an error of the library itself, or not enough memory |
| 130 | interrupted by Ctrl-C |
| 141 | whoever read standard output went away |

Guarantees (tests/cli/test_cli_frame.py):
1. An error is two lines, `error:` and `hint:`, in the library's own sentence with the names that the
   caller types; several errors are a line each. A password in an address is not printed.
2. An unexpected error is told by its type and its place in the library's code: its message could hold
   values of rows, and is shown only with FAIRVEIL_DEBUG set.
3. A closed stream, or one that cannot write a letter, ends no command: the letter is escaped.
"""

from __future__ import annotations

import errno
import math
import os
import re
import shutil
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from .. import __version__, _checks
from .._urls import without_password
from ..errors import LONGEST, Complaint, Complaints, FairveilError, InputError, Overspent, nearest
from .fields import METHODS, Field, knobs, parameters
from .words import PANELS, WORDS, Words

REFUSED, ELSEWHERE, FAILED, INTERRUPTED, NOBODY_READS = 2, 3, 70, 130, 141
DEBUG = "FAIRVEIL_DEBUG"
ROOT = Path(__file__).parent.parent
GROUPS = ("Models", "Evidence", "Budget", "Data", "Sharing")
SHORT, TYPED = "fairveil.short", "fairveil.typed"
READ_AS: dict[str, Any] = {"number": float, "whole": int, "path": Path, "text": str, "one": str}
ALIASES = {
    "random_state": "--seed",
    "sensitive_features": "--sensitive",
    "param_distributions": "--grid",
    "roles": "--target, --sensitive, --ignore",
    "X": "TABLE",
    "y": "--target",
    **dict.fromkeys(
        ("constraints", "max_gap", "max_rate", "max_loss", "bound", "positive", "compare"),
        "--constraint",
    ),
}
"""What arguments of the library are called here, where that is not their name with dashes."""


class Ask(SimpleNamespace):
    """What was typed, by the names of options; None where an option was not typed, and of what the
    command has not. `files`: those to write, by their endings."""

    def __getattr__(self, name: str) -> Any:
        return None

    def named(self, names: str) -> dict[str, Any]:
        """What was said of these options, as arguments of the library; what was not is left out."""
        found = {name: getattr(self, name) for name in names.split()}
        if found.get("protects") is not None:
            what, colon, how = str(found["protects"]).partition(":")
            found["protects"] = f"{what.replace('-', '_')}{colon}{how}"
        return {name: value for name, value in found.items() if value not in (None, [])}


def wrong(
    of: str, expected: str, got: object, fix: str, among: Iterable[object] | None = None
) -> InputError:
    """A refusal: what was expected of which option, what came, and the way out."""
    came = "nothing" if got is None else ", ".join(map(str, got)) if isinstance(got, list) else got
    return InputError.expected(expected, of=of, got=came, remedy=fix, quote=False, among=among)


def need(
    ok: object, of: str, expected: str, got: object, fix: str, among: Iterable[object] | None = None
) -> None:
    """Refuse unless `ok`."""
    if not ok:
        raise wrong(of, expected, got, fix, among)


def alone(of: str, other: str, fix: str = "") -> InputError:
    """A refusal of an option that means something beside another one only."""
    fix = fix or f"Pass {other} too, or leave it out."
    return wrong(of, f"{other} beside it", "none", fix)


def require_files(
    paths: Path | Sequence[Path] | None,
    *,
    force: bool,
    endings: Sequence[str] = (),
    of: str = "out",
) -> dict[str, Path]:
    """The files to write by their endings; an error where one may not be written."""
    listed = [] if paths is None else [paths] if isinstance(paths, Path) else list(paths)
    fix = "Name another, or replace it with --force."
    for path in listed:
        known = not endings or path.suffix.lower() in endings
        end = endings[0] if endings else ""
        need(known, of, f"a file ending in {', '.join(endings)}", str(path), f"--out x{end}")
        free = not path.is_dir() and (force or not path.exists())
        need(free, of, "a file that is not there yet", str(path), fix)
        there = path.absolute().parent.is_dir()
        need(there, of, "a folder that is there", str(path), "Make that folder first.")
    found = {path.suffix.lower(): path for path in listed}
    one = not endings or len(found) == len(listed)
    need(one, of, "one file of a kind", [*listed], "Name one of each.")
    return found


def require_words(**named: str) -> None:
    """What a statement will say, checked before there is one: after the fit it would be too late."""
    from ..ledger.lines import MOST_WORDS

    for name, text in named.items():
        fix = f"Say {name} in words, without line breaks."
        right = text.isprintable() and text.strip()
        need(right, name, "some words on one line", text, fix)
        most = f"at most {MOST_WORDS - 100} letters"
        need(len(text) <= MOST_WORDS - 100, name, most, str(len(text)), "Say it shorter.")


# declaring commands


class Kind(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions alone
    """What an option takes, refused in the library's own sentence."""

    def __init__(self, name: str, choices: Sequence[str] = ()) -> None:
        self.name, self.choices = name, tuple(choices)

    def convert(self, value: Any, param: click.Parameter | None, ctx: object) -> Any:
        of = "value" if param is None else str(param.name)
        if self.choices:
            return _checks.one_of(self.choices, **{of: value})
        try:
            return READ_AS[self.name](value)
        except (ValueError, TypeError):
            expected = {"whole": "a whole number"}.get(self.name, f"a {self.name}")
            raise wrong(of, expected, repr(value), f"Pass {of}=1, for example.") from None


def _words(name: str, called: str) -> Words:
    """The row of an option: of this command, of all, or of the estimator's field."""
    found = WORDS.get(f"{called}:{name}") or WORDS.get(name)
    if found is not None:
        return found
    field = parameters("group-objective")[name.replace("-", "_")]
    kinds = {"float": ("NUMBER", "number"), "int": ("N", "whole")}
    takes, kind = kinds.get(field.kind, ("NAME", "text"))
    if field.choices:
        takes, kind = f"WHAT:{'|'.join(field.choices)}", "one"
    panel = "Fairness" if name == "objective" else "Privacy"
    return Words(takes, kind, field.first[:1].lower() + field.first[1:], panel)


class Panelled(click.Command):
    """A command whose help has panels of options, and examples."""

    def __init__(self, name: str, function: Any, group: str, spec: str, examples: Any) -> None:
        usual, _, rarer = spec.partition("|")
        self.group, self.examples, self.called = group, tuple(examples), name
        self.function, self.beside = function, dict[str, str]()
        params = [self._parameter(text) for text in (*usual.split(), *rarer.split())]
        self.usual = {param.name for param in params[: len(usual.split())]}
        eager: Any = {"is_flag": True, "is_eager": True, "expose_value": False}
        short = click.Option(["-h"], hidden=True, callback=_short_help, **eager)
        paragraphs = re.split(r"\n\s*\n", function.__doc__ or "")
        words = "\n\n".join(" ".join(one.split()) for one in paragraphs)
        own: Any = {"params": [*params, short], "help": words, "callback": self._call}
        super().__init__(name.split()[-1], **own)

    def _parameter(self, text: str) -> click.Parameter:
        """One word of a declaration as a parameter of click."""
        found = re.fullmatch(r"(--)?([\w-]+)([!?]?)(?:@([\w-]+))?(?:=(.*))?", text)
        assert found is not None, text
        dashes, name, mark, other, default = found.groups()
        words, option = _words(name, self.called), name.replace("-", "_")
        made = Kind(words.kind.rstrip("s"), words.choices)
        if dashes is None:
            return click.Argument([name.lower()], type=made, required=mark != "?", metavar=name)
        if other is not None:
            self.beside[option] = other
        if words.kind == "flag":
            return click.Option([f"--{name}"], is_flag=True, default=False, help=words.does)
        more: dict[str, Any] = {} if default is None else {"default": default}
        choices = f" ({', '.join(words.choices)})" if words.choices else ""
        return click.Option(
            [*(["-o"] if name == "out" else []), f"--{name}", option],
            type=made,
            metavar=words.metavar,
            help=words.does + choices,
            required=mark == "!",
            multiple=words.kind.endswith("s"),
            show_default=default is not None,
            **more,
        )

    def _call(self, **given: Any) -> None:
        """Check what concerns options alone, and run."""
        ask = Ask(**{name: list(v) if isinstance(v, tuple) else v for name, v in given.items()})
        for name, other in self.beside.items():
            mine, beside = getattr(ask, name), getattr(ask, other.replace("-", "_"))
            if mine not in (None, [], False) and beside in (None, [], False):
                raise alone(name, f"--{other}")
        ask.files = {}
        for name in ("out", "statement"):
            words = _words(name, self.called) if name in given else None
            if words is not None and words.takes == "FILE" and words.does.startswith("write"):
                endings = re.findall(r"(?<=[ (])\.[a-z]+", words.does)
                found = require_files(given[name], force=ask.force, endings=endings, of=name)
                ask.files |= found if name == "out" else {}
        require_words(**ask.named("purpose tuning earlier_releases note"))
        self.function(ask)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[TYPED] = tuple(args)
        if self.called == "fit" and args and args[0].endswith(".toml"):
            ctx.default_map = _of_file(Path(args[0]), self)
            args = args[1:]
        return super().parse_args(ctx, args)

    def rows(self, ctx: click.Context) -> Iterator[tuple[str, str, str]]:
        """(panel, name, words) of each parameter in the help."""
        for param in self.params:
            if SHORT in ctx.meta and param.name not in self.usual:
                continue
            if isinstance(param, click.Argument):
                name, more = str(param.metavar), "" if param.required else " [optional]"
                yield "Arguments", name, f"{_words(name, self.called).does}{more}"
            elif (record := param.get_help_record(ctx)) is not None:
                name = max(param.opts, key=len).removeprefix("--")
                other = self.beside.get(str(param.name))
                said = f"with --{other}: {record[1]}" if other else record[1]
                yield _words(name, self.called).panel, record[0], said

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for panel, name, words in self.rows(ctx):
            panels.setdefault(panel, []).append((name, words))
        method, model = (_typed(ctx, name) for name in ("method", "model"))
        if method in METHODS and self.called == "fit":
            panels[f"Parameters of {method}, by --set NAME=VALUE"] = [
                (f"{one.name}={one.default}", one.first)
                for one in settable(method, model or "linear").values()
            ]
        for head in sorted(panels, key=lambda one: PANELS.index(one) if one in PANELS else 99):
            with formatter.section(head):
                formatter.write_dl(panels[head], col_max=27)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if SHORT in ctx.meta:
            formatter.write(f"\n{ctx.command_path} --help shows all options.\n")
        with formatter.section("Examples"):
            for line in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class Group(click.Group):
    """Commands under headings, or the parts of a command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for head in (*GROUPS, ""):
            found = [one for one in self.commands.values() if getattr(one, "group", "") == head]
            rows = [(one.name or "", re.split(r"[;.,:] |[.]$", one.help or "")[0]) for one in found]
            if rows:
                with formatter.section(head or "Commands"):
                    formatter.write_dl(rows)


def _show_version(ctx: click.Context, _: object, asked: bool) -> None:
    if asked:
        click.echo(f"fairveil {__version__}")
        ctx.exit()


def _short_help(ctx: click.Context, _: object, asked: bool) -> None:
    if asked:
        ctx.meta[SHORT] = True
        click.echo(ctx.get_help())
        ctx.exit()


app = Group(
    "fairveil",
    help="Models that are fair to groups and private to people, with proof of both.",
    params=[
        click.Option(
            ["-V", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version and exit.",
        )
    ],
    no_args_is_help=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": shutil.get_terminal_size().columns,
    },
)


def command(
    group: str, spec: str, *examples: str, name: str | None = None
) -> Callable[[Callable[[Ask], None]], Callable[[Ask], None]]:
    """Make a function a command: of its own name or `name`; where that is two words a part of a
    command."""

    def declare(function: Callable[[Ask], None]) -> Callable[[Ask], None]:
        called = name or function.__name__.replace("_", "-")
        above = app.commands[called.split()[0]] if " " in called else app
        assert isinstance(above, click.Group)
        above.add_command(Panelled(called, function, group, spec, examples))
        return function

    return declare


def parts(name: str, group: str, words: str) -> None:
    """A command that has parts, and does nothing by itself."""
    made = Group(name, help=words, no_args_is_help=True)
    vars(made)["group"] = group
    app.add_command(made)


def _of_file(path: Path, command: click.Command) -> dict[str, Any]:
    """`fit.toml`: options by their names, as defaults of what is typed; `[set]` as a table."""
    from .._reading import read_text
    from ..facts.toml_text import value_text

    remedy = 'Write table = "people.csv", out = "model", epsilon = 1.0 and so on.'
    text = read_text(path, what="a file of options", most=1 << 20, remedy=remedy, error=InputError)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise wrong(str(path), "TOML", str(error), remedy) from None
    known, out = {str(one.name): one for one in command.params}, dict[str, Any]()
    for key, value in found.items():
        name = key.replace("-", "_")
        need(name in known, str(path), "an option of fit", key, remedy, known)
        if isinstance(value, dict):  # [set]
            value = [f"{name}={value_text(one)}" for name, one in value.items()]
        many = getattr(known[name], "multiple", False) and not isinstance(value, list)
        out[name] = [value] if many else value
    return out


def _typed(ctx: click.Context, option: str) -> str | None:
    """What was typed of an option, before it is read."""
    words = ctx.meta.get(TYPED, ())
    for word, after in zip(words, (*words[1:], ""), strict=True):
        if word.startswith(f"--{option}"):
            return str(word.partition("=")[2] or after)
    return None


def settable(method: str, model: str = "additive", *, search: bool = False) -> dict[str, Field]:
    """What `--set` may name: parameters that no option of `fit` stands for, and settings."""
    taken = {str(one.name) for one in app.commands["fit"].params} - {"method"}
    taken -= {"holdout"} if search else set()
    taken |= {"constraints", "random_state", "estimator", "solver"}
    fields = {**parameters(method), **knobs(method, model, search=search)}
    return {name: one for name, one in fields.items() if name not in taken}


# the one place where names become those of the caller's language


def lines(error: BaseException, typed: Sequence[str]) -> list[str]:
    """What standard error gets of an error; `typed`: the words after `fairveil`. A line a complaint;
    hints that repeat are one."""
    called, known = _names(typed)
    helped = " ".join(("fairveil", *called, "--help"))
    said = [[_printable(text) for text in pair] for pair in _said(error, known)]
    out = []
    for at, (what, hint) in enumerate(said):
        out.append(f"error: {what}")
        if at + 1 == len(said) or said[at + 1][1] != hint:
            out.append(f"hint: {hint or helped}")
    return out


def _said(error: BaseException, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each thing that an error is about, and what would do."""
    if isinstance(error, click.ClickException):
        yield _of_click(error, known)
        return
    if isinstance(error, OSError) and not isinstance(error, FairveilError):
        where = "" if error.filename is None else f"{error.filename}: "
        full = "Free space on that disk, or name another place."
        yield f"{where}{error.strerror or error}", full if error.errno == errno.ENOSPC else ""
        return
    edit, text = getattr(error, "edit", ""), error.args[0] if error.args else str(error)
    for part in text.parts if isinstance(text, Complaints) else (text,):
        if not isinstance(part, Complaint):
            yield spoken(str(part), known), edit
            continue
        first, comma, rest = part.of.partition(",")
        came = repr(part.got) if part.quote and part.got is not None else str(part.got or "nothing")
        came = came if len(came) <= LONGEST else f"{came[: LONGEST - 3]}..."
        where, expected = f"{known.get(first, first)}{comma}{rest}", spoken(part.expected, known)
        hint = edit or spoken(part.remedy, known)
        if isinstance(error, Overspent):
            fits = error.largest_epsilon  # rounded down
            fits = math.floor(fits * 1000) / 1000 if fits < 1000 else fits
            hint = "Nothing of this kind fits any more: fairveil ledger show lists what was spent."
            if fits:
                hint = f"The largest epsilon that fits, of all together, is {fits:g}"
                hint = f"{hint}: --epsilon {fits:g}."
        if part.nearest:
            hint = f"Did you mean {' or '.join(map(str, part.nearest))}?"
        yield f"{where}: expected {expected}, got {came}.", hint


def spoken(text: str, known: Mapping[str, str]) -> str:
    """A sentence of the library with options in place of arguments, and nothing else changed.

    >>> spoken("Pass epsilon=1.0, or inf for no privacy.", {"epsilon": "--epsilon"})
    'Pass --epsilon 1.0, or inf for no privacy.'
    >>> spoken("pip install 'fairveil[serve]'", {})
    "pip install 'fairveil[serve]'"
    """

    def option(found: re.Match[str]) -> str:
        name, plain = known.get(found[1], ""), found[2].strip("'\"")
        return f"{name} {plain}" if name.startswith("--") else found[0]

    return re.sub(
        r"""(?<![\w.(-])(?<!--grid )(?<!--set )([a-z_]+)=(?=\S)('[\w:-]+'|"[\w:-]+"|)""",
        option,
        text.replace("float('inf')", "inf"),
    )


def _of_click(error: click.ClickException, known: Mapping[str, str]) -> tuple[str, str]:
    """What the framework says of words that it cannot read; their nearest name."""
    message: str = error.message.rstrip(".")
    near: tuple[str, ...] = ()
    if isinstance(error, click.NoSuchOption):
        near = nearest(error.option_name, known.values())
        message = f"{error.option_name}: there is no such option"
    elif (name := re.match(r"No such command '(.*)'", message)) is not None:
        command = error.ctx.command if isinstance(error, click.UsageError) and error.ctx else app
        near = nearest(name[1], getattr(command, "commands", ()))
        message = f"{name[1]}: there is no such command"
    elif isinstance(error, click.MissingParameter) and error.param is not None:
        where = known.get(str(error.param.name), error.param.name)
        message = f"{where}: expected a value, got nothing"
    return message, f"Did you mean {' or '.join(near)}?" if near else ""


def _names(typed: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The command that was typed, and what its parameters are called here."""
    found: Any = app
    called: list[str] = []
    for word in typed:
        if word not in getattr(found, "commands", ()):
            break
        found = found.commands[word]
        called.append(word)
    names = {}
    for one in found.params:
        option = isinstance(one, click.Option)
        names[str(one.name)] = max(one.opts, key=len) if option else str(one.name).upper()
    known = {of: name for of, name in ALIASES.items() if name.partition(",")[0] in names.values()}
    if "set" in names:
        known |= {
            name: f"--set {name}" for method in METHODS for name in settable(method, search=True)
        }
    return called, {**known, **names}


def _printable(text: str) -> str:
    """On one line, without a password: a terminal obeys some letters."""
    text = without_password(text)
    return "".join(letter if letter.isprintable() else "?" for letter in text)


# ending


class Ended(BaseException):
    """Leaves a command with this status and nothing more said."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def no() -> None:
    """The answer is no."""
    raise Ended(1)


def main(argv: Sequence[str] | None = None) -> None:
    """The console script."""
    raise SystemExit(status_of(sys.argv[1:] if argv is None else argv))


def status_of(typed: Sequence[str]) -> int:
    """Run the command line and say how it ended."""
    _prepare_streams()
    try:
        status = _run(typed)
        sys.stdout.flush()
    except Ended as ended:
        status = ended.status
    except BrokenPipeError:
        status = NOBODY_READS
    except KeyboardInterrupt:
        status = INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as asked:
        status = _say([asked.format_message()], REFUSED)
    except (FairveilError, OSError, click.ClickException) as error:
        status = _say(lines(error, typed), REFUSED)
    except Exception as error:
        memory = isinstance(error, MemoryError)
        what = "not enough memory" if memory else f"internal error: {type(error).__name__}"
        hint = "Take fewer rows or columns, or a machine with more memory."
        if not memory:
            hint = (
                f"Please report it; {DEBUG}=1 shows the traceback, which may hold values of rows."
            )
        status = _say([f"error: {what} ({place_of(error)})", f"hint: {hint}"], FAILED)
        if os.environ.get(DEBUG):
            traceback.print_exc()
    if status:
        _let_go()
    return status


def _run(typed: Sequence[str]) -> int:
    try:
        with app.make_context("fairveil", list(typed)) as context:
            app.invoke(context)
    except click.exceptions.Exit as left:
        return left.exit_code
    return 0


def place_of(error: BaseException) -> str:
    """The innermost line of the library's own code on the way to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if Path(one.filename).is_relative_to(ROOT)]
    own = [one for one in own if one.filename != __file__]
    if not own:
        return "an unknown place"
    return f"{Path(own[-1].filename).relative_to(ROOT.parent).as_posix()}:{own[-1].lineno}"


def _prepare_streams() -> None:
    """Streams that are there, and that write every letter in some way."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        # closed by whoever called: without this the next file that is opened would take its place
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            utf8 = stream.encoding.lower().replace("-", "") == "utf8"
            as_bytes = stream.errors == "surrogateescape" and utf8
            stream.reconfigure(errors=stream.errors if as_bytes else "backslashreplace")


def _say(said: Iterable[str], status: int) -> int:
    with suppress(OSError, ValueError):  # nothing can be done where standard error is gone, too
        print(*said, sep="\n", file=sys.stderr, flush=True)
    return status


def _let_go() -> None:
    """What could not be written is not tried again when the interpreter ends, which would say so in
    its own words."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, sys.stdout.fileno())
            os.close(nothing)

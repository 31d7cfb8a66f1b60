"""Text to lexical tokens: one compiled expression, explicit tables, no folding of look-alike letters.

Full-width signs and digits, typographic operators and decimal digits of other scripts are mapped one to one, so that
positions stay positions in the given text. Every other character outside the tables is a token of its own kind, which
the grammar refuses; control, bidirectional and surrogate characters are refused here.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from veriward.rewards.contracts.v3.limits import LIMITS, Limits
from veriward.rewards.verdict import Reason


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a text has no reading, and where."""

    reason: Reason
    position: int
    """Offset in characters of the given text."""
    detail: str


class Token(NamedTuple):
    kind: str
    """NUM, WORD, NAME, FUNC, TEXT, HAN, AND, OR, …; an operator or bracket is its own kind."""
    text: str
    start: int
    end: int
    gap: int
    """What stood before it: 0 nothing, 1 blanks, 2 a thin blank, 3 a negative one, as in `20,\\!480`."""


NO_GAP, BLANK, THIN, NEGATIVE = range(4)

# ------------------------------------------------------------------------------------------------- tables

_ONE_TO_ONE = str.maketrans(
    {
        **{chr(0xFF01 + offset): chr(0x21 + offset) for offset in range(94)},
        "\u3000": " ",
        "\u00a0": " ",
        "−": "-",
        "–": "-",
        "—": "-",
        "‐": "-",
        "‑": "-",
        "﹣": "-",
        "×": "*",
        "⋅": "*",
        "·": "*",
        "∙": "*",
        "•": "*",
        "∗": "*",
        "✕": "*",
        "÷": "/",
        "⁄": "/",
        "∕": "/",
        "∶": ":",
        "、": ",",
        "。": ".",
        "【": "(",
        "】": ")",
        "〈": "⟨",
        "〉": "⟩",
        "∣": "|",
        "￥": "¥",
        "′": "'",
        "’": "'",
        "‘": "'",
        "ϵ": "ε",
        "ϕ": "φ",
        "ϑ": "θ",
        "º": "°",
        "˚": "°",
    }
)

GREEK = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "epsilon",
    "ζ": "zeta",
    "η": "eta",
    "θ": "theta",
    "ι": "iota",
    "κ": "kappa",
    "λ": "lambda",
    "μ": "mu",
    "µ": "mu",
    "ν": "nu",
    "ξ": "xi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "υ": "upsilon",
    "φ": "phi",
    "χ": "chi",
    "ψ": "psi",
    "ω": "omega",
    "Γ": "Gamma",
    "Δ": "Delta",
    "Θ": "Theta",
    "Λ": "Lambda",
    "Ξ": "Xi",
    "Φ": "Phi",
    "Ψ": "Psi",
    "Ω": "Omega",
}

FUNCTION_WORDS = {
    **{
        name: name
        for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sech", "csch")
    },
    **{name: name for name in ("arcsin", "arccos", "arctan", "arccot", "arcsec", "arccsc")},
    **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"ar{name}": f"arc{name}" for name in ("sinh", "cosh", "tanh")},
    **{name: name for name in ("arcsinh", "arccosh", "arctanh", "ln", "exp", "log", "lg", "gcd", "lcm", "max", "min")},
    **{name: name for name in ("sgn", "det", "arg", "floor", "sqrt", "cbrt", "abs", "binomial", "factorial")},
    "cosec": "csc",
    "tg": "tan",
    "ctg": "cot",
    "arctg": "arctan",
    "arcctg": "arccot",
    "sign": "sgn",
    "ceil": "ceil",
    "ceiling": "ceil",
    "Re": "re",
    "Im": "im",
    "conj": "conjugate",
}
_ONLY_COMMANDS = {"tg", "ctg", "Re", "Im", "arg", "det", "sign", "arctg", "arcctg"}
"""Two letters beside one another are a product, and `sign` a word, unless a backslash says otherwise."""

PLAIN_FUNCTIONS = {word: name for word, name in FUNCTION_WORDS.items() if word not in _ONLY_COMMANDS}

PLAIN_NAMES = {
    "pi": "pi",
    "oo": "infinity",
    "inf": "infinity",
    "infty": "infinity",
    "infinity": "infinity",
    "Infinity": "infinity",
    **{name: name for name in GREEK.values() if name not in ("lambda", "nu", "xi", "mu", "eta", "iota")},
}

_COMMANDS: dict[str, tuple[str, str]] = {
    **{name: ("NAME", name) for name in GREEK.values()},
    "varepsilon": ("NAME", "epsilon"),
    "varphi": ("NAME", "phi"),
    "vartheta": ("NAME", "theta"),
    "varrho": ("NAME", "rho"),
    "varsigma": ("NAME", "sigma"),
    "varpi": ("NAME", "varpi"),
    "ell": ("NAME", "ell"),
    "hbar": ("NAME", "hbar"),
    "pi": ("NAME", "pi"),
    "infty": ("NAME", "infinity"),
    **{word: ("FUNC", name) for word, name in FUNCTION_WORDS.items() if word not in ("abs", "binomial", "factorial")},
    "sqrt": ("SQRT", "sqrt"),
    **dict.fromkeys(("frac", "rac", "dfrac", "tfrac", "cfrac", "nicefrac", "sfrac"), ("FRAC", "frac")),
    **dict.fromkeys(("binom", "dbinom", "tbinom"), ("BINOM", "binom")),
    **dict.fromkeys(("cdot", "times", "ast", "bullet", "cdotp"), ("*", "*")),
    "div": ("/", "/"),
    "pm": ("±", "±"),
    "mp": ("±", "∓"),
    **dict.fromkeys(("le", "leq", "leqslant", "leqq"), ("REL", "<=")),
    **dict.fromkeys(("ge", "geq", "geqslant", "geqq"), ("REL", ">=")),
    "lt": ("REL", "<"),
    "gt": ("REL", ">"),
    **dict.fromkeys(("ne", "neq"), ("REL", "!=")),
    **dict.fromkeys(("approx", "simeq", "doteq", "approxeq"), ("REL", "approx")),
    "equiv": ("REL", "equiv"),
    "in": ("REL", "in"),
    "notin": ("REL", "notin"),
    **dict.fromkeys(("subset", "subseteq"), ("REL", "subset")),
    **dict.fromkeys(("cup", "bigcup", "cupdot", "sqcup"), ("SETOP", "union")),
    **dict.fromkeys(("cap", "bigcap"), ("SETOP", "intersection")),
    **dict.fromkeys(("setminus", "backslash", "smallsetminus"), ("SETOP", "difference")),
    **dict.fromkeys(("emptyset", "varnothing"), ("EMPTY", "empty")),
    "lbrace": ("\\{", "\\{"),
    "rbrace": ("\\}", "\\}"),
    "lbrack": ("[", "["),
    "rbrack": ("]", "]"),
    "lparen": ("(", "("),
    "rparen": (")", ")"),
    "langle": ("⟨", "⟨"),
    "rangle": ("⟩", "⟩"),
    "lfloor": ("⌊", "⌊"),
    "rfloor": ("⌋", "⌋"),
    "lceil": ("⌈", "⌈"),
    "rceil": ("⌉", "⌉"),
    "vert": ("|", "|"),
    "lvert": ("|(", "|"),
    "rvert": ("|)", "|"),
    "mid": ("MID", "|"),
    "colon": (":", ":"),
    **dict.fromkeys(("ldots", "cdots", "dots", "dotsc", "dotsb", "dotsm", "dotsi", "dotso", "vdots"), ("DOTS", "...")),
    **dict.fromkeys(("circ", "degree", "degrees"), ("DEGREE", "°")),
    "prime": ("'", "'"),
    "cr": ("ROW", "\\\\"),
    "sum": ("BIG", "sum"),
    "prod": ("BIG", "prod"),
    "int": ("BIG", "int"),
    "lim": ("BIG", "lim"),
    **dict.fromkeys(("to", "rightarrow", "longrightarrow"), ("TO", "to")),
    **dict.fromkeys(("vec", "overrightarrow"), ("VEC", "vec")),
    **dict.fromkeys(("mathbf", "boldsymbol", "bm", "pmb"), ("VEC", "bold")),
    **dict.fromkeys(("overline", "bar", "widebar"), ("VEC", "bar")),
    **dict.fromkeys(("hat", "widehat"), ("VEC", "hat")),
    **dict.fromkeys(("tilde", "widetilde"), ("VEC", "tilde")),
    **dict.fromkeys(("dot", "ddot"), ("VEC", "dot")),
    **{name: ("VEC", name) for name in ("mathcal", "mathfrak", "mathscr", "mathit")},
    "underline": ("VEC", "under"),
    "mathbb": ("BB", "mathbb"),
    **{name: ("BB", letter) for name, letter in (("R", "R"), ("Z", "Z"), ("N", "N"), ("Q", "Q"), ("reals", "R"))},
    "triangle": ("SHAPE", "triangle"),
    "angle": ("SHAPE", "angle"),
    "measuredangle": ("SHAPE", "angle"),
    "pmod": ("MOD", "pmod"),
    "bmod": ("MOD", "bmod"),
    "mod": ("MOD", "bmod"),
    "choose": ("CHOOSE", "choose"),
    "over": ("OVER", "over"),
    "land": ("AND", "and"),
    "wedge": ("AND", "and"),
    "lor": ("OR", "or"),
    "vee": ("OR", "or"),
    "euro": ("CURRENCY", "€"),
    "pounds": ("CURRENCY", "£"),
    "textdollar": ("CURRENCY", "$"),
}

_SKIPPED = frozenset(
    re.split(
        r"\s+",
        "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm displaystyle textstyle "
        "scriptstyle limits nolimits quad qquad thinspace enspace mathstrut strut hfill bf rm it normalsize large "
        "Large small boxed fbox framebox",
    )
)
"""Commands that change the look and no meaning."""
_RUN_ON = frozenset(("sin", "cos", "tan", "cot", "sec", "csc", "ln", "log"))
_SIZES = frozenset(["left", "right"])

_UNICODE: dict[str, tuple[str, str]] = {
    **{letter: ("NAME", name) for letter, name in GREEK.items()},
    "π": ("NAME", "pi"),
    "∞": ("NAME", "infinity"),
    "√": ("RADICAL", "2"),
    "∛": ("RADICAL", "3"),
    "∜": ("RADICAL", "4"),
    "±": ("±", "±"),
    "∓": ("±", "∓"),
    "≤": ("REL", "<="),
    "≦": ("REL", "<="),
    "⩽": ("REL", "<="),
    "≥": ("REL", ">="),
    "≧": ("REL", ">="),
    "⩾": ("REL", ">="),
    "≠": ("REL", "!="),
    "≈": ("REL", "approx"),
    "≒": ("REL", "approx"),
    "≡": ("REL", "equiv"),
    "∈": ("REL", "in"),
    "∉": ("REL", "notin"),
    "⊂": ("REL", "subset"),
    "⊆": ("REL", "subset"),
    "∪": ("SETOP", "union"),
    "∩": ("SETOP", "intersection"),
    "∖": ("SETOP", "difference"),
    "∅": ("EMPTY", "empty"),
    "ℝ": ("BB", "R"),
    "ℤ": ("BB", "Z"),
    "ℕ": ("BB", "N"),
    "ℚ": ("BB", "Q"),
    "ℂ": ("BB", "C"),
    "⌊": ("⌊", "⌊"),
    "⌋": ("⌋", "⌋"),
    "⌈": ("⌈", "⌈"),
    "⌉": ("⌉", "⌉"),
    "⟨": ("⟨", "⟨"),
    "⟩": ("⟩", "⟩"),
    "…": ("DOTS", "..."),
    "⋯": ("DOTS", "..."),
    "°": ("DEGREE", "°"),
    "∠": ("SHAPE", "angle"),
    "△": ("SHAPE", "triangle"),
    "€": ("CURRENCY", "€"),
    "£": ("CURRENCY", "£"),
    "¥": ("CURRENCY", "¥"),
    "∑": ("BIG", "sum"),
    "∏": ("BIG", "prod"),
    "∫": ("BIG", "int"),
    "→": ("TO", "to"),
    "℃": ("TEXT", "°C"),
    "℉": ("TEXT", "°F"),
    "㎡": ("TEXT", "m^2"),
    "㎝": ("TEXT", "cm"),
    "㎞": ("TEXT", "km"),
    "㎏": ("TEXT", "kg"),
}

SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_VULGAR_VALUES = re.split(" ", "1/2 1/3 2/3 1/4 3/4 1/5 2/5 3/5 4/5 1/6 5/6 1/8 3/8 5/8 7/8 1/7 1/9 1/10")
VULGAR = dict(
    zip(
        "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞⅐⅑⅒",
        _VULGAR_VALUES,
        strict=True,
    )
)

_TEXT_COMMANDS = (
    "text|mbox|textbf|textit|textrm|textnormal|textsf|texttt|mathrm|mathsf|mathtt|hbox|operatorname\\*?|emph"
)

_TOKEN = re.compile(
    rf"""
      (?P<gap>(?:[ \t\r\n~\u2000-\u200a\u202f\u205f]|\\[,;:!>/ \t\n])+)
    | (?P<num>(?:[0-9]+(?:\.[0-9]+|\.(?![.0-9]))?|\.[0-9]+)(?:[eE][-+]?[0-9]+(?![.0-9A-Za-z]))?)
    | (?P<word>[A-Za-z]+)
    | (?P<text>\\(?:{_TEXT_COMMANDS})\s*\{{(?P<content>(?:[^{{}}]|\{{[^{{}}]*\}})*)\}})
    | (?P<begin>\\(?P<edge>begin|end)\s*\{{\s*(?P<environment>[A-Za-z]+)\*?\s*\}}(?:(?<=array\}})\s*\{{[^{{}}]*\}})?)
    | (?P<look>\\(?:(?:text)?color(?:box)?|[hv]space)\*?\s*(?:\[[A-Za-z]*\]\s*)?\{{[^{{}}]*\}})
    | (?P<command>\\[A-Za-z]+)
    | (?P<row>\\\\(?:\s*\[[0-9.]+\s*[a-z]+\])?)
    | (?P<separator>\{{,\}})
    | (?P<operator>\*\*|\\[{{}}%$|&_\#()\[\]]|<=|>=|!=|<>|==|=<|=>|//|<<|>>|:=|\+-|\.\.\.+
        |[-+*/^_()\[\]{{}}<>=,;:|!%&'.$\\])
    | (?P<han>[\u3400-\u4dbf\u4e00-\u9fff\u3007]+)
    | (?P<superscript>[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+)
    | (?P<subscript>[₀-₉]+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_OPERATORS: dict[str, tuple[str, str]] = {
    "**": ("^", "^"),
    "<=": ("REL", "<="),
    ">=": ("REL", ">="),
    "!=": ("REL", "!="),
    "<>": ("REL", "!="),
    "<": ("REL", "<"),
    ">": ("REL", ">"),
    "=": ("REL", "="),
    "==": ("REL", "="),
    "+-": ("±", "+-"),
    "\\%": ("%", "%"),
    "\\$": ("CURRENCY", "$"),
    "$": ("CURRENCY", "$"),
    "\\&": ("AND", "and"),
    **{sign: ("PROGRAM", sign) for sign in ("//", "<<", ">>", ":=", "=<", "=>")},
}

_CONNECTORS = {"and": "AND", "or": "OR", "And": "AND", "Or": "OR", "OR": "OR", "AND": "AND"}
_HAN_CONNECTORS = {"和": "AND", "与": "AND", "及": "AND", "且": "AND", "以及": "AND", "或": "OR", "或者": "OR"}

_FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_INVISIBLE = re.compile("[\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff]")
"""Characters without a look that change nothing: zero-width blanks and joiners, variation selectors, byte-order marks."""
_DOUBLED = re.compile(r"\\\\(?=(?:[A-Za-z]{2,}))")
_SINGLE = re.compile(r"(?<!\\)\\[A-Za-z]")
_PROGRAM_CHARACTERS = frozenset('"`@#')


def normal_characters(text: str) -> str | Refused:
    """The text with typographic signs and digits mapped one to one; refused where a character cannot stand in it."""
    text = text.replace("\x0crac{", "\\rac{")  # `\frac` unescaped once too often
    forbidden = _FORBIDDEN.search(text)
    if forbidden is not None:
        return Refused(Reason.UNSUPPORTED_CHARACTER, forbidden.start(), f"U+{ord(forbidden.group()):04X}")
    if text.isascii():
        return text
    text = text.translate(_ONE_TO_ONE)
    if text.isascii():
        return text
    return "".join(
        str(unicodedata.decimal(character)) if not character.isascii() and character.isdecimal() else character
        for character in text
    )


def visible_characters(text: str) -> str:
    """The text without the characters that nobody sees and that change nothing."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def offset_in(text: str, position: int) -> int:
    """Where the character at a position of the visible characters stands in the text itself."""
    for dropped in _INVISIBLE.finditer(text):
        if dropped.start() > position:
            break
        position += 1
    return position


def tokenize(text: str, limits: Limits = LIMITS) -> tuple[Token, ...] | Refused:
    """The tokens of a text, or why it has none. Total: any string whatsoever."""
    if len(text) > limits.max_answer_characters:
        return Refused(Reason.TEXT_TOO_LONG, limits.max_answer_characters, f"{len(text)} characters")
    characters = normal_characters(visible_characters(text))
    if isinstance(characters, Refused):
        return characters
    tokens = lexed(characters, 0, len(characters), limits)
    return tokens if isinstance(tokens, Refused) else tuple(tokens)


def lexed(text: str, start: int, end: int, limits: Limits) -> list[Token] | Refused:
    """The tokens of text[start:end], whose characters are normal."""
    tokens: list[Token] = []
    append = tokens.append
    gap = NO_GAP
    maximum = limits.max_tokens
    dollars = _math_dollars(text, start, end)
    doubled = "\\\\" in text and _SINGLE.search(text, start, end) is None
    for match in _TOKEN.finditer(text, start, end):
        group = match.lastgroup
        here, there = match.span()
        if group == "gap":
            gap = max(gap, _width(match.group()))
            continue
        if group == "look":
            gap = gap or BLANK
            continue
        spelled = match.group()
        if group == "num":
            append(Token("NUM", spelled, here, there, gap))
        elif group == "operator":
            if spelled == "$" and dollars:
                gap = gap or BLANK
                continue
            if spelled in ("\\(", "\\)", "\\[", "\\]"):
                gap = gap or BLANK
                continue
            if spelled == "'" and (not tokens or gap or tokens[-1].kind not in _PRIMED):
                return Refused(Reason.PROGRAM_SYNTAX, here, "a quotation mark")
            if spelled == "!=" and not gap and tokens:
                if tokens[-1].kind in ("NUM", ")"):  # `5!=120`
                    append(Token("!", "!", here, here + 1, NO_GAP))
                    append(Token("REL", "=", here + 1, there, NO_GAP))
                else:  # `n!=24`: a factorial or an inequality
                    append(Token("COMMAND", spelled, here, there, gap))
                continue
            kind, spelled = _OPERATORS.get(spelled) or (spelled, spelled)
            if kind == "PROGRAM":
                return Refused(Reason.PROGRAM_SYNTAX, here, spelled)
            if kind[:3] == "...":
                kind = "DOTS"
            elif kind == "." and tokens and tokens[-1].kind == "SIZE":
                tokens.pop()
                continue
            append(Token(kind, spelled, here, there, gap))
        elif group == "word":
            kind = _CONNECTORS.get(spelled, "WORD")
            append(Token(kind, spelled, here, there, gap))
        elif group == "command":
            name = spelled[1:]
            known = _COMMANDS.get(name)
            if known is not None:
                append(Token(known[0], known[1], here, there, gap))
            elif name in _SKIPPED:
                if text[there : there + 1] == "." and name in _SIZES:
                    append(Token("SIZE", name, here, there, gap))
                if name not in _SIZES:
                    gap = gap or BLANK
                elif name == "left":
                    gap = NO_GAP
                continue
            elif name[:-1] in _RUN_ON:  # `\\cotx`
                append(Token("FUNC", name[:-1], here, there - 1, gap))
                append(Token("WORD", name[-1], there - 1, there, NO_GAP))
            else:
                append(Token("COMMAND", name, here, there, gap))
        elif group == "text":
            _append_text(append, match, gap)
        elif group == "separator":
            append(Token("{,}", "{,}", here, there, gap))
        elif group == "han":
            _append_han(append, spelled, here, gap)
        elif group == "row":
            if doubled and _DOUBLED.match(text, here):  # `\\frac` of a doubly escaped text
                command = text[here + 2 : there + 40]
                name = command[
                    : len(command) - len(command.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
                ]
                if name in _COMMANDS or name in _SKIPPED or name in _WRAPPERS:
                    return _undoubled(text, start, end, limits)
            if text[here + 2 : here + 3] in ("%", "$"):
                gap = gap or BLANK
                continue
            append(Token("ROW", "\\\\", here, there, gap))
        elif group == "begin":
            append(Token("BEGIN" if match["edge"] == "begin" else "END", match["environment"], here, there, gap))
        elif group == "superscript":
            append(Token("SUP", spelled.translate(SUPERSCRIPTS), here, there, gap))
        elif group == "subscript":
            append(Token("SUB", spelled.translate(SUBSCRIPTS), here, there, gap))
        else:
            known = _UNICODE.get(spelled)
            if known is not None:
                append(Token(known[0], known[1], here, there, gap))
            elif spelled in VULGAR:
                append(Token("VULGAR", VULGAR[spelled], here, there, gap))
            elif spelled in _PROGRAM_CHARACTERS:
                return Refused(Reason.PROGRAM_SYNTAX, here, spelled)
            elif spelled.isalpha() or unicodedata.category(spelled)[0] == "M":
                append(Token("LETTER", spelled, here, there, gap))
            else:
                return Refused(Reason.UNSUPPORTED_CHARACTER, here, f"U+{ord(spelled):04X}")
        gap = NO_GAP
        if len(tokens) > maximum:
            return Refused(Reason.TEXT_TOO_LONG, here, f"more than {maximum} tokens")
    return tokens


_WRAPPERS = frozenset(["text", "mbox", "textbf", "mathrm", "boxed", "begin", "end", "operatorname"])
_PRIMED = frozenset(("WORD", "NAME", ")", "}", "'", "NUM", "]"))


def _undoubled(text: str, start: int, end: int, limits: Limits) -> list[Token] | Refused:
    """The tokens of a text whose backslashes were escaped twice; each pair counts as the second of its two."""
    return lexed(text[:start] + _DOUBLED.sub(r" \\", text[start:end]), start, end, limits)


def _width(blank: str) -> int:
    if "\\!" in blank:
        return NEGATIVE
    return THIN if "\\," in blank or "\u2009" in blank or "\u202f" in blank else BLANK


def _math_dollars(text: str, start: int, end: int) -> bool:
    """The dollar signs are delimiters of mathematics and no currency: in pairs, and not each in front of a digit."""
    count = text.count("$", start, end) - text.count("\\$", start, end)
    if count <= 0 or count % 2:
        return False
    return len(re.findall(r"(?<!\\)\$(?=[0-9])", text[start:end])) != count


_CAPITAL_UNITS = frozenset(("MW", "GW", "GB", "MB", "KB", "TB", "USD", "EUR", "RMB", "CNY", "MJ", "AU", "HP"))
_TEXT_LEAD = re.compile(r"([,;])?\s*(?:(and|or)(?![A-Za-z]))?\s*")
_TEXT_TAIL = re.compile(r"(?:(?<![A-Za-z])(and|or))?\s*\Z")


def _append_text(append, match: re.Match[str], gap: int) -> None:  # type: ignore[no-untyped-def]
    """The words of a text command, with the commas and the 'and' at its ends as tokens of their own."""
    here, there = match.span()
    content = " ".join(
        match["content"].replace("~", " ").replace("\\ ", " ").replace("\\,", " ").replace("$", "").split()
    )
    if (
        match.group().startswith("\\mathrm")
        and content.isupper()
        and 2 <= len(content) <= 3
        and content not in _CAPITAL_UNITS
    ):
        append(Token("WORD", content, here, there, gap))
        return
    if match.group().startswith(("\\mathrm", "\\operatorname")):
        if len(content) == 1 and content in "abcdefijknopqrsuvwxyz":
            append(Token("WORD", content, here, there, gap))
            return
        if content in ("pi", "\\pi"):
            append(Token("NAME", "pi", here, there, gap))
            return
    if content in FUNCTION_WORDS and match.group().startswith(("\\mathrm", "\\operatorname", "\\text")):
        append(Token("FUNC", FUNCTION_WORDS[content], here, there, gap))
        return
    lead = _TEXT_LEAD.match(content)
    assert lead is not None  # noqa: S101  matches the empty text
    if lead[1]:
        append(Token(lead[1], lead[1], here, there, gap))
    if lead[2]:
        append(Token(_CONNECTORS[lead[2]], lead[2], here, there, gap or BLANK))
    content = content[lead.end() :]
    tail = _TEXT_TAIL.search(content)
    word = tail[1] if tail is not None else None
    if tail is not None:
        content = content[: tail.start()].rstrip()
    comma = content[-1:] if content[-1:] in (",", ";") and content[-1:] else ""
    content = content.rstrip(",; ")
    if content:
        if content.isdecimal() and content.isascii():
            append(Token("NUM", content, here, there, gap or BLANK))
        else:
            append(Token("TEXT", content, here, there, gap or BLANK))
    if comma:
        append(Token(comma, comma, here, there, NO_GAP))
    if word:
        append(Token(_CONNECTORS[word], word, here, there, BLANK))


def _append_han(append, run: str, here: int, gap: int) -> None:  # type: ignore[no-untyped-def]
    """A run of Chinese characters, with 和, 或 … at its ends as tokens of their own."""
    start, end = here, here + len(run)
    connector = _HAN_CONNECTORS.get(run)
    if connector is not None:
        append(Token(connector, run, start, end, gap))
        return
    if run[0] in "或" or (run[0] in "和与及且" and len(run) > 1):
        append(Token(_HAN_CONNECTORS[run[0]], run[0], start, start + 1, gap))
        run, start, gap = run[1:], start + 1, NO_GAP
    last = _HAN_CONNECTORS.get(run[-1]) if len(run) > 1 else None
    if last is not None:
        append(Token("HAN", run[:-1], start, end - 1, gap))
        append(Token(last, run[-1], end - 1, end, NO_GAP))
    else:
        append(Token("HAN", run, start, end, gap))


def same_tokens(left: str, right: str) -> bool:
    """The two texts are spelled alike: the same tokens in the same order, whatever the blanks between them."""
    first, second = tokenize(left), tokenize(right)
    if isinstance(first, Refused) or isinstance(second, Refused):
        return left.strip() == right.strip()
    return [token[:2] for token in first] == [token[:2] for token in second]

"""Tokens to a tree: the reader of one answer, its lists, relations and sets. `grammar` says which texts come here."""

from __future__ import annotations

from veriward.rewards.contracts.v3.reading.cursor import (
    STRUCTURES,
    VALUES,
)
from veriward.rewards.contracts.v3.reading.terms import Terms
from veriward.rewards.contracts.v3.reading.unit_words import is_no_name
from veriward.rewards.contracts.v3.tree import (
    Alternatives,
    Apply,
    Dots,
    Listing,
    NamedSet,
    Node,
    Quotient,
    Ratio,
    Relation,
    SetBuilder,
    SetOf,
    SetOperation,
    Symbol,
)
from veriward.rewards.verdict import Reason


class Reader(Terms):
    """One pass over the tokens. Six Python frames a nested level: items, relation, operand, sum, term, factor."""

    __slots__ = ()

    def answer(self) -> Node:
        """The whole token list."""
        kinds = self.kinds
        last = self.count - 1
        if kinds[0] == "{" and not self.gaps[0] and self.closes(0) == last and not {"CHOOSE", "OVER"} & set(kinds):
            kinds[0], kinds[last] = "\\{", "\\}"
        if kinds[0] == "WORD" and self.texts[0] in ("either", "both"):
            self.i = 1
        node = self.listing()
        if kinds[self.i] == "OVER":
            self.i += 1
            node = Quotient(self.scalar(node), self.scalar(self.sum()))
        if kinds[self.i] != "END_OF_TEXT":
            raise self.unexpected()
        return node

    def listing(self) -> Node:
        """Parts without brackets, split first at 'or', then at semicolons, then at commas and 'and'."""
        first = self.relation()
        kind = self.kinds[self.i]
        if kind not in (",", ";", "AND", "OR", "("):
            return first
        groups: list[list[list[Node]]] = [[[first]]]
        flat = False
        count = 1
        while True:
            kind = self.kinds[self.i]
            if kind == "(" and self.is_condition():
                self.i += 1
                groups[-1][-1] += self.items(")")
                self.expect(")")
                continue
            if kind not in (",", ";", "AND", "OR"):
                break
            self.i += 1
            following = self.kinds[self.i]
            if following in ("END_OF_TEXT", "ROW", "END") and kind in (",", ";"):
                break
            if kind in (",", ";") and following in ("AND", "OR"):
                flat = flat or following == "OR"
                kind = following if following == "OR" else kind
                self.i += 1
            count += 1
            if count > self.limits.max_parts:
                raise self.refuse(Reason.TOO_MANY_PARTS, f"more than {self.limits.max_parts} parts")
            item = self.relation()
            if kind == "OR":
                groups.append([[item]])
            elif kind == ";":
                groups[-1].append([item])
            else:
                groups[-1][-1].append(item)
        if len(groups) == 1:
            return self._joined(groups[0])
        if flat:
            return Alternatives(tuple(item for group in groups for part in group for item in part))
        return Alternatives(tuple(self._joined(group) for group in groups))

    def is_condition(self) -> bool:
        """The bracket that opens here holds a relation: `k\\pi (k \\in Z)`."""
        depth = 0
        for kind in self.kinds[self.i :]:
            if kind in ("(", "["):
                depth += 1
            elif kind in (")", "]"):
                depth -= 1
                if not depth:
                    return False
            elif kind == "REL" and depth == 1:
                return True
        return False

    @staticmethod
    def _joined(parts: list[list[Node]]) -> Node:
        if len(parts) > 1 and any(len(part) > 1 for part in parts):
            return Listing(tuple(part[0] if len(part) == 1 else Listing(tuple(part)) for part in parts))
        items = tuple(item for part in parts for item in part)
        return items[0] if len(items) == 1 else Listing(items)

    def items(self, closer: str) -> tuple[Node, ...]:
        """Comma-separated parts up to a closing bracket, which stays."""
        kinds = self.kinds
        if kinds[self.i] == closer:
            return ()
        found = [self.relation()]
        separator = None
        while kinds[self.i] in (",", ";", "AND"):
            kind = kinds[self.i]
            if kind != "AND":
                if separator not in (None, kind):
                    raise self.refuse(Reason.UNSUPPORTED_NOTATION, "commas and semicolons in one bracket")
                separator = kind
            self.i += 1
            if kind != "AND" and kinds[self.i] == "AND":
                self.i += 1
            if len(found) >= self.limits.max_parts:
                raise self.refuse(Reason.TOO_MANY_PARTS, f"more than {self.limits.max_parts} parts")
            found.append(self.relation())
        return tuple(found)

    def relation(self) -> Node:
        """One part: values, sets or ratios, joined by relation signs."""
        kinds = self.kinds
        if kinds[self.i] == "DOTS" and kinds[self.i + 1] in (
            ",",
            ";",
            "AND",
            "OR",
            ")",
            "]",
            "\\}",
            "}",
            "END_OF_TEXT",
        ):
            self.i += 1
            return Dots()
        left = (self.call_head() if self.depth < 2 else None) or self.operand()
        kind = kinds[self.i]
        if kind != "REL":
            if kind == "SETOP" or (kind == "-" and isinstance(left, STRUCTURES)):
                left = self.set_operation(left)
                kind = kinds[self.i]
            elif kind == ":" and not self.set_bar:
                left = self.ratio(left)
                kind = kinds[self.i]
            if kind == "MOD" and isinstance(left, VALUES):
                if self.texts[self.i] == "pmod":
                    raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a remainder class without its left side")
                return self._modulo(left)
            if kind != "REL":
                return left
        return self.chained(left)

    def chained(self, left: Node) -> Node:
        """The relation that goes on from a value, or from a relation, with the sign at the current place."""
        kinds = self.kinds
        operands, operators = [left], list[str]()
        if isinstance(left, Relation):
            operands, operators = list(left.operands), list(left.operators)
        elif isinstance(left, Listing):
            raise self.unexpected()
        elif isinstance(left, Symbol) and is_no_name(left.name):
            raise self.refuse(Reason.UNSUPPORTED_NAME, f"the words {left.name}")
        while kinds[self.i] == "REL":
            operators.append(self.texts[self.i])
            self.i += 1
            if len(operators) > self.limits.max_parts:
                raise self.refuse(Reason.TOO_MANY_PARTS, f"more than {self.limits.max_parts} signs of relation")
            right = self.operand()
            if kinds[self.i] == "SETOP" or (kinds[self.i] == "-" and isinstance(right, STRUCTURES)):
                right = self.set_operation(right)
            elif kinds[self.i] == ":" and not self.set_bar:
                right = self.ratio(right)
            elif kinds[self.i] == "MOD" and isinstance(right, VALUES):
                if self.texts[self.i] == "pmod" and "equiv" not in operators:
                    raise self.refuse(Reason.AMBIGUOUS_NOTATION, "an equation or a congruence")
                right = self._modulo(right)
            if operators[-1] in ("in", "notin", "subset"):
                right = self._as_set(right)
            operands.append(right)
        return Relation(tuple(operands), tuple(operators))

    def _as_set(self, node: Node) -> Node:
        """What a value is a member of; `k \\in Z` means the integers."""
        if isinstance(node, Symbol):
            name = node.name.removeprefix("vec ")
            return NamedSet(name) if name in ("N", "Z", "Q", "R", "C") else node
        if isinstance(node, VALUES):
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "member of what is no set")
        return node

    def _modulo(self, left: Node) -> Node:
        bracketed = self.texts[self.i] == "pmod"
        self.i += 1
        right = self.argument() if bracketed or self.kinds[self.i] == "{" else self.sum()
        return Apply("mod", (left, self.scalar(right)))

    def set_operation(self, left: Node) -> Node:
        """Unions, intersections and differences, from left to right."""
        rounds = 0
        while self.kinds[self.i] in ("SETOP", "-"):
            operator = "difference" if self.kinds[self.i] == "-" else self.texts[self.i]
            at = self.i
            self.i += 1
            right = self.operand()
            if not isinstance(left, (*STRUCTURES, Symbol)) or not isinstance(right, (*STRUCTURES, Symbol)):
                raise self.refuse(Reason.CONTAINER_OPERATION, "a set operation on what is no set", at)
            if self.kinds[at] == "-" and not isinstance(right, SetOf | SetOperation | SetBuilder | NamedSet):
                raise self.refuse(Reason.CONTAINER_OPERATION, "arithmetic on what is no single value", at)
            if isinstance(left, SetOperation) and left.operator == operator:
                left = SetOperation(left.operator, (*left.items, right))
            else:
                rounds += 1
                if rounds > 8:
                    raise self.refuse(Reason.NESTED_TOO_DEEP, "mixed set operations")
                left = SetOperation(operator, (left, right))  # type: ignore[arg-type]
            if len(left.items) > self.limits.max_parts:
                raise self.refuse(Reason.TOO_MANY_PARTS, f"more than {self.limits.max_parts} sets")
        return left

    def ratio(self, first: Node) -> Node:
        parts = [self.scalar(first)]
        if self.depth:
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a colon inside brackets")
        while self.kinds[self.i] == ":":
            self.i += 1
            parts.append(self.scalar(self.operand()))
            if len(parts) > self.limits.max_parts:
                raise self.refuse(Reason.TOO_MANY_PARTS, f"more than {self.limits.max_parts} parts")
        return Ratio(tuple(parts))


Reader.FORMS = {
    "(": Reader.bracket,
    "[": Reader.bracket,
    "{": Reader.braced,
    "\\{": Reader.set_braces,
    "⟨": Reader.angle_bracket,
    "|": Reader.absolute,
    "|(": Reader.absolute,
    "MID": Reader.absolute,
    "⌊": Reader.rounded,
    "⌈": Reader.rounded,
    "FRAC": Reader.fraction,
    "BINOM": Reader.binomial,
    "SQRT": Reader.root,
    "RADICAL": Reader.radical,
    "FUNC": Reader.function,
    "VEC": Reader.named,
    "SHAPE": Reader.shape,
    "BB": Reader.blackboard,
    "EMPTY": Reader.empty_set,
    "VULGAR": Reader.vulgar,
    "HAN": Reader.han,
    "DOTS": Reader.dots,
    "TEXT": Reader.text,
    "BIG": Reader.big,
    "BEGIN": Reader.environment,
    "LETTER": Reader.letter,
}

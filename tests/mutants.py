"""Mutants: wrong solutions that rules make from the right solution of a lesson.

A rule takes one node of a hole's syntax tree and gives changed nodes. Each mutant is the text of
the hole's file with one changed node. The helpers below stand at the end of that text.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import unwrap
from operator import attrgetter
from random import Random

from glassformer.tools.learn.edits import file_of, solution_of, text_of
from glassformer.tools.learn.lesson import Lesson
from glassformer.tools.learn.source import definition

HELPERS = """
_kept, _acted = {}, []
def _cached(owner, place, make, *arguments):
    shapes = tuple(getattr(each, "shape", None) for each in arguments)
    kept = vars(owner).setdefault("_kept", {}) if hasattr(owner, "training") else _kept
    return kept.setdefault((place, shapes), make())
def _each(change, value):
    import torch
    if isinstance(value, tuple):
        return tuple(_each(change, item) for item in value)
    if not isinstance(value, torch.Tensor):
        return value
    changed = change(value)
    if changed.requires_grad != value.requires_grad or not changed.equal(value):
        _acted.append(1)
    return changed
def _detached(value):
    return _each(lambda x: x.detach(), value)
def _single(value):
    return _each(lambda x: x.float().to(x.dtype) if x.is_floating_point() else x, value)
def _first(value):
    return _each(lambda x: x[:1].expand_as(x) if x.dim() > 1 else x, value)
"""
OPERATORS = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt},
    **{ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
}
IN_PLACE = {"masked_fill", "clamp", "square", "sqrt", "add", "mul", "exp", "tril", "softmax"}
STATE = ("torch.set_default_dtype(torch.float32)", "torch.set_grad_enabled(True)")
STATE += ("torch.manual_seed(0)", "torch.set_grad_enabled(False)")


@dataclass(frozen=True)
class Mutant:
    """A changed hole; ``name`` says what became what."""

    lesson: Lesson
    hole: str
    name: str
    place: int
    new: object

    def solution(self):
        file = file_of(self.lesson.holes[self.hole])
        return solution_of(self.lesson, {file: self.text()})

    def text(self) -> str:
        tree = ast.parse(text_of(file_of(self.lesson.holes[self.hole])))
        function = _function(tree, self.hole)
        _replace(function, list(ast.walk(function))[self.place], self.new)
        return ast.unparse(ast.fix_missing_locations(tree)) + HELPERS

    def acts(self, solution) -> bool:
        """Whether a helper has changed a value; a mutant without a helper always acts."""
        helped = any(f"_{each}(" in self.name for each in ("detached", "single", "first"))
        function = attrgetter(self.hole)(solution)
        return not helped or bool(unwrap(function).__globals__["_acted"])


def mutants(lesson: Lesson, count: int = 0) -> list[Mutant]:
    """``count`` mutants of a lesson, or all, drawn by a fixed seed from each rule in turn."""
    every = [each for hole in lesson.holes for each in _of_hole(lesson, hole)]
    by_rule: dict[str, list[Mutant]] = {}
    for mutant in {each.name: each for each in every}.values():
        by_rule.setdefault(mutant.name.split(":")[1], []).append(mutant)
    for group in by_rule.values():
        Random(lesson.name).shuffle(group)
    drawn, groups = [], list(by_rule.values())
    while any(groups):
        drawn += [group.pop() for group in groups if group]
    return drawn[: count or None]


def _of_hole(lesson: Lesson, hole: str) -> Iterator[Mutant]:
    function = _function(ast.parse(text_of(file_of(lesson.holes[hole]))), hole)
    own = {x.arg for x in ast.walk(definition(lesson.template, hole)) if isinstance(x, ast.arg)}
    for place, node in enumerate(ast.walk(function)):
        for rule, new in _changes(node, function, own) if place else ():
            yield Mutant(
                lesson, hole, f"{hole}: {rule}: {_shown(node)} -> {_shown(new)}", place, new
            )


def _shown(node) -> str:
    return " ".join(ast.unparse(node).split())


def _function(tree, hole: str):
    node = tree
    for word in hole.split("."):
        node = next(x for x in node.body if getattr(x, "name", None) == word)
    node.body = [plain for each in node.body for plain in _without_checks(each)]
    node.returns, node.args = None, _untyped(node.args)
    return node


def _without_checks(statement) -> list:
    """A statement of a hole without docstrings and checks, which no lesson asks for."""
    text = _shown(statement)
    if isinstance(statement, ast.If) and any(isinstance(x, ast.Raise) for x in statement.body):
        return []
    if isinstance(statement, ast.Try):
        return statement.body
    if isinstance(statement, ast.If):
        statement.orelse = [x for each in statement.orelse for x in _without_checks(each)]
        statement.body = [x for each in statement.body for x in _without_checks(each)]
        return [statement] if statement.body else statement.orelse
    if isinstance(statement, ast.For):
        statement.body = [x for each in statement.body for x in _without_checks(each)]
        return [statement] * bool(statement.body)
    plain = not text.startswith(("check_", "_check", "raise ", "'", '"'))
    return [statement] if plain else []


def _untyped(arguments):
    for each in (*arguments.args, *arguments.kwonlyargs):
        each.annotation = None
    return arguments


def _replace(root, old, new) -> None:
    """Put a node, or statements, in the place of a node."""
    for parent in ast.walk(root):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
            elif isinstance(value, list) and any(each is old for each in value):
                at = next(place for place, each in enumerate(value) if each is old)
                value[at : at + 1] = new if isinstance(new, list) else [new]


def _expression(text: str):
    return ast.parse(text, mode="eval").body


def _changes(node, function, own: set[str]) -> Iterator[tuple[str, object]]:
    """The changes of one node, each with the name of its rule."""
    names = [each.arg for each in (*function.args.args, *function.args.kwonlyargs)]
    inputs = [each for each in names if each != "self" and each in own]
    owner = "self" if "self" in names else "None"
    here = f"{getattr(node, 'lineno', 0)}, {getattr(node, 'col_offset', 0)}"
    if isinstance(node, ast.Call):
        for at in range(len(node.args)):
            if len(node.args) + len(node.keywords) > 1:
                yield "an argument dropped", _without(node, "args", at)
        for at in range(len(node.keywords)):
            yield "an argument dropped", _without(node, "keywords", at)
        for at in range(len(node.args) - 1):
            new = copy.deepcopy(node)
            new.args[at], new.args[at + 1] = new.args[at + 1], new.args[at]
            yield "arguments exchanged", new
        if isinstance(node.func, ast.Attribute) and not _is_module(node.func.value):
            yield "a call dropped", copy.deepcopy(node.func.value)
        if len(node.args) == 1:
            yield "a call dropped", copy.deepcopy(node.args[0])
        inside = ", ".join(x for x in inputs if x in _shown(node))
        cached = f"_cached({owner}, ({here}), lambda: {_shown(node)}, {inside})"
        yield "a call cached", _expression(cached)
        if isinstance(node.func, ast.Attribute) and node.func.attr in IN_PLACE:
            new = copy.deepcopy(node)
            new.func.attr += "_"
            yield "in place", new
    if isinstance(node, ast.Name) and node.id in inputs and isinstance(node.ctx, ast.Load):
        for other in inputs:
            if other != node.id:
                yield "a name exchanged", ast.Name(other, ast.Load())
        yield "the first sentence for all", _expression(f"_first({node.id})")
        yield "detached", _expression(f"_detached({node.id})")
    if isinstance(node, ast.Constant):
        yield from _constants(node.value)
    if isinstance(node, ast.UnaryOp):
        yield "an operator dropped", copy.deepcopy(node.operand)
    if isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp):
        yield from _operators(node)
    if isinstance(node, ast.IfExp | ast.If | ast.While):
        new = copy.deepcopy(node)
        new.test = _expression(f"not ({_shown(node.test)})")
        yield "a condition inverted", new
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Return) and node.value:
        yield from _values(node, owner)
    if isinstance(node, ast.Expr | ast.AugAssign | ast.If | ast.Assign):
        yield "a statement dropped", ast.Pass()
    if node in function.body and node is function.body[0]:
        for name, default in _defaults(function):
            if name not in own:
                continue
            line = ast.parse(f"{name} = {default}").body
            yield "an argument ignored", [*line, copy.deepcopy(node)]


def _values(node, owner: str) -> Iterator[tuple[str, object]]:
    """The changes of a value that is assigned or returned."""
    for rule, helper in (
        ("detached", "_detached({})"),
        ("float32 inside", "_single({})"),
    ):
        new = copy.deepcopy(node)
        new.value = _expression(helper.format(_shown(node.value)))
        yield rule, new
    state = STATE[node.lineno % len(STATE)]
    yield "global state", [*ast.parse(f"import torch\n{state}").body, copy.deepcopy(node)]
    if owner == "self":
        text = "self.train()\nself.eval()" if node.lineno % 2 else "self.train()"
        yield "global state", [*ast.parse(text).body, copy.deepcopy(node)]


def _constants(value) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(value, bool):
        yield "a constant changed", ast.Constant(not value)
    elif isinstance(value, int | float):
        for other in {value + 1, value - 1, 2 * value, -value} - {value}:
            yield "a constant changed", _expression(str(other))


def _operators(node) -> Iterator[tuple[str, ast.expr]]:
    new = copy.deepcopy(node)
    if isinstance(node, ast.Compare):
        operator = type(node.ops[0])
        if operator in OPERATORS:
            new.ops[0] = OPERATORS[operator]()
            yield "another operator", new
        return
    if type(node.op) in OPERATORS:
        new.op = OPERATORS[type(node.op)]()
        yield "another operator", new
    if isinstance(node, ast.BinOp):
        yield "a term dropped", copy.deepcopy(node.left)
        yield "a term dropped", copy.deepcopy(node.right)
        if isinstance(node.op, ast.Add) and isinstance(node.left, ast.Name):
            added = f"{node.left.id}.add_({_shown(node.right)})"
            yield "in place", _expression(added)
    else:
        yield "a term dropped", copy.deepcopy(node.values[0])
        yield "a term dropped", copy.deepcopy(node.values[1])


def _defaults(function) -> Iterator[tuple[str, str]]:
    """The parameters that have a default, each with the default's text."""
    arguments = function.args
    last = arguments.args[len(arguments.args) - len(arguments.defaults) :]
    pairs = [*zip(last, arguments.defaults, strict=True)]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    for argument, default in pairs:
        if default is not None:
            yield argument.arg, _shown(default)


def _without(node, field: str, at: int):
    new = copy.deepcopy(node)
    del getattr(new, field)[at]
    return new


def _is_module(node) -> bool:
    return isinstance(node, ast.Name) and node.id in ("torch", "F", "math", "masks", "nn", "self")

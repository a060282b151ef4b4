"""Imports go one way, and the core knows no tool.

    tools | glassformer                             (what uses the core; the public names)
    translator, training
    trial                                           (of own parts)
    parts                                           (chooses the forms, training's among them)
    alignment                                       (word alignment, which training stores)
    text_engine
    decoding, evaluation, significance, bundle
    model | data                                    (do not know each other)
    config
    support

No files import each other in a circle, and only the files in ``CHOOSERS`` know a fast twin.
Imports inside functions count as well. ``translator.py`` has one door to the tools, a table of
engines by name, which imports nothing until an engine is asked for.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.tables import every

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = SOURCE / "glassformer"

LAYERS = (
    {"support"},
    {"config"},
    {"model", "data"},
    {"decoding", "evaluation", "significance", "bundle"},
    {"text_engine"},
    {"alignment"},
    {"parts"},
    {"trial"},
    {"translator", "training"},
    {"tools", "glassformer", "__main__"},
)
# The only imports to the side or upwards.
DOORS = {
    ("significance", "evaluation"),
    ("parts", "training"),  # the forms of the loss, the optimiser and the schedule
    ("glassformer", "tools"),  # the public names
    ("tools", "glassformer"),  # the learner's files use them
    ("__main__", "tools"),
}
# The searches work on any step function: they know no model and no data.
STRANGERS = {("decoding", "model"), ("decoding", "data")}

# The fast twins, and for each the only files outside the folders `fast` that know it: `parts`
# chooses. The exports ask, as a twin does, whether a model is the package's own.
CHOOSERS = {
    "decoding.fast.beam": {"parts"},
    "decoding.fast.greedy": {"parts"},
    "decoding.fast.top_k": {"parts", "decoding.fast.beam", "decoding.fast.greedy"},
    "model.fast.decoder": {"parts"},
    "model.fast.dropout": {"parts"},
    "model.fast.stock": {"tools.interchange.stock"},
    "training.fast.loss": {"parts"},
    "training.fast.mixed_precision": {"parts"},
    "training.fast.muon": {"parts"},
    "training.fast.packed": {"parts"},
}

# The files that the two tables of docs/reading.md name: a reader never has to leave them.
CORE = {
    ".": "bundle parts text_engine translator",
    "data": "batches corpus normaliser preprocessing token_store tokenizer",
    "decoding": "batched beam engine greedy",
    "model": "attention blocks cache decoder embeddings encoder forms masks positions transformer",
    "tools/cli": "main translate",
    "training": "loop loss optimiser schedule train",
}
# The lines that stood when the last issue landed, docstrings and blank lines counted. ROOM above
# them is for people from outside; a new number is a commit that says what the lines buy.
BUDGET = {"src, Python": 41888, "core": 6036, "pages": 7710}
ROOM = 1.03
# The files that read other files than by the door, `strangers`: none of them is a stranger's.
READERS = {
    "__init__": "the package's own table of names",
    "data/file_formats": "lines of texts, which data/lines bounds",
    "data/lines": "texts, by a door of their own",
    "data/token_store": "ids that this program has packed, with their hashes",
    "support/cores": "the kernel's files on this process",
    "support/other_names": "the package's own table of names",
    "tools/cli/backtranslate": "its own unfinished output",
    "tools/learn/edits": "the package's own files",
    "tools/learn/lesson": "the package's own files",
    "tools/learn/measured": "the package's own files",
    "tools/learn/worker": "what the process that judges asks for",
    "training/parallel/ranks": "messages between ranks",
    "training/reporting": "metrics that the run itself has written",
    "training/setup/kept_pairs": "pairs that the run itself has written",
    "tools/web/look/single_file": "the package's own files",
    "tools/web/look/stored": "a trace that this process has made",
    "tools/web/request_body": "bodies of requests, by a door of their own",
}
READING = re.compile(
    r".*\.(read_bytes|read_text|memmap|fromfile)|(.*\.)?(safe_open|load_file|ZipFile|GzipFile)"
    r"|(?!os|Packed)(.*\.)?open"  # os.open flushes, and Packed is this program's own
    r"|(json|yaml|torch|np|pickle)\.\w*load\w*"
)
WRITING = re.compile(r"[wax]\+?b?\+?")
OPENING = re.compile(r"(.*\.)?(open|fdopen|ZipFile)")
CHANGING = re.compile(
    r".*\.(write_text|write_bytes|savefig|truncate|copyfile|copytree|move)|(.*\.)?save_file"
    r"|specification\.save"
)
# The files that write other files than by the doors of `support/files`, and why no kill hurts.
# tests/support/test_kills.py kills doors, log, partial result and lock before each call.
_WITHIN = "within a new directory, or a temporary one"
WRITERS = {
    "data/token_store": _WITHIN,
    "support/hashes": _WITHIN,
    "support/strangers": _WITHIN,
    "support/tensors": "the file that a door has opened",
    "tools/cli/backtranslate": "a partial result, whose cut last line is dropped",
    "tools/documents/files/docx": "a document in memory",
    "tools/inspection/plots/canvas": "a picture in memory",
    "tools/interchange/argos/export": "the file that a door has opened",
    "tools/interchange/ctranslate2/export": _WITHIN,
    "tools/interchange/hugging_face/export": _WITHIN,
    "tools/learn/examine": _WITHIN,
    "tools/learn/worker": _WITHIN,
    "training/checkpoint": _WITHIN,
    "training/reporting": "a log, whose cut last line is dropped",
    "training/setup/run_directory": "the lock, whose content only a message shows",
}
# Parameters of type Any: their number outside of learn. Each hides a type from the reader.
ANY_BUDGET = 43
MOST_PARAMETERS = 6  # a record behind ``**`` counts as one
# The one longer list: step, state, rules, then the search's own three numbers and its observer.
LONGER = {"decoding/beam.py:beam_search"}


def part_of(module: str) -> str:
    """The part that a module belongs to: ``glassformer.model.masks`` to ``model``."""
    return [*module.split("."), ""][1] or "glassformer"


def may_import(importer: str, imported: str) -> bool:
    """Whether one part may know another."""
    height = {part: index for index, parts in enumerate(LAYERS) for part in parts}
    if importer == imported or (importer, imported) in DOORS:
        return True
    if imported not in height or importer not in height:
        return False
    return height[imported] < height[importer] and (importer, imported) not in STRANGERS


@cache
def imports_of(path: Path, source: Path) -> list[tuple[int, str]]:
    """Line and full name of everything of this program that a file imports."""
    package = list(path.relative_to(source).parent.parts)
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *filter(None, [node.module])])
            # What is imported may be a module of its own: `from glassformer import model`.
            names = [
                name if is_module(name, source) else origin
                for name in (f"{origin}.{alias.name}" for alias in node.names)
            ]
        else:
            continue
        found += [(node.lineno, name) for name in names if name.split(".")[0] == "glassformer"]
    return found


def is_module(name: str, source: Path) -> bool:
    path = source.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def offences(source: Path) -> list[str]:
    """``file:line`` of every import that goes the wrong way."""
    found = []
    for path in sorted(source.rglob("*.py")):
        relative = path.relative_to(source)
        importer = part_of(".".join(relative.with_suffix("").parts).removesuffix(".__init__"))
        for line, name in imports_of(path, source):
            if not may_import(importer, part_of(name)):
                found.append(f"{relative}:{line}: {importer} may not import {name}")
    return found


def test_imports_go_one_way():
    found = offences(SOURCE)

    assert not found, "\n" + "\n".join(found)


def test_every_part_has_its_layer():
    parts = {path.stem for path in (SOURCE / "glassformer").glob("*.py")} - {"__init__"}
    parts |= {path.parent.name for path in (SOURCE / "glassformer").glob("*/__init__.py")}

    unknown = parts - set.union(*LAYERS)
    assert not unknown, f"give these parts a layer: {sorted(unknown)}"


def name_of(path: Path) -> str:
    """A file's module name: ``glassformer/model/masks.py`` to ``glassformer.model.masks``."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imported_files(source: Path) -> dict[str, set[str]]:
    """For each module, the modules of this program that it imports."""
    paths = {name_of(path.relative_to(source)): path for path in sorted(source.rglob("*.py"))}
    imports = {
        module: {name for _, name in imports_of(path, source)} for module, path in paths.items()
    }
    return {module: names - {module} for module, names in imports.items()}


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, over however many steps."""
    reach = {module: set(others) for module, others in imports.items()}
    for through in reach:
        for others in reach.values():
            if through in others:
                others |= reach[through]
    groups = {
        tuple(sorted(other for other in others if module in reach.get(other, ())))
        for module, others in reach.items()
        if module in others
    }
    return [list(group) for group in sorted(groups)]


def test_no_files_import_each_other_in_a_circle():
    found = circles(imported_files(SOURCE))

    assert not found, "\n" + "\n".join(map(" <-> ".join, found))


def test_a_circle_is_found():
    imports = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set(), "e": {"f"}, "f": {"e", "a"}}

    assert circles(imports) == [["a", "b", "c"], ["e", "f"]]


def test_fast_twins_are_known_only_where_they_are_chosen():
    imports = imported_files(SOURCE)
    found = [
        f"{module} knows {name}"
        for module, names in imports.items()
        for name in names
        if ".fast." in name + "."
        and ".fast." not in module + "."
        and short(module) not in CHOOSERS.get(short(name), ())
    ]

    assert not found, "choose a twin in one file, named in CHOOSERS:\n" + "\n".join(found)
    known = {(short(name), short(module)) for module, names in imports.items() for name in names}
    gone = {(twin, user) for twin, users in CHOOSERS.items() for user in users} - known
    assert not gone, f"no longer so: {gone}"


def short(module: str) -> str:
    return module.removeprefix("glassformer.")


@pytest.mark.parametrize(
    ("file", "statement", "offends"),
    [
        ("model/masks.py", "from glassformer.data.corpus import Pair", True),
        ("model/masks.py", "from glassformer.parts import FAST", True),
        ("model/masks.py", "from ..bundle import Bundle", True),
        ("model/masks.py", "from .attention import attention", False),
        ("model/masks.py", "def f():\n    from glassformer.translator import Translator", True),
        ("data/batches.py", "import glassformer.model", True),
        ("data/batches.py", "from glassformer.config import ModelConfig", False),
        ("data/batches.py", "from glassformer.tools.doctor.examine import examine", True),
        ("config.py", "from glassformer.support.errors import InputError", False),
        ("support/errors.py", "from glassformer import config", True),
        ("support/errors.py", "from .. import config", True),
        ("decoding/beam.py", "from glassformer.model import transformer", True),
        ("decoding/beam.py", "from glassformer.training.loss import loss", True),
        ("decoding/engine.py", "from glassformer.parts import FAST", True),
        ("bundle.py", "from glassformer import Transformer", True),
        ("text_engine.py", "from glassformer.parts import FAST", True),
        ("parts.py", "from glassformer.training.loss import batch_losses", False),
        ("parts.py", "from glassformer.translator import Translator", True),
        ("training/loop.py", "from glassformer.decoding.beam import beam_search", False),
        ("training/loop.py", "from glassformer.parts import FAST", False),
        ("training/loop.py", "from glassformer.tools.inspection import capture", True),
        ("translator.py", "from glassformer.parts import FAST", False),
        ("translator.py", "def f():\n    import glassformer.tools.interchange", True),
        ("tools/documents/html.py", "from glassformer.translator import Translator", False),
        ("__init__.py", "from glassformer.tools.inspection import capture", False),
        ("data/corpus.py", "from pathlib import Path\nimport modelling, data", False),
        ("data/corpus.py", "from glassformer.novelty import new", True),
    ],
)
def test_an_import_the_wrong_way_is_found(tmp_path, file, statement, offends):
    for package in ("model", "data", "decoding", "training", "support", "tools/documents"):
        (tmp_path / "glassformer" / package).mkdir(parents=True)
    (tmp_path / "glassformer" / "config.py").touch()
    (tmp_path / "glassformer" / file).write_text(f'"""A file."""\n\n{statement}\n', "utf-8")
    last = 3 + statement.count("\n")

    found = offences(tmp_path)

    assert [line.split(": ")[0] for line in found] == [f"glassformer/{file}:{last}"] * offends


def reads(call: ast.Call) -> bool:
    """Whether a call reads a file, or what stands in one."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    modes = [str(value.value) for value in values if isinstance(value, ast.Constant)]
    name = ast.unparse(call.func)
    return bool(READING.fullmatch(name)) and not any(map(WRITING.fullmatch, modes))


def readers(package: Path) -> dict[str, list[str]]:
    """The calls that read, by the file without its ending; the door's own are left out."""
    found: dict[str, list[str]] = {}
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).with_suffix("").as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and reads(node) and name != "support/strangers":
                found.setdefault(name, []).append(f"line {node.lineno}: {ast.unparse(node)[:80]}")
    return found


def test_strangers_files_come_in_by_one_door():
    found = readers(PACKAGE)

    others = {name: calls for name, calls in found.items() if name not in READERS}
    assert not others, f"read them by glassformer.support.strangers: {others}"
    assert READERS.keys() == found.keys(), "READERS names files that read none"


@pytest.mark.parametrize(
    ("statement", "is_one"),
    [
        ("path.read_bytes()", True),
        ("path.open('rb')", True),
        ("open(path)", True),
        ("json.loads(text)", True),
        ("yaml.safe_load(text)", True),
        ("zipfile.ZipFile(path)", True),
        ("safe_open(path, framework='pt')", True),
        ("np.load(path)", True),
        ("torch.load(path)", True),
        ("path.open('wb')", False),
        ("zipfile.ZipFile(file, 'w')", False),
        ("read_bytes(path, most_bytes=9)", False),
        ("load_bundle(path)", False),
        ("Packed.open_all()", False),
    ],
)
def test_another_reader_is_found(tmp_path, statement, is_one):
    (tmp_path / "bundle.py").write_text(f"def f(path):\n    return {statement}\n", "utf-8")

    assert (readers(tmp_path).keys() == {"bundle"}) == is_one


def writes(call: ast.Call) -> bool:
    """Whether a call writes a file by itself."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    modes = [str(value.value) for value in values if isinstance(value, ast.Constant)]
    name = ast.unparse(call.func)
    opens = OPENING.fullmatch(name) and any(map(WRITING.fullmatch, modes))
    return bool(opens or CHANGING.fullmatch(name))


def test_files_are_written_by_the_doors_that_survive_a_kill():
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).with_suffix("").as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and writes(node) and name != "support/files":
                found.setdefault(name, []).append(f"line {node.lineno}: {ast.unparse(node)[:80]}")

    others = {name: calls for name, calls in found.items() if name not in WRITERS}
    assert not others, f"write them by glassformer.support.files: {others}"
    assert WRITERS.keys() == found.keys(), "WRITERS names files that write none"


@every(
    ("statement", "is_one"),
    [
        ("path.write_text(text)", True),
        ("path.write_bytes(content)", True),
        ("path.open('ab')", True),
        ("open(path, mode='w')", True),
        ("ZipFile(path, 'w')", True),
        ("save_file(tensors, path)", True),
        ("path.open('rb')", False),
        ("write_atomically(path, content)", False),
        ("open_atomically(path)", False),
    ],
)
def test_another_writer_is_found(statement, is_one):
    assert writes(ast.parse(statement).body[0].value) == is_one


def lines_of(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def core() -> set[Path]:
    """The files that a reader never has to leave."""
    return {PACKAGE / room / f"{name}.py" for room in CORE for name in CORE[room].split()}


def test_the_tables_of_reading_name_the_core():
    text = (SOURCE.parent / "docs" / "reading.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]

    assert {PACKAGE / file for row in rows for file in re.findall(r"`([\w/]+\.py)`", row)} == core()


def test_the_package_keeps_to_its_budget_of_lines():
    files = {
        "src, Python": {*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")},
        "core": core(),
        "pages": {path for path in PACKAGE.glob("tools/web/static/**/*.*") if path.is_file()},
    }
    lines = {name: sum(map(lines_of, paths)) for name, paths in files.items()}

    over = {name: number for name, number in lines.items() if number > ROOM * BUDGET[name]}
    assert not over, f"delete, reuse, or say what more lines buy: {over}, {BUDGET} with 3 % of room"


@pytest.fixture(scope="module")
def functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """``file:name`` and the definition of each function of the package."""
    return [
        (f"{path.relative_to(PACKAGE).as_posix()}:{node.name}", node)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    """All parameters but ``self`` and ``cls``; ``*args`` and ``**kwargs`` count as one each."""
    args = function.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    packed = [arg for arg in (args.vararg, args.kwarg) if arg]
    return [arg for arg in [*named, *packed] if arg.arg not in ("self", "cls")]


def test_functions_have_few_parameters(functions):
    long = {name for name, node in functions if len(parameters(node)) > MOST_PARAMETERS}

    others = long ^ LONGER
    assert not others, f"give the parameters that belong together as one record: {sorted(others)}"


def test_parameters_have_types(functions):
    hidden = [
        f"{name}:{parameter.arg}"
        for name, node in functions
        if not name.startswith("tools/learn/")
        for parameter in parameters(node)
        if parameter.annotation and re.search(r"\bAny\b", ast.unparse(parameter.annotation))
    ]

    assert len(hidden) <= ANY_BUDGET, "name the type:\n" + "\n".join(hidden)

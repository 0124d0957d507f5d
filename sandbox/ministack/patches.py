"""How this folder changes MiniStack: each change is a patch, and all patches are checked when MiniStack starts.

    @patch("ministack.services.eks._create_nodegroup")
    def create_nodegroup(original, cluster, body): ...

replaces that function. The path also leads through classes and dictionaries. The original is MiniStack's function, or
the patch of a module that comes earlier in wrapper.py.

MiniStack promises nothing about the names that begin with an underscore. So before anything is patched, install looks
for every name that the files of this folder take from MiniStack, and compares the parameters of functions with those
that the patches have and that the calls pass. If a new version of MiniStack breaks any of it, the start fails with the
list of these names.
"""

import ast
import functools
import importlib
import inspect
import sys
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).parent

_declared = []


class Patch:
    """One name of MiniStack and what replaces it. Its owner is a module, a class or a dictionary."""

    def __init__(self, path, replacement, new=False):
        self.path, self.replacement, self.new = path, replacement, new
        self.original = None

    def install(self):
        """Returns what is wrong, or None."""
        owner, name = _resolve(self.path.rpartition(".")[0]), self.path.rpartition(".")[2]
        self.original = _member(owner, name)
        if self.original is None and not self.new:
            return f"{self.path} is missing; {self.module}.py replaces it"
        if not inspect.isroutine(self.replacement):
            return _set(owner, name, self.replacement)
        whole = inspect.signature(self.replacement)
        patched = whole.replace(parameters=list(whole.parameters.values())[1:])
        actual = inspect.signature(self.original or self.replacement)
        if self.original and not _alike(patched, actual):
            return f"{self.path} takes {actual}, its patch in {self.module}.py {patched}"
        self.call.__signature__ = actual
        return _set(owner, name, self.call)

    @property
    def module(self):
        return self.replacement.__module__

    @functools.cached_property
    def call(self):
        def call(*args, **named):
            return self.replacement(self.original, *args, **named)

        async def call_async(*args, **named):  # the server treats the app as ASGI's only if it is a coroutine function
            return await call(*args, **named)

        return functools.wraps(self.replacement)(call_async if inspect.iscoroutinefunction(self.replacement) else call)


def patch(*paths, new=False):
    """Declares that a function, or another value, replaces what is at each path. With new, MiniStack may lack it. A call
    of the declared function by its own name needs no original.
    """
    def declare(replacement):
        _declared.extend(Patch(path, replacement, new) for path in paths)
        return _declared[-1].call
    return declare


def install(modules):
    """Installs the patches of the modules, in the order of the modules. Ends the process if one does not fit."""
    problems = [problem for file in sorted(FOLDER.glob("*.py")) for problem in _names(file)]
    for module in modules:
        problems += filter(None, [one.install() for one in _of(module)])
    if problems:
        sys.exit(f"MiniStack {version('ministack')} is not the one that sandbox/ministack changes:\n  " + "\n  ".join(problems))


def table(modules):
    """What each module is for, which is the beginning of its documentation, and what it replaces."""
    rows = ["| file | what for | replaces |", "|---|---|---|"]
    for module in modules:
        purpose, owners = module.__doc__.split("\n\n")[0].replace("\n", " ").strip(), {}
        for one in _of(module):
            owner, _, name = one.path.removeprefix("ministack.").removeprefix("services.").rpartition(".")
            owners.setdefault(owner, []).append(f"`{name}`")
        names = "; ".join(f"`{owner}` {', '.join(sorted(names))}" for owner, names in owners.items())
        rows.append(f"| `{module.__name__}.py` | {purpose} | {names} |")
    return "\n".join(rows)


def _of(module):
    return [one for one in _declared if one.module == module.__name__]


def _resolve(path):
    """The module, class or dictionary at the path, None if there is none."""
    parts = path.split(".")
    found = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        if inspect.ismodule(found) and not hasattr(found, part):
            try:
                importlib.import_module(".".join(parts[:i]))
            except ImportError:
                return None
        found = _member(found, part)
    return found


def _member(owner, name):
    return owner.get(name) if isinstance(owner, dict) else getattr(owner, name, None)


def _set(owner, name, value):
    if isinstance(owner, dict):
        owner[name] = value
    else:
        setattr(owner, name, value)


def _alike(patched, actual):
    """Whether two functions take the same arguments. A patch with *args or **named takes any."""
    wanted, given = ([(p.kind, p.default is p.empty) for p in one.parameters.values()] for one in (patched, actual))
    return wanted == given or bool({inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} & dict(wanted).keys())


def _names(file):
    """Reports the names that a file takes from MiniStack's modules and that are missing, and calls that do not fit."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ministack"):
            found = {alias.asname or alias.name: _resolve(f"{node.module}.{alias.name}") for alias in node.names}
            modules.update((name, module) for name, module in found.items() if inspect.ismodule(module))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            if not hasattr(modules[node.value.id], node.attr):
                yield f"{modules[node.value.id].__name__}.{node.attr} is missing; {file.name}:{node.lineno} uses it"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            function = getattr(modules.get(node.func.value.id), node.func.attr, None)
            if inspect.isfunction(function) and not _fits(node, function):
                name = f"{modules[node.func.value.id].__name__}.{node.func.attr}"
                yield f"{name} takes {inspect.signature(function)}; {file.name}:{node.lineno} calls it otherwise"


def _fits(call, function):
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords):
        return True
    try:
        inspect.signature(function).bind(*call.args, **{k.arg: k.value for k in call.keywords})
    except TypeError:
        return False
    return True

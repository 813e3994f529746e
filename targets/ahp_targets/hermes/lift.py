"""Read Hermes' files back: the plugin is run in a simulated world and watched, never trusted by its text.

The world has no file, process or network of its own: the plugin's imports give stand-ins, and its calls are counted.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import CodeType, SimpleNamespace
from typing import Any

import yaml
from attrs import define, field

from ahp_compile.engine import Behaviour, CallbackAnswer, Lifted, LiftedHook
from ahp_compile.lifting import program, read_words
from ahp_compile.placement import Placement
from ahp_compile.shell import Ending, Program
from ahp_compile.target import LiftError
from ahp_targets.hermes.codec import CODEC

_STATUSES: Mapping[str, tuple[str | None, ...]] = {"post_tool_call": ("ok", "error", "blocked")}
_BUILTINS = [
    "BaseException",
    "Exception",
    "OSError",
    "ValueError",
    "KeyError",
    "TypeError",
    "RuntimeError",
    "bool",
    "bytes",
    "dict",
    "float",
    "int",
    "len",
    "list",
    "str",
    "tuple",
    "set",
    "isinstance",
    "getattr",
    "None",
    "True",
    "False",
]


def lift(files: Mapping[str, bytes], placement: Placement) -> Lifted:
    """Read config.yaml and the plugin among the files (destination → bytes). Raises LiftError when they say nothing clear."""
    config = _yaml(_one(files, "/config.yaml"))
    faults = tuple(_faults(config))
    manifests = [path for path in files if path.endswith("/plugin.yaml")]
    if len(manifests) != 1:
        raise LiftError("there is not exactly one plugin")
    folder = manifests[0].rsplit("/", 1)[0]
    name = _yaml(files[manifests[0]]).get("name")
    if name != folder.rsplit("/", 1)[-1] or name not in _enabled(config):
        raise LiftError("the plugin is not enabled under its own name, so it is never loaded")
    return Lifted(tuple(_hooks(_one(files, f"{folder}/__init__.py"))), faults=faults)


def _one(files: Mapping[str, bytes], ending: str) -> bytes:
    found = [content for path, content in files.items() if path.endswith(ending)]
    if len(found) != 1:
        raise LiftError(f"there is not exactly one {ending.rsplit('/', 1)[-1]}")
    return found[0]


def _yaml(content: bytes) -> dict[str, Any]:
    try:
        document = yaml.safe_load(content.decode("utf-8"))
    except (ValueError, yaml.YAMLError) as error:
        raise LiftError("a YAML file cannot be read") from error
    if not isinstance(document, dict):
        raise LiftError("a YAML file does not hold a mapping")
    return document


def _enabled(config: Mapping[str, Any]) -> list[Any]:
    plugins = config.get("plugins")
    enabled = plugins.get("enabled") if isinstance(plugins, dict) else None
    return enabled if isinstance(enabled, list) else []


def _faults(config: Mapping[str, Any]) -> Iterator[str]:
    if config.get("hooks"):
        yield "shell hooks cannot keep a denial: a lone surrogate in a tool's arguments keeps them from starting"
    if "${" in json.dumps(config):
        yield "a string holds ${, which the harness would replace from its environment"


@define
class _World:
    """Where the plugin runs: each time that it asks the bridge, the bridge shows one behaviour."""

    behaviour: Program
    started: list[tuple[str, ...]] = field(factory=list)
    client: str | None = None
    never_ends: bool = False
    bound_ms: int = 0

    def spec_from_file_location(self, name: str, path: str) -> SimpleNamespace:
        """Stands for finding the client by its path."""
        self.client = path
        return SimpleNamespace(loader=SimpleNamespace(exec_module=self._load_client))

    def _load_client(self, module: SimpleNamespace) -> None:
        if self.behaviour.exit_status == 126:
            raise PermissionError(self.client)
        module.ask = self._ask

    def _ask(self, words: list[str], payload: bytes, bound_s: Any, environment: Any) -> tuple[int, bytes]:
        """Stands for the client's own function, which raises when it cannot decide and keeps to the bound that it is given."""
        if environment is not _ENVIRONMENT or words[3] != self.client:
            raise LiftError("the plugin does not hand the bridge its environment, or asks another client")
        json.loads(payload)
        self.started.append(tuple(words))
        if self.behaviour.ends is not Ending.EXITS:
            if isinstance(bound_s, int | float):
                self.bound_ms += round(bound_s * 1000)
            else:
                self.never_ends = True
            raise TimeoutError
        if self.behaviour.exit_status > 128:
            # The client raises exceptions of its own, and an interpreter that ends raises what is no Exception at all.
            raise SystemExit if self.behaviour.exit_status == 139 else RuntimeError
        if self.behaviour.exit_status == 127:
            raise FileNotFoundError(words[0])
        return self.behaviour.exit_status, self.behaviour.stdout


_ENVIRONMENT = object()


def _hooks(source: bytes) -> Iterator[LiftedHook]:
    for native_event in _registered(source):
        for status in _STATUSES.get(native_event, (None,)):
            runs = {one: _run(source, native_event, status, one) for one in Behaviour}
            # A client that cannot even be loaded is not asked anything.
            started = {words for words, _ in runs.values()} - {()}
            if not started:
                continue
            if len(started) != 1 or len(next(iter(started))) != 1:
                raise LiftError(f"the plugin's {native_event} does not always start exactly one bridge")
            (words,) = next(iter(started))
            answers = {one: answer for one, (_, answer) in runs.items()}
            yield LiftedHook(native_event, status, None, read_words(words), answers, run_as=words)


def _registered(source: bytes) -> list[str]:
    native_events = [name for name, _ in _load(source, _World(Program()))]
    if len(native_events) != len(set(native_events)):
        raise LiftError("the plugin registers two callbacks for one event")
    return native_events


def _run(
    source: bytes, native_event: str, status: str | None, behaviour: Behaviour
) -> tuple[tuple[tuple[str, ...], ...], CallbackAnswer]:
    world = _World(program(behaviour, CODEC))
    callback = dict(_load(source, world))[native_event]
    facts: dict[str, Any] = {
        "tool_name": "terminal",
        "args": {"command": "true", "note": "\ud800"},
        "session_id": "s",
        "tool_call_id": "c",
        "turn_id": "t",
        "live_object": object(),
    }
    if status is not None:
        facts |= {"status": status, "result": "{}"}
    try:
        returned = callback(**facts)
        answer = CallbackAnswer(returned, ends=not world.never_ends, bound_ms=world.bound_ms)
    except LiftError:
        raise
    except BaseException:
        answer = CallbackAnswer(raised=True, ends=not world.never_ends, bound_ms=world.bound_ms)
    return tuple(world.started), answer


def _load(source: bytes, world: _World) -> list[tuple[str, Callable[..., Any]]]:
    """Run the plugin's module in a world and collect what its register() registers."""
    registered: list[tuple[str, Callable[..., Any]]] = []
    namespace: dict[str, Any] = {"__builtins__": _builtins(world), "__name__": "plugin"}
    try:
        exec(_checked(source), namespace)
        namespace["register"](SimpleNamespace(register_hook=lambda name, callback: registered.append((name, callback))))
    except LiftError:
        raise
    except Exception as error:
        raise LiftError(f"the plugin does not load ({type(error).__name__}), so nothing is judged") from error
    return registered


@lru_cache(maxsize=8)
def _checked(source: bytes) -> CodeType:
    """The plugin's code, if it has no way out of the simulated world."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise LiftError("the plugin is not Python, so nothing is judged") from error
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name.startswith("__") or isinstance(node, ast.While | ast.AsyncFunctionDef):
            raise LiftError("the plugin holds code that cannot be watched")
    return compile(tree, "plugin", "exec")


def _builtins(world: _World) -> dict[str, Any]:
    stand_ins = {
        "__future__": SimpleNamespace(annotations=None),
        "contextlib": SimpleNamespace(suppress=contextlib.suppress),
        "typing": SimpleNamespace(Any=object),
        "json": SimpleNamespace(loads=json.loads, dumps=json.dumps),
        "os": SimpleNamespace(getcwd=lambda: "/", environb=_ENVIRONMENT),
        "importlib.util": SimpleNamespace(
            util=SimpleNamespace(
                spec_from_file_location=world.spec_from_file_location,
                module_from_spec=lambda spec: SimpleNamespace(),
            )
        ),
    }

    def simulated_import(name: str, *_: Any) -> Any:
        if name not in stand_ins:
            raise LiftError(f"the plugin imports {name}, which cannot be watched")
        return stand_ins[name]

    allowed = {name: getattr(builtins, name) for name in _BUILTINS if hasattr(builtins, name)}
    return allowed | {"__import__": simulated_import}

"""Running real harnesses against the mock model, each in a scratch home with dummy keys and nothing but loopback to reach."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from attrs import frozen

from tests.live.mock_model import MARK, Call, MockModel

LIMIT_S = 120


@frozen
class Run:
    """How a harness ended (-9 after LIMIT_S), what it printed, and its debug log where it has one."""

    status: int
    stdout: str
    stderr: str
    log: str = ""

    @property
    def words(self) -> str:
        """All that it said."""
        return f"{self.stdout}\n{self.stderr}\n{self.log}"


@frozen
class Place:
    """Scratch folders of one run: the user's home, the harness's own folder in it, and the project."""

    home: Path
    config_home: Path
    project: Path


def shell_call(target: str, command: str, extra: str = "", *, code_mode: bool = False) -> Call:
    """A call of the harness's own shell tool. ``extra`` is JSON text of further members, with a leading comma."""
    text = json.dumps(command)
    if target == "claude-code":
        return Call("Bash", f'{{"command": {text}, "description": "test"{extra}}}')
    if target == "codex" and code_mode:
        return Call("exec", f"const r = await tools.exec_command({{cmd: {text}}}); text(JSON.stringify(r));", "functions", True)
    if target == "codex":
        return Call("exec_command", f'{{"cmd": {text}{extra}}}')
    return Call("terminal", f'{{"command": {text}{extra}}}')


def mcp_call(target: str) -> Call:
    """A call of the tool do_it of the MCP server my-srv, as the harness names it to models."""
    if target == "codex":
        return Call("do_it", '{"x": "y"}', "mcp__my_srv")
    return Call("mcp__my-srv__do_it" if target == "claude-code" else "mcp__my_srv__do_it", '{"x": "y"}')


def mcp_server(marker: Path) -> list[str]:
    """The words that start the server my-srv, whose tool writes the marker."""
    return [sys.executable, str(Path(__file__).with_name("mcp_server.py")), str(marker)]


def run(target: str, executable: Path, model: MockModel, place: Place, **options: Any) -> Run:
    """Run the harness once with a prompt that the model's script answers."""
    drivers: dict[str, Callable[..., Run]] = {"claude-code": run_claude, "codex": run_codex, "hermes": run_hermes}
    return drivers[target](executable, model, place, **options)


def _environment(place: Place, extra: Mapping[str, str] | None) -> dict[str, str]:
    node = shutil.which("node")
    path = ":".join([*([str(Path(node).parent)] if node else []), "/usr/local/bin:/usr/bin:/bin"])
    (place.home / "tmp").mkdir(parents=True, exist_ok=True)
    base = {"PATH": path, "HOME": str(place.home), "LANG": "C.UTF-8", "TMPDIR": str(place.home / "tmp")}
    return base | dict(extra or {})


def _run(words: Sequence[str], place: Place, environment: Mapping[str, str], log: Path | None = None) -> Run:
    """Run with a time limit. Its process group is killed at its end, so that nothing of it is left over.

    Output goes to files: a process that left the group and holds a pipe would keep us waiting.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            words,
            cwd=place.project,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=LIMIT_S)
        finally:
            _kill(process)
        told = log.read_text(errors="replace") if log is not None and log.exists() else ""
        texts = []
        for stream in (stdout, stderr):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    return Run(process.returncode, texts[0], texts[1], told)


def _kill(process: subprocess.Popen[Any]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_claude(
    executable: Path,
    model: MockModel,
    place: Place,
    *,
    environment: Mapping[str, str] | None = None,
    permission_mode: str = "bypassPermissions",
    mcp_server: Sequence[str] = (),
) -> Run:
    """``claude -p``; its own settings are in ``place.config_home``."""
    log = place.home / "debug.txt"
    own = {
        "CLAUDE_CONFIG_DIR": str(place.config_home),
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.port}",
        "ANTHROPIC_API_KEY": "sk-test",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "IS_SANDBOX": "1",
        "NO_PROXY": "127.0.0.1",
    }
    words = [str(executable), "-p", f"{MARK} go", "--output-format", "stream-json", "--verbose"]
    words += ["--permission-mode", permission_mode, "--debug-file", str(log)]
    if mcp_server:
        servers = {"mcpServers": {"my-srv": {"command": mcp_server[0], "args": list(mcp_server[1:])}}}
        words += ["--mcp-config", json.dumps(servers)]
    return _run(words, place, _environment(place, own | dict(environment or {})), log)


def run_codex(
    executable: Path,
    model: MockModel,
    place: Place,
    *,
    environment: Mapping[str, str] | None = None,
    bypass_trust: bool = False,
    mcp_server: Sequence[str] = (),
    model_name: str = "gpt-5.5",
    sandbox: str = "danger-full-access",
) -> Run:
    """``codex exec``; what it needs to reach the model comes by flags, so that config.toml stays as it was emitted."""
    settings = {
        "model": json.dumps(model_name),
        "model_provider": '"mock"',
        "approval_policy": '"never"',
        "sandbox_mode": json.dumps(sandbox),
        "check_for_update_on_startup": "false",
        "analytics.enabled": "false",
        "model_providers.mock": (
            f'{{name="mock", base_url="http://127.0.0.1:{model.port}/v1", wire_api="responses", env_key="MOCK_KEY", '
            "request_max_retries=0, stream_max_retries=0}"
        ),
    }
    if mcp_server:
        settings["mcp_servers.my-srv"] = f"{{command={json.dumps(mcp_server[0])}, args={json.dumps(list(mcp_server[1:]))}}}"
    words = [str(executable), "exec", "--skip-git-repo-check", "-C", str(place.project)]
    for name, value in settings.items():
        words += ["-c", f"{name}={value}"]
    words += ["--dangerously-bypass-hook-trust"] if bypass_trust else []
    own = {"CODEX_HOME": str(place.config_home), "MOCK_KEY": "sk-test", "NO_PROXY": "127.0.0.1"}
    return _run([*words, f"{MARK} go"], place, _environment(place, own | dict(environment or {})))


def codex_hooks(executable: Path, place: Place) -> dict[str, Any]:
    """What ``codex app-server`` says of the hooks that it finds for the project: trust, hash, timeout and warnings."""
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(place.project)]}},
    ]
    process = subprocess.Popen(
        [str(executable), "app-server"],
        env=_environment(place, {"CODEX_HOME": str(place.config_home), "MOCK_KEY": "sk-test"}),
        cwd=place.project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    limit = threading.Timer(LIMIT_S, process.kill)
    limit.start()
    try:
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()
        for line in process.stdout:
            reply = json.loads(line)
            if reply.get("id") == 2:
                answer: dict[str, Any] = reply["result"]
                return answer
    finally:
        limit.cancel()
        _kill(process)
        process.stdin.close()
        process.stdout.close()
    raise AssertionError("codex app-server did not answer hooks/list")


def hermes_settings(port: int) -> dict[str, Any]:
    """What config.yaml must say for Hermes to reach a model on this port."""
    return {
        "model": {
            "default": "mock-model",
            "provider": "custom",
            "base_url": f"http://127.0.0.1:{port}/v1",
            "api_key": "sk-test",
            "context_length": 128000,
        },
        "terminal": {"backend": "local"},
    }


def run_hermes(
    executable: Path,
    model: MockModel,
    place: Place,
    *,
    environment: Mapping[str, str] | None = None,
    mcp_server: Sequence[str] = (),
    yolo: bool = True,
) -> Run:
    """``hermes chat``; the provider is added to the emitted config.yaml, which holds all of its settings."""
    config = place.config_home / "config.yaml"
    emitted = yaml.safe_load(config.read_text(encoding="utf-8")) if config.exists() else {}
    base = hermes_settings(model.port)
    if mcp_server:
        base["mcp_servers"] = {"my-srv": {"command": mcp_server[0], "args": list(mcp_server[1:])}}
    place.config_home.mkdir(parents=True, exist_ok=True)
    config.write_text(yaml.safe_dump(base | emitted, allow_unicode=True), encoding="utf-8")
    own = {
        "HERMES_HOME": str(place.config_home),
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{model.port}/v1",
        "NO_PROXY": "127.0.0.1",
    }
    words = [str(executable), "chat", "-q", f"{MARK} go", "-Q", *(["--yolo"] if yolo else [])]
    result = _run(words, place, _environment(place, own | dict(environment or {})))
    logs = "\n".join(one.read_text(errors="replace") for one in sorted((place.config_home / "logs").glob("*.log")))
    return Run(result.status, result.stdout, result.stderr, logs)

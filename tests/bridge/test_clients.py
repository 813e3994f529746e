"""The reference clients for in-process targets keep to the protocol's page: Python's is the client itself, JavaScript's stands beside it."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from ahp_compile import target
from ahp_compile.bridge import client
from ahp_compile.lifting import read_command_line
from ahp_compile.registration import FailurePolicy, Registration
from ahp_compile.target import Purpose
from tests.bridge.installed import PAYLOAD, Installed, backend, install

NODE = shutil.which("node")
ASK_JS = """
const { ask } = require(process.argv[1]);
const [words, payload, boundMs] = JSON.parse(require("fs").readFileSync(0, "utf8"));
ask(words, payload, boundMs, { ...process.env })
  .then((answer) => console.log(JSON.stringify(answer.proceed ? ["proceed"] : ["deny", answer.text])))
  .catch((error) => console.log(JSON.stringify(["unavailable", error.constructor.name])));
"""


def ask_python(words: list[str], payload: bytes, bound_s: float, token: str = "") -> list[str]:
    try:
        status, output = client.ask(words, payload, bound_s, {b"ACME_TOKEN": token.encode()})
    except Exception as error:
        return ["unavailable", type(error).__name__]
    return ["proceed"] if (status, output) == (0, b"ahp-proceed-1\n") else ["deny", output.decode()]


def ask_node(words: list[str], payload: bytes, bound_s: float, token: str = "") -> list[str]:
    if NODE is None and not os.environ.get("CI"):
        pytest.skip("node is not installed: the JavaScript client is not tried")
    assert NODE is not None
    script = str(files("ahp_compile.bridge").joinpath("reference_client.js"))
    asked = json.dumps([words, payload.decode(), bound_s * 1000])
    done = subprocess.run(
        [NODE, "-e", ASK_JS, script], input=asked.encode(), capture_output=True, check=True, env={"ACME_TOKEN": token}
    )
    answer: list[str] = json.loads(done.stdout)
    return answer


CLIENTS = {"python": ask_python, "javascript": ask_node}


@pytest.fixture(params=CLIENTS)
def ask(request: pytest.FixtureRequest) -> Any:
    return CLIENTS[request.param]


def words_of(one: Installed) -> list[str]:
    invocation, _ = read_command_line(one.line(), target.load("claude-code").codec)
    words = [invocation.interpreter, "-I", "-S", invocation.client, "--plan", invocation.plan, "--digest", invocation.digest]
    return [*words, "--event", invocation.event, "--budget-ms", str(invocation.budget_ms), "--guard", invocation.guard]


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Any]:
    found: list[Installed] = []

    def put(behaviour: str, **options: Any) -> Installed:
        found.append(install(tmp_path, Registration("0.1", (backend(tmp_path, "one", behaviour, **options),))))
        return found[-1]

    yield put
    for one in found:
        one.stop()


def test_a_cold_and_a_warm_answer(ask: Any, installed: Any) -> None:
    words = words_of(installed("no_effect"))
    payload = json.dumps(PAYLOAD).encode()
    assert ask(words, payload, 8) == ["proceed"]
    assert ask(words, payload, 8) == ["proceed"]


def test_a_denial_is_the_codecs_text(ask: Any, installed: Any) -> None:
    answer = ask(words_of(installed("deny")), json.dumps(PAYLOAD).encode(), 8)
    assert answer[0] == "deny"
    assert json.loads(answer[1])["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_what_cannot_be_decided_is_unavailable(ask: Any, installed: Any) -> None:
    one = installed("no_effect", policy=FailurePolicy.FAIL_OPEN)
    words = words_of(one)
    assert ask(words, b"not json", 8)[0] == "unavailable"
    assert ask([*words[:-2], "--other", "deny"], b"{}", 8)[0] == "unavailable"
    one.plan.write_bytes(b"{}")
    one.stop()
    assert ask(words, json.dumps(PAYLOAD).encode(), 8)[0] == "unavailable"
    assert ask(["/nowhere/python3", *words[1:]], json.dumps(PAYLOAD).encode(), 2)[0] == "unavailable"


def test_a_bridge_that_hangs_is_unavailable_at_the_bound(ask: Any, installed: Any) -> None:
    words = words_of(installed("hang", deadline_ms=20_000))
    began = time.monotonic()
    assert ask(words, json.dumps(PAYLOAD).encode(), 1.5)[0] == "unavailable"
    assert 1.4 < time.monotonic() - began < 15


class FakeDaemon:
    """Answers on the client's own socket as it is told, to see what a client takes for an answer."""

    def __init__(self, words: list[str], greeting: bytes, answer: bytes) -> None:
        name = Path(words[3]).name.split(".")[0].split("-")[-1]
        self.address = f"{client.runtime_folder()}/{words[7][:40]}-{name}.sock"
        self.received = b""
        self._greeting, self._answer = greeting, answer
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(self.address)
        self._server.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        connection, _ = self._server.accept()
        self.received += connection.recv(65536)
        connection.sendall(self._greeting)
        if self._greeting.startswith(b"NEED"):
            time.sleep(0.2)
            self.received += connection.recv(65536)
            connection.sendall(self._answer)
        connection.close()

    def close(self) -> None:
        self._server.close()
        os.unlink(self.address)


@pytest.mark.parametrize(
    ("greeting", "answer", "expected"),
    [
        (b"NEED ACME_TOKEN\n", b"P.", ["proceed"]),
        (b"NEED ACME_TOKEN\n", b"Dno: \xc3\xbc.", ["deny", "no: ü"]),
        (b"NEED ACME_TOKEN\n", b"P", ["unavailable"]),
        (b"NEED ACME_TOKEN\n", b"Dno", ["unavailable"]),
        (b"NEED ACME_TOKEN\n", b"D.", ["unavailable"]),
        (b"NEED ACME_TOKEN\n", b"PP.", ["unavailable"]),
        (b"NEED ACME_TOKEN\n", b"", ["unavailable"]),
        (b"NEED ACME_TOKEN\n", b"ahp-proceed-1\n", ["unavailable"]),
        (b"WANT\n", b"P.", ["unavailable"]),
    ],
)
def test_only_a_whole_answer_is_one_and_only_what_is_needed_is_told(
    greeting: bytes, answer: bytes, expected: list[str], ask: Any, installed: Any
) -> None:
    words = words_of(installed("no_effect"))
    fake = FakeDaemon(words, greeting, answer)
    try:
        assert ask(words, "ü".encode(), 4, token="canary")[: len(expected)] == expected
    finally:
        fake.close()
    assert fake.received.startswith(b"AHP1 tool.before 18500\n")
    if greeting.startswith(b"NEED"):
        assert fake.received.endswith(b"6\ncanary2\n\xc3\xbc")


def test_the_emitted_client_is_the_reference_client_unchanged(installed: Any) -> None:
    one = installed("no_effect")
    (artifact,) = (each for each in one.compilation.artifacts if each.purpose is Purpose.CLIENT)
    assert artifact.content == Path(client.__file__).read_bytes()
    spec = importlib.util.spec_from_file_location("as_a_plugin_does", artifact.destination)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.ask(words_of(one), json.dumps(PAYLOAD).encode(), 8, {}) == (0, b"ahp-proceed-1\n")


def test_the_client_imports_only_what_is_built_in() -> None:
    source = Path(client.__file__).read_text()
    imports = {line.split()[1] for line in source.splitlines() if line.startswith("import ")}
    assert imports == {"_signal", "_socket", "fcntl", "posix", "sys", "time"}

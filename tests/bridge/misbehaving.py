"""A backend that obeys or misbehaves in one way, over stdio or http: MODE BEHAVIOUR LOG [PORT-FILE].

It writes each message that it got to LOG, a line of JSON each, with the time, its environment's names and its headers.
"""

import json
import os
import signal
import socket
import sys
import threading
import time

mode, behaviour, log = sys.argv[1:4]

GOOD = {"protocolVersion": "0.1", "effects": []}
DENY = {"protocolVersion": "0.1", "effects": [{"type": "deny", "reason": "No: ü “quoted” 🚫"}]}

RESULTS = {
    "no_effect": GOOD,
    "deny": DENY,
    "deny_with_more": {
        "protocolVersion": "0.1",
        "effects": [DENY["effects"][0] | {"code": "com.acme.no", "more": 1}],
        "more": 1,
    },
    "missing_effects": {"protocolVersion": "0.1"},
    "missing_version": {"effects": []},
    "wrong_version": {"protocolVersion": "draft", "effects": []},
    "version_as_number": {"protocolVersion": 0.1, "effects": []},
    "effects_null": {"protocolVersion": "0.1", "effects": None},
    "two_denies": {"protocolVersion": "0.1", "effects": DENY["effects"] * 2},
    "unknown_effect": {"protocolVersion": "0.1", "effects": [{"type": "allow"}]},
    "deny_without_reason": {"protocolVersion": "0.1", "effects": [{"type": "deny"}]},
    "deny_empty_reason": {"protocolVersion": "0.1", "effects": [{"type": "deny", "reason": ""}]},
    "deny_bad_code": {"protocolVersion": "0.1", "effects": [DENY["effects"][0] | {"code": "no"}]},
    "effect_as_text": {"protocolVersion": "0.1", "effects": ["deny"]},
    "bad_extensions": {"protocolVersion": "0.1", "effects": [], "extensions": {"bare": 1}},
    "result_null": None,
}
ERRORS = {"error": -32603, "error_version": -32001, "error_event": -32002}


def body(message):
    """The bytes of the answer, without a newline, for behaviours that are about what is said."""
    identity = message.get("id")
    if behaviour in RESULTS:
        return json.dumps({"jsonrpc": "2.0", "id": identity, "result": RESULTS[behaviour]}).encode()
    if behaviour in ERRORS:
        error = {"code": ERRORS[behaviour], "message": "no", "data": {"supported": ["draft"]}}
        return json.dumps({"jsonrpc": "2.0", "id": identity, "error": error}).encode()
    good = {"jsonrpc": "2.0", "id": identity, "result": GOOD}
    return {
        "wrong_id": json.dumps(good | {"id": "other"}).encode(),
        "no_id": json.dumps({"jsonrpc": "2.0", "result": GOOD}).encode(),
        "null_id": json.dumps(good | {"id": None}).encode(),
        "wrong_jsonrpc": json.dumps(good | {"jsonrpc": "1.0"}).encode(),
        "result_and_error": json.dumps(good | {"error": {"code": 1, "message": "x"}}).encode(),
        "batch": json.dumps([good]).encode(),
        "garbage": b"loading...",
        "truncated": json.dumps(good).encode()[:-3],
        "not_utf8": json.dumps(good).encode()[:-1] + b', "x": "\xff"}',
        "member_twice": json.dumps(good).encode()[:-1] + b', "id": "other"}',
        "nan": json.dumps(good).encode()[:-1] + b', "x": NaN}',
        "deep": b'{"x":' + b"[" * 100_000,
        "large": json.dumps(good | {"x": "y" * 900_000}).encode(),
        "too_large": json.dumps(good | {"x": "y" * 3_000_000}).encode(),
    }.get(behaviour, json.dumps(good).encode())


def note(message, headers=None):
    entry = {
        "time": time.time(),
        "pid": os.getpid(),
        "method": message.get("method"),
        "params": message.get("params"),
        "id": message.get("id"),
        "environment": sorted(os.environ),
        "cwd": os.getcwd(),
        "argv": sys.argv[1:],
        "headers": dict(headers or {}),
    }
    with open(log, "a") as file:
        file.write(json.dumps(entry) + "\n")


def stdio():
    if behaviour == "slow_start":
        time.sleep(1.2)
    if behaviour == "answers_first":
        sys.stdout.buffer.write(b'{"jsonrpc": "2.0", "id": "x", "result": {"protocolVersion": "0.1", "effects": []}}\n')
        sys.stdout.buffer.flush()
    if behaviour == "never_reads":
        time.sleep(30)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        note(message)
        if "id" not in message:
            while behaviour == "gated_observer" and not os.path.exists(f"{log}.gate"):
                time.sleep(0.01)
            continue
        answer_stdio(message)
        if mode == "per_event":
            break
    sys.exit(7 if behaviour == "exit_7" else 0)


def answer_stdio(message):
    out = sys.stdout.buffer
    content = body(message)
    match behaviour:
        case "hang":
            time.sleep(30)
        case "late":
            time.sleep(float(os.environ.get("LATE_S", "0.8")))
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exits_silently":
            sys.exit(0)
        case "no_newline":
            out.write(content)
            out.flush()
            if mode == "persistent":
                time.sleep(30)
            return
        case "two_lines":
            content += b"\n" + content
        case "blank_line_first":
            content = b"\n" + content
        case "log_line_first":
            content = b"loading...\n" + content
        case "holds_pipe":
            if os.fork() == 0:
                os.setsid()
                time.sleep(4)
                os._exit(0)
        case "floods":
            while True:
                out.write(b"x" * 65536)
    out.write(content + b"\n")
    out.flush()


def http():
    server = socket.create_server(("127.0.0.1", 0))
    with open(sys.argv[4], "w") as file:
        file.write(str(server.getsockname()[1]))
    while True:
        connection, _ = server.accept()
        threading.Thread(target=converse, args=(connection,), daemon=True).start()


def converse(connection):
    file = connection.makefile("rb")
    while request := file.readline():
        headers = {}
        while (line := file.readline().strip()) != b"":
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.title()] = value.strip()
        message = json.loads(file.read(int(headers["Content-Length"])))
        note(message, headers | {"Request": request.decode().strip()})
        if not answer_http(connection, message):
            connection.close()
            return


def answer_http(connection, message):
    content = body(message)
    head = {"Content-Type": "application/json"}
    status = "204 No Content" if "id" not in message else "200 OK"
    if "id" not in message:
        content = b""
    match behaviour:
        case "hang":
            time.sleep(30)
        case "late":
            time.sleep(0.8)
        case "closes":
            return False
        case "status_500" | "status_404" | "status_401" | "status_202" | "status_204" | "status_201":
            status = f"{behaviour[-3:]} Status"
        case "redirect_302" | "redirect_307":
            status = f"{behaviour[-3:]} Found"
            head["Location"] = f"http://127.0.0.1:{connection.getsockname()[1]}/elsewhere"
        case "text_plain":
            head["Content-Type"] = "text/plain"
        case "no_content_type":
            del head["Content-Type"]
        case "json_with_charset":
            head["Content-Type"] = "Application/JSON; charset=utf-8"
        case "gzip":
            import gzip

            head["Content-Encoding"] = "gzip"
            content = gzip.compress(content)
        case "closes_in_body":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n" + content)
            return False
        case "byte_by_byte":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n")
            for one in content:
                connection.sendall(bytes([one]))
                time.sleep(0.1)
            return False
        case "endless_headers":
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            try:
                while True:
                    connection.sendall(b"X-More: 1\r\n" * 1000)
            except OSError:
                return False
        case "floods":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
            try:
                while True:
                    connection.sendall(b"x" * 65536)
            except OSError:
                return False
        case "no_http":
            connection.sendall(b"hello\r\n\r\n")
            return False
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in head.items()), f"Content-Length: {len(content)}"]
    connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
    return behaviour != "closes_after"


if mode == "http":
    http()
else:
    stdio()

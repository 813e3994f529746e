#!/usr/bin/env python3
"""A policy backend for Agent Hooks Protocol 0.1 to copy from: it denies shell commands that contain a word.

    backend.py persistent [WORD]     a stdio backend with lifecycle "persistent": one message a line, until end of input
    backend.py per_event [WORD]      a stdio backend with lifecycle "per_event": one message, one answer, exit
    backend.py http PORT [WORD]      an http backend on 127.0.0.1

WORD defaults to "forbidden". Only the standard library is used.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def answer(message: dict, word: str) -> dict | None:
    """The response to one message; None for a notification, which must not be answered."""
    if message.get("method") != "hooks/intercept":
        return None
    tool = message["params"]["event"]["tool"]
    effects = []
    if word in json.dumps(tool["input"], ensure_ascii=False):
        effects.append({"type": "deny", "reason": f"{tool['name']} may not be used with “{word}”."})
    return {"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": "0.1", "effects": effects}}


def serve_stdio(word: str) -> None:
    """Answer each line with a line. With lifecycle per_event there is one line, then the end of the input."""
    for line in sys.stdin:
        response = answer(json.loads(line), word)
        if response is not None:
            print(json.dumps(response), flush=True)


def serve_http(port: int, word: str) -> None:
    """Answer each POST: 200 with a body for an intercept request, 204 without one for a notification."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            response = answer(message, word)
            body = b"" if response is None else json.dumps(response).encode()
            self.send_response(204 if response is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Payloads and tokens do not belong in a log."""

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    mode, *rest = sys.argv[1:]
    if mode == "http":
        serve_http(int(rest[0]), rest[1] if len(rest) > 1 else "forbidden")
    else:
        serve_stdio(rest[0] if rest else "forbidden")

"""A stdio MCP server with one tool, do_it, which writes a file named by its first argument."""

import json
import sys
from pathlib import Path
from typing import Any

TOOL = {
    "name": "do_it",
    "description": "does it",
    "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}},
}


def answer(message: dict[str, Any]) -> dict[str, Any]:
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "my-srv", "version": "1"}}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            Path(sys.argv[1]).write_text("ran")
            return {"content": [{"type": "text", "text": "did it"}]}
        case _:
            return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer(request)}), flush=True)

"""Faulty emissions of Hermes' plugin and YAML."""

from __future__ import annotations

from tests.faults.common import FILE_FAULTS, PLAN_FAULTS, Seeded, swap, without

_PLUGIN = "/__init__.py"
_CONFIG = "/config.yaml"

_REGISTERED = '        ctx.register_hook("pre_tool_call", _before_tool_call)\n'

_PLUGIN_FAULTS = {
    "raises instead of the guard's verdict": (
        "    except BaseException:\n        pass\n    return {",
        "    finally:\n        pass\n    return {",
    ),
    "catches too little": (
        "    except BaseException:\n        pass\n    return {",
        "    except OSError:\n        pass\n    return {",
    ),
    "guard proceeds": ('if hook["denies"] else None', "if False else None"),
    "guard's settings flipped": ('"denies": true', '"denies": false'),
    "judging switched off": ('"judges": true', '"judges": false'),
    "silent success proceeds": (' and output == b"ahp-proceed-1\\n"', ""),
    "token anywhere proceeds": ('output == b"ahp-proceed-1\\n"', 'b"ahp-proceed-1\\n" in output'),
    "failure with a token proceeds": ("status == 0 and output", "output"),
    "denial proceeds": ("status == 77 and", "status == 78 and"),
    "reason lost": ('"message": reason if reason.strip() else _DENIED', '"message": _DENIED'),
    "message left out": ('"message": reason', '"text": reason'),
    "blank reason": ("reason if reason.strip() else _DENIED", "reason"),
    "the harness's other word for it": ('{"action": "block", "message": reason', '{"action": "deny", "message": reason'),
    "no objection as approval": (
        "            return None\n        if status == 77",
        '            return {"action": "approve"}\n        if status == 77',
    ),
    "not bounded": ('payload, hook["bound_s"]', "payload, None"),
    "bounded in milliseconds": ('payload, hook["bound_s"]', 'payload, hook["bound_s"] * 1000'),
    "bound below the budget": ('"bound_s": 7.55', '"bound_s": 5'),
    "budget in seconds": ('"--budget-ms", "7550"', '"--budget-ms", "7"'),
    "another event": ('"pre_tool_call", _before_tool_call', '"post_tool_call", _before_tool_call'),
    "end of the turn for end of the session": ('on_session_finalize", _on', 'on_session_end", _on'),
    "blocked calls count as errors": ('"error": "tool.error"', '"error": "tool.error", "blocked": "tool.error"'),
    "errors count as successes": ('"error": "tool.error"', '"error": "tool.after"'),
    "statuses exchanged": ('{"ok": "tool.after", "error": "tool.error"}', '{"error": "tool.after", "ok": "tool.error"}'),
    "registered twice": (_REGISTERED, _REGISTERED + _REGISTERED),
    "never registered": ('if "tool.before" in HOOKS', 'if "tool.during" in HOOKS'),
    "another client": ('_client", words[3])', '_client", words[0])'),
    "another environment": ("os.environb)", '{b"ACME_TOKEN": b"canary-7f3a"})'),
    "asked twice": ("    return status, output\n", "    return client.ask(words, payload, 5, os.environb)\n"),
    "surrogates keep it from starting, ensure_ascii off": (
        '**_told(facts)}).encode("ascii")',
        '**_told(facts)}, ensure_ascii=False).encode("utf-8")',
    ),
    "live objects told": ("return {name: facts[name] for name in names if name in facts}", "return facts"),
    "observer blocks": (
        '    _tell(event, "post_tool_call", facts)',
        '    _tell(event, "post_tool_call", facts)\n    return {"action": "block"}',
    ),
    "digest of another plan": ('"--digest", "', '"--digest", "0'),
    "guard word flipped": ('"--guard", "deny"', '"--guard", "proceed"'),
    "another interpreter": ("/opt/ahp/bin/python3", "python3"),
    "not isolated": ('"-I", "-S"', '"-S", "-S"'),
    "argument re-quoted": ('"/home/ada/.local', "\"\\'/home/ada/.local"),
    "syntax error": ("def register(", "def register"),
    "import that is not there": ("import json\n", "import json\nimport ahp_compile\n"),
}

FAULTS = (
    *PLAN_FAULTS,
    *FILE_FAULTS,
    *(Seeded(f"plugin: {name}", True, swap(_PLUGIN, old, new)) for name, (old, new) in _PLUGIN_FAULTS.items()),
    Seeded("not enabled", True, swap(_CONFIG, "- ahp-bridge", "- other")),
    Seeded("disabled", True, swap(_CONFIG, "enabled:", "disabled:")),
    Seeded("not YAML", True, swap(_CONFIG, "plugins:", "plugins: [")),
    Seeded("as a shell hook as well", True, swap(_CONFIG, "plugins:", "hooks: {pre_tool_call: [{command: x}]}\nplugins:")),
    Seeded("as a shell hook only", True, without("/plugin.yaml")),
    Seeded("expanded from the environment", True, swap(_CONFIG, "plugins:", "title: '${HOME}'\nplugins:")),
    Seeded("plugin under another name", True, swap("/plugin.yaml", "name: ahp-bridge", "name: ahp")),
    Seeded("plugin's code left out", True, without("/__init__.py")),
)

"""Which running side a planned backend gets, and what a stdio one finds in its environment."""

from __future__ import annotations

import os
import pwd

from ahp_compile.bridge.backend import Backend
from ahp_compile.bridge.http import HttpBackend
from ahp_compile.bridge.per_event import PerEventBackend
from ahp_compile.bridge.persistent import PersistentBackend
from ahp_compile.plan import Plan, PlannedBackend
from ahp_compile.registration import Http, Lifecycle, Stdio


def make(planned: PlannedBackend, plan: Plan) -> Backend:
    """The running side of a planned backend."""
    match planned.transport:
        case Stdio(lifecycle=Lifecycle.PERSISTENT):
            return PersistentBackend(planned.transport, environment(plan))
        case Stdio():
            return PerEventBackend(planned.transport, environment(plan))
        case Http():
            return HttpBackend(planned.transport)


def environment(plan: Plan) -> dict[str, str]:
    """What a stdio backend finds in its environment: where programs are, who the user is, and a UTF-8 locale. No tokens."""
    user = pwd.getpwuid(os.getuid())
    return {
        "PATH": plan.search_path,
        "HOME": user.pw_dir,
        "USER": user.pw_name,
        "LOGNAME": user.pw_name,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": "/tmp",
    }

"""The bridge's client: started by a native hook as ``python -I -S client.py``, once per event, so it imports only built-ins.

It forwards the hook's input to the daemon of its plan and the daemon's answer to the hook, and understands neither. It ends in
one of three ways: it prints ``ahp-proceed-1`` and exits 0; it prints the text of a denial and exits 77; or anything else, which
the guard around it turns into the chain's guard verdict. docs/bridge-protocol.md describes both sides of the socket.
"""

# The private modules are the C halves of signal and socket: the public ones cost as much again as the interpreter's own start.
import _signal  # type: ignore[import-not-found]
import _socket
import fcntl
import posix
import sys
import time

UNAVAILABLE = 71
_FLAGS = ("--plan", "--digest", "--event", "--budget-ms", "--guard")
_RUN = "/run/user"
_TMP = "/tmp"


def main(argv: list[str]) -> int:
    """Ask the daemon about one event; returns the exit status."""
    plan, digest, event, budget_ms, _guard = _read_words(argv)
    # First of all: whatever happens below, a client that hangs becomes a dead one, and the guard decides.
    _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
    _signal.setitimer(_signal.ITIMER_REAL, budget_ms / 1000)
    folder = runtime_folder()
    if folder is None:
        # No daemon can live here. A plan without persistent backends can still be asked, by a process of its own.
        posix.execv(sys.executable, [sys.executable, "-I", "-m", "ahp_compile.bridge.once", *argv])
    payload = _read_all(0)
    name = sys.argv[0].rpartition("/")[2].partition(".")[0].rpartition("-")[2]
    address = f"{folder}/{digest[:40]}-{name}.sock"
    answer = _ask(address, plan, digest, event, budget_ms, payload)
    if answer[:1] == b"P":
        _write_all(1, b"ahp-proceed-1\n")
        return 0
    if answer[:1] == b"D" and len(answer) > 1:
        _write_all(1, answer[1:])
        return 77
    return UNAVAILABLE


def _read_words(argv: list[str]) -> tuple[str, str, str, int, str]:
    if len(argv) != 2 * len(_FLAGS) or tuple(argv[::2]) != _FLAGS:
        raise SystemExit(UNAVAILABLE)
    plan, digest, event, budget_ms, guard = argv[1::2]
    return plan, digest, event, int(budget_ms), guard


def runtime_folder() -> str | None:
    """The folder of this user's sockets, made if need be; None where there is none that only this user can reach.

    It does not follow from the environment, which an opened repository can set.
    """
    uid = posix.getuid()
    for base, name in ((f"{_RUN}/{uid}", "ahp-compile"), (_TMP, f"ahp-compile-{uid}")):
        folder = f"{base}/{name}"
        try:
            found = _make_folder(folder)
        except OSError:
            continue
        is_folder = found.st_mode & 0o170000 == 0o040000
        if is_folder and found.st_uid == uid and found.st_mode & 0o077 == 0 and posix.access(folder, posix.W_OK):
            return folder
    return None


def _make_folder(folder: str) -> posix.stat_result:
    try:
        return posix.lstat(folder)
    except FileNotFoundError:
        posix.mkdir(folder, 0o700)
        return posix.lstat(folder)


def _ask(address: str, plan: str, digest: str, event: str, budget_ms: int, payload: bytes) -> bytes:
    """One exchange with the daemon, which is started when none answers. Returns its answer, empty when there is none."""
    starter = -1
    child = 0
    while True:
        connection = _connect(address)
        if connection is not None:
            needs = _greet(connection, event, budget_ms)
            if needs is not None:
                return _exchange(connection, needs, payload)
            # A daemon that was just going away: it took nothing from us yet, so the next one can be asked.
        if child == 0:
            # Of many clients at once only one starts a daemon; when that one dies, the lock falls to another.
            starter = starter if starter >= 0 else posix.open(f"{address}.starter", posix.O_RDWR | posix.O_CREAT, 0o600)
            if _locked(starter):
                child = _start_daemon(address, plan, digest)
        elif posix.waitpid(child, posix.WNOHANG) != (0, 0):
            # It ended without serving: there is none to be had, or another one is already there.
            connection = _connect(address)
            needs = _greet(connection, event, budget_ms) if connection is not None else None
            return _exchange(connection, needs, payload) if connection is not None and needs is not None else b""
        time.sleep(0.002)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _connect(address: str) -> _socket.socket | None:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(address)
        if hasattr(_socket, "SO_PEERCRED"):
            credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
            if int.from_bytes(credentials[4:8], sys.byteorder) != posix.getuid():
                raise SystemExit(UNAVAILABLE)
        return connection
    except OSError:
        connection.close()
        return None


def _greet(connection: _socket.socket, event: str, budget_ms: int) -> list[str] | None:
    """Say what is coming; the daemon names the variables that it needs, and gets no others. None when it is gone."""
    try:
        connection.sendall(f"AHP1 {event} {budget_ms}\n".encode())
        line = b""
        while not line.endswith(b"\n"):
            received = connection.recv(65536)
            if not received:
                return None
            line += received
    except OSError:
        return None
    word, *names = line.decode().split()
    return names if word == "NEED" else None


def _exchange(connection: _socket.socket, names: list[str], payload: bytes) -> bytes:
    fields = [posix.environ.get(name.encode(), b"") for name in names]
    fields.append(payload)
    connection.sendall(b"".join(b"%d\n%b" % (len(field), field) for field in fields))
    answer = b""
    while True:
        received = connection.recv(1 << 20)
        if not received:
            break
        answer += received
    # The last byte says that the answer is whole: a daemon that dies while writing has decided nothing.
    return answer[:-1] if answer.endswith(b".") else b""


def _start_daemon(address: str, plan: str, digest: str) -> int:
    """Start the daemon with nothing of ours: no environment, no stream, no terminal, no process group. Returns its pid."""
    null: list[tuple[int, int, str, int, int]] = [(posix.POSIX_SPAWN_OPEN, 0, "/dev/null", posix.O_RDONLY, 0)]
    null += [(posix.POSIX_SPAWN_OPEN, one, "/dev/null", posix.O_WRONLY, 0) for one in (1, 2)]
    words = [sys.executable, "-I", "-m", "ahp_compile.bridge.daemon", "--plan", plan, "--digest", digest, "--socket", address]
    return posix.posix_spawn(sys.executable, words, {"LANG": "C.UTF-8"}, file_actions=null, setsid=True)


def _read_all(descriptor: int) -> bytes:
    chunks: list[bytes] = []
    while True:
        chunk = posix.read(descriptor, 1 << 20)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[posix.write(descriptor, content) :]


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
    except Exception:
        status = UNAVAILABLE
    posix._exit(status)

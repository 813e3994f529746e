"""The bridge's client, in two uses: a hook's process (``python -I -S client.py WORDS``), and a plugin inside a Python harness.

It forwards the hook's input to the daemon of its plan and the daemon's answer to the hook, and understands neither. As a
process it ends in one of three ways: it prints ``ahp-proceed-1`` and exits 0; it prints the text of a denial and exits 77; or
anything else, which the guard around it turns into the chain's guard verdict. docs/bridge-protocol.md describes both uses.
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


class Unavailable(Exception):
    """The bridge cannot decide: the guard's verdict holds."""


def main(words: list[str]) -> int:
    """Ask about one event as a process of its own, given the words of the native entry; returns the exit status."""
    budget_ms = _read_words(words)[3]
    # First of all: whatever happens below, a client that hangs becomes a dead one, and the guard decides.
    _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
    _signal.setitimer(_signal.ITIMER_REAL, budget_ms / 1000)
    if runtime_folder() is None:
        # No daemon can live here. A plan without persistent backends can still be asked, by a process of its own.
        posix.execv(words[0], [words[0], "-I", "-m", "ahp_compile.bridge.once", *words[4:]])
    status, output = ask(words, _read_all(0), budget_ms / 1000, posix.environ)
    _write_all(1, output)
    return status


def ask(words: list[str], payload: bytes, bound_s: float, environment: dict[bytes, bytes]) -> tuple[int, bytes]:
    """Ask about one event, given the words of the native entry and the harness's payload: exit status and output.

    Raises Unavailable or OSError when the bridge cannot decide, at the latest after ``bound_s`` seconds.
    """
    plan, digest, event, budget_ms = _read_words(words)
    folder = runtime_folder()
    if folder is None:
        raise Unavailable
    until = time.monotonic() + bound_s
    name = words[3].rpartition("/")[2].partition(".")[0].rpartition("-")[2]
    daemon = [words[0], "-I", "-m", "ahp_compile.bridge.daemon", "--plan", plan, "--digest", digest]
    connection, needs = _reach(f"{folder}/{digest[:40]}-{name}.sock", daemon, f"AHP1 {event} {budget_ms}\n".encode(), until)
    try:
        answer = _exchange(connection, needs, payload, environment, until)
    finally:
        connection.close()
    if answer == b"P":
        return 0, b"ahp-proceed-1\n"
    if answer[:1] == b"D" and len(answer) > 1:
        return 77, answer[1:]
    raise Unavailable


def _read_words(words: list[str]) -> tuple[str, str, str, int]:
    if len(words) != 4 + 2 * len(_FLAGS) or tuple(words[4::2]) != _FLAGS:
        raise Unavailable
    plan, digest, event, budget_ms, _ = words[5::2]
    return plan, digest, event, int(budget_ms)


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


def _reach(address: str, daemon: list[str], greeting: bytes, until: float) -> tuple[_socket.socket, list[str]]:
    """A daemon that answered the greeting, and the variables that it needs; it is started when none answers."""
    starter = -1
    child = 0
    try:
        while True:
            greeted = _greet(address, greeting, until)
            if greeted is not None:
                return greeted
            if child:
                # Ended well, it serves now, or another one does; a moment later one must be there.
                child = 0 if _ended_well(child) else child
            elif starter < 0 or _locked(starter):
                # Of many clients at once only one starts a daemon; when that one dies, the lock falls to another.
                if starter < 0:
                    starter = posix.open(f"{address}.starter", posix.O_RDWR | posix.O_CREAT | posix.O_CLOEXEC, 0o600)
                    continue
                child = _start_daemon([*daemon, "--socket", address])
            _remaining(until)
            time.sleep(0.002)
    finally:
        if starter >= 0:
            posix.close(starter)


def _ended_well(child: int) -> bool:
    """Whether the daemon's starter has ended; raises Unavailable when it failed."""
    try:
        ended, status = posix.waitpid(child, posix.WNOHANG)
    except ChildProcessError:
        # A harness may have waited for all of its children; whether a daemon serves shows at once.
        return True
    if ended and status:
        raise Unavailable
    return ended != 0


def _remaining(until: float) -> float:
    remaining = until - time.monotonic()
    if remaining <= 0:
        raise Unavailable
    return remaining


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _greet(address: str, greeting: bytes, until: float) -> tuple[_socket.socket, list[str]] | None:
    """Connect and say what is coming; the daemon names the variables that it needs, and gets no others.

    None when there is no daemon, or one that was just going away: it took nothing from us yet, so the next one can be asked.
    """
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(_remaining(until))
        connection.connect(address)
        _check_peer(connection)
        connection.sendall(greeting)
        line = b""
        while not line.endswith(b"\n"):
            received = connection.recv(65536)
            if not received:
                raise ConnectionError
            line += received
    except OSError:
        connection.close()
        return None
    word, *names = line.decode().split()
    if word != "NEED":
        raise Unavailable
    return connection, names


def _check_peer(connection: _socket.socket) -> None:
    """Only a daemon of this very user is asked, where the system says who is at the other end."""
    if hasattr(_socket, "SO_PEERCRED"):
        credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        if int.from_bytes(credentials[4:8], sys.byteorder) != posix.getuid():
            raise Unavailable


def _exchange(
    connection: _socket.socket, names: list[str], payload: bytes, environment: dict[bytes, bytes], until: float
) -> bytes:
    fields = [environment.get(name.encode(), b"") for name in names]
    fields.append(payload)
    connection.settimeout(_remaining(until))
    connection.sendall(b"".join(b"%d\n%b" % (len(field), field) for field in fields))
    answer = b""
    while True:
        connection.settimeout(_remaining(until))
        received = connection.recv(1 << 20)
        if not received:
            break
        answer += received
    # The last byte says that the answer is whole: a daemon that dies while writing has decided nothing.
    if not answer.endswith(b"."):
        raise Unavailable
    return answer[:-1]


def _start_daemon(words: list[str]) -> int:
    """Start the daemon with nothing of ours: no environment, no stream, no terminal, no process group. Returns its pid."""
    null: list[tuple[int, int, str, int, int]] = [(posix.POSIX_SPAWN_OPEN, 0, "/dev/null", posix.O_RDONLY, 0)]
    null += [(posix.POSIX_SPAWN_OPEN, one, "/dev/null", posix.O_WRONLY, 0) for one in (1, 2)]
    return posix.posix_spawn(words[0], words, {"LANG": "C.UTF-8"}, file_actions=null, setsid=True)


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
        status = main([sys.executable, "-I", "-S", *sys.argv])
    except Exception:
        status = UNAVAILABLE
    posix._exit(status)

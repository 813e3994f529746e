"""The rules for an http backend's URL (section 18): absolute, https unless loopback, and without credentials."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from ahp_compile.problems import Problems
from ahp_compile.source import Span

_ALLOWED = re.compile(r"[!#-;=?-\[\]_a-z~]+")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\.?")


def check_url(problems: Problems, url: str, span: Span, path: str) -> None:
    """Note what is wrong with a URL. Its text is never repeated: it may hold a credential."""
    parts = _split(url)
    if parts is None:
        message = "This is no absolute URL of http or https with a host."
        problems.error("bad-url", span, path, message, "Write a URL such as https://policy.example.com/ahp.")
        return
    if "@" in parts.netloc:
        message = "A user name or password may not stand in the URL."
        problems.error(
            "literal-credential", span, path, message, "Remove it; authentication.tokenEnv names a token's variable."
        )
        return
    if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        message = "Plain http is only for this machine (127.0.0.0/8, ::1, localhost): anybody on the way could decide."
        problems.error("insecure-url", span, path, message, "Use https.")


def _split(url: str) -> SplitResult | None:
    if not url.startswith(("http://", "https://")) or not _ALLOWED.fullmatch(url) or "#" in url:
        return None
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        return None
    if not host or port == 0 or parts.netloc.endswith(":"):
        return None
    if "@" not in parts.netloc and "[" not in parts.netloc and not _HOST.fullmatch(host):
        return None
    return parts


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

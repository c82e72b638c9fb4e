"""Ask for a page of a process, whatever the status code of the answer is."""

import urllib.error
import urllib.request


def http_answer(
    url: str, body: bytes | None = None, headers: dict[str, str] | None = None, *, timeout_s: float = 60.0
) -> tuple[int, str]:
    """Return the status code and the text of an HTTP answer. The code is 0 if no process listens."""
    try:
        request = urllib.request.Request(url, body, headers or {})  # noqa: S310 loopback
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()
    except OSError:
        return 0, ""

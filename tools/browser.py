"""A headless Chromium that opens files of this repository, through the DevTools protocol on a pipe.

A pipe needs no port and no library: messages are JSON with a zero byte behind each (Chromium's
--remote-debugging-pipe reads file descriptor 3 and writes 4).
"""

import base64
import contextlib
import fcntl
import json
import os
import select
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

# The first start on a busy machine of two cores took 5 s.
PATIENCE_S = 60.0
# What a browser does on its own would be mistaken for requests of the page. Only files written here are opened, and
# containers have no namespaces for the sandbox.
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)


class BrowserError(Exception):
    """The browser did not start, did not answer, or refused. One line."""


class Page:
    """An open page. `requested`: every address it asked for, its own first; `complaints`: what its console shows."""

    def __init__(self, browser: "Browser", session: str) -> None:
        self._browser = browser
        self._session = session
        self.requested: list[str] = []
        self.complaints: list[str] = []

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self._send("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails'].get('text')}")
        return answer["result"].get("value")

    def screenshot(self, height: int) -> bytes:
        """The upper `height` CSS pixels as PNG, or all of the page where that is less."""
        size = self._send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(height, size["height"]), "scale": 1}
        shot = self._send("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(shot["data"])

    def pdf(self) -> bytes:
        """The page as it is printed, on A4."""
        return base64.b64decode(self._send("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])

    def load(self, file: Path, width: int, height: int, scheme: str, media: str) -> None:
        """Open a file at a size in CSS pixels."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._send(f"{domain}.enable")
        self._send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        preferred = [{"name": "prefers-color-scheme", "value": scheme}]
        self._send("Emulation.setEmulatedMedia", media=media, features=preferred)
        self._send("Page.navigate", url=file.resolve().as_uri())
        self._browser.wait_for("Page.loadEventFired", self._session)

    def note(self, event: dict[str, Any]) -> None:
        """Keep what an event of this page tells."""
        method, told = event["method"], event["params"]
        if method == "Network.requestWillBeSent":
            self.requested.append(told["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(told["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(" ".join(str(part.get("value")) for part in told["args"]))
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(told["exceptionDetails"]["text"])

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **parameters)


class Browser:
    """A running browser. Made by `browser()`."""

    def __init__(self, read_from: int, write_to: int) -> None:
        self._read_from = read_from
        self._write_to = write_to
        self._number = 0
        self._unread = b""
        self._pages: dict[str, Page] = {}
        self._seen: set[tuple[str, str]] = set()

    def open(
        self,
        file: Path,
        width: int,
        height: int = 900,
        scheme: Literal["light", "dark"] = "light",
        media: Literal["screen", "print"] = "screen",
    ) -> Page:
        """Open a file in a tab of its own and wait until it is loaded."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        page.load(file, width, height, scheme, media)
        return page

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result. Raises BrowserError."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        try:
            os.write(self._write_to, json.dumps(message).encode() + b"\0")
        except BrokenPipeError:
            raise BrowserError("the browser has ended") from None
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self._next(deadline, method)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def wait_for(self, event: str, session: str) -> None:
        """Wait for an event of a page, unless it has come."""
        deadline = time.monotonic() + PATIENCE_S
        while (event, session) not in self._seen:
            self._next(deadline, event)

    def _next(self, deadline: float, awaited: str) -> dict[str, Any]:
        """The next message; events are noted. Raises BrowserError at the deadline or when the browser is gone."""
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._read_from], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise BrowserError(f"no answer to {awaited} within {PATIENCE_S:.0f} s")
            piece = os.read(self._read_from, 1 << 20)
            if not piece:
                raise BrowserError(f"the browser ended before it answered {awaited}")
            self._unread += piece
        text, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        session = message.get("sessionId", "")
        if "method" in message:
            self._seen.add((message["method"], session))
            if session in self._pages:
                self._pages[session].note(message)
        return message


@contextlib.contextmanager
def browser(executable: Path) -> Iterator[Browser]:
    """Run a headless browser, with a profile of its own, until the block ends. Raises BrowserError."""
    to_browser, from_browser = [[_high(end) for end in os.pipe()] for _ in range(2)]
    # In the system's temporary folder: Chromium makes a Unix socket there, whose path must be short.
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as profile:
        null = os.open(os.devnull, os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, to_browser[0], 3), (os.POSIX_SPAWN_DUP2, from_browser[1], 4)]
        actions += [(os.POSIX_SPAWN_DUP2, null, number) for number in range(3)]
        command = [str(executable), *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = os.posix_spawn(executable, command, os.environ, file_actions=actions, setpgroup=0)
        for end in (to_browser[0], from_browser[1], null):
            os.close(end)
        running = Browser(from_browser[0], to_browser[1])
        try:
            yield running
        finally:
            with contextlib.suppress(BrowserError):
                running.send("Browser.close")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            for end in (to_browser[1], from_browser[0]):
                os.close(end)


def _high(descriptor: int) -> int:
    """The same descriptor under a number that is neither 3 nor 4, closed in children."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return copy

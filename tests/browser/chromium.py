"""Headless Chromium over its debugging pipe (Chrome DevTools Protocol), with Python's own library alone."""

import base64
import json
import os
import select
import subprocess
import tempfile
import time


class Browser:
    """with Browser(program) as browser: page = browser.page(width=390); page.open(path)"""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(prefix="layline-browser-", ignore_cleanup_errors=True)
        to_browser, self.send_end = os.pipe()
        self.receive_end, from_browser = os.pipe()
        # The browser reads commands from descriptor 3 and answers on 4.
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        command = ["bash", "-c", script, "bash", program, "--headless", "--disable-gpu", "--no-first-run",
                   "--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}"]
        if os.geteuid() == 0:
            command.append("--no-sandbox")
        self.process = subprocess.Popen(command, pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.last_id = 0
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.profile.cleanup()

    def read_message(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.receive_end], [], [], left)[0]:
                return None
            data = os.read(self.receive_end, 1 << 20)
            if not data:
                raise RuntimeError("the browser has gone away")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, seconds=120, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.send_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read_message(seconds)
            if answer is None:
                raise TimeoutError(method)
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def page(self, width, height=900, dark=False):
        return Page(self, width, height, dark)


class Page:
    def __init__(self, browser, width, height, dark):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        self.width, self.height = width, height
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def call(self, method, **params):
        return self.browser.call(method, session=self.session, **params)

    def open(self, path):
        """Loads the file and waits for its load event. Returns the seconds that took."""
        begin = time.monotonic()
        self.call("Page.bringToFront")  # what is not in front is not drawn
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")
        return time.monotonic() - begin

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def wait(self, expression, seconds=60):
        deadline = time.monotonic() + seconds
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(expression)
            time.sleep(0.02)

    def _own(self):
        self.evaluate("0")  # whatever was under way has arrived
        return [event for event in self.browser.events if event.get("sessionId") == self.session]

    def complaints(self):
        """What the console shows as errors or warnings, and exceptions."""
        found = []
        for event in self._own():
            method, params = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(" ".join(str(a.get("value", a.get("description", ""))) for a in params["args"]))
            if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
        return found

    def requests(self):
        """Addresses that the page asked for, those inside the file left out."""
        urls = [e["params"]["request"]["url"] for e in self._own() if e["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("data:", "blob:"))]

    def picture(self, path, clip=None):
        params = {"clip": {**clip, "scale": 1}, "captureBeyondViewport": True} if clip else {}
        data = self.call("Page.captureScreenshot", format="png", **params)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

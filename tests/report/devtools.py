"""A headless Chromium and one of its pages over a pipe (the DevTools protocol), with nothing but the standard library."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The path of a browser, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page. Collects what goes wrong in it and every address that it asks for."""

    def __init__(self, path, deadline=120):
        self.deadline = time.monotonic() + deadline
        self.folder = tempfile.mkdtemp(prefix="heddle-browser-")
        to_browser, self.writing = os.pipe()
        self.reading, from_browser = os.pipe()
        arguments = [path, "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run",
                     "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=" + self.folder, "--remote-debugging-pipe"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")

        def descriptors():  # where Chromium looks for the pipe, by way of numbers that are free
            copies = os.dup(to_browser), os.dup(from_browser)
            high = [os.dup2(copy, 60 + i) for i, copy in enumerate(copies)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, close_fds=False, preexec_fn=descriptors)
        os.close(to_browser)
        os.close(from_browser)
        self.bytes, self.number, self.session = b"", 0, None
        self.errors, self.requests, self.events = [], [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.writing, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(method + ": " + answer["error"]["message"])
                return answer["result"]

    def receive(self):
        while b"\0" not in self.bytes:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self.reading], [], [], left)[0]:
                raise RuntimeError("the browser did not answer in time")
            part = os.read(self.reading, 1 << 20)
            if not part:
                raise RuntimeError("the browser went away: " + open(self.log.name, errors="replace").read()[-2000:])
            self.bytes += part
        line, self.bytes = self.bytes.split(b"\0", 1)
        message = json.loads(line)
        if "method" in message:
            self.note(message["method"], message["params"])
        return message

    def note(self, method, said):
        self.events.append(method)
        if method == "Runtime.exceptionThrown":
            details = said["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.errors.append("console: " + str([argument.get("value") for argument in said["args"]]))
        elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.errors.append("log: " + said["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self.receive()

    def evaluate(self, expression):
        """The value of a JavaScript expression, after the page has had time to draw what it changed."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(expression + ": " + answer["exceptionDetails"].get("exception", {}).get("description", "failed"))
        return answer["result"].get("value")

    def resize(self, width, height=900, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 600)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path, selector=None):
        """Of the whole page, or of what the selector finds."""
        box = self.evaluate("(() => { const box = document.querySelector('%s').getBoundingClientRect();"
                            " return {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height}; })()" % (selector or "html"))
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip={**box, "scale": 1})["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.close()
        os.close(self.reading)
        os.close(self.writing)
        shutil.rmtree(self.folder, ignore_errors=True)

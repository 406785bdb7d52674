"""A byte-server of this build in a process of its own, and its model in numpy."""
import http.client
import json
import os
import re
import subprocess
import sys
import time

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(ROOT, "examples", "server"), os.path.join(ROOT, "examples", "python")]
import make_weights  # noqa: E402
import safetensors_file  # noqa: E402

PROGRAM = os.environ["HEDDLE_BYTE_SERVER"]
SIZES = dict(dim=64, heads=4, kv_heads=2, layers=2)
REACH = dict(first=4, left=63)


def write_weights(path, sizes=SIZES, **changes):
    tensors = make_weights.weights(seed=1, **sizes)
    metadata = dict(heads=sizes["heads"], kv_heads=sizes["kv_heads"], **REACH)
    for name, value in changes.items():
        (metadata if name in metadata else tensors)[name.replace("__", ".")] = value
    safetensors_file.write(path, tensors, metadata)
    return tensors


def run(*options):
    """A server that is not to start: its exit code and what it says."""
    done = subprocess.run([PROGRAM, *options], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


class Server:
    def __init__(self, weights, *options, place="the processors", environment=None):
        self.process = subprocess.Popen([PROGRAM, f"--weights={weights}", "--port=0", *options], stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})})
        said = self.process.stdout.readline()
        found = re.match(rf"listening on http://127\.0\.0\.1:(\d+), attention on {place}", said)
        assert found, f"the server said {said!r}"
        self.port = int(found.group(1))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.stdout.close()
        code = self.process.wait(timeout=60)
        assert code == 0 or error[0], f"the server ended with {code}"

    def request(self, method, path, body=None):
        """Sent; its answer is the connection's to give."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body if body is None or isinstance(body, (str, bytes)) else json.dumps(body))
        return connection

    def answer(self, method, path, body=None):
        connection = self.request(method, path, body)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def complete(self, **body):
        status, text = self.answer("POST", "/v1/completions", body)
        assert status == 200, text
        return json.loads(text)

    def tokens(self, **body):
        return self.complete(**body)["choices"][0]["tokens"]

    def stream(self, **body):
        """(connection, response) of a request whose first event is there."""
        connection = self.request("POST", "/v1/completions", dict(body, stream=True))
        response = connection.getresponse()
        assert response.status == 200 and response.getheader("Content-Type") == "text/event-stream"
        return connection, response

    def metrics(self):
        text = self.answer("GET", "/metrics")[1]
        rows = re.findall(r"^heddle_server_(\w+?)(?:_total)?(?:\{outcome=\"(\w+)\"\})? ([0-9.]+)$", text, re.M)
        return {outcome or name: float(value) for name, outcome, value in rows}

    def wait_for(self, **values):
        """Until metrics are these: they are, or the server is broken."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = self.metrics()
            if all(found[name] == value for name, value in values.items()):
                return found
            time.sleep(0.01)
        raise AssertionError(f"expected {values}, got {found}")


def events(response):
    """Events of an answer as they come; the last one is [DONE]."""
    for line in response:
        if line.startswith(b"data: "):
            data = line[6:].strip().decode()
            yield data if data == "[DONE]" else json.loads(data)


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.finfo(np.float32).eps) * weight


def gelu(x):
    from math import erf
    return x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def logits(tensors, text):
    """Of the byte behind the text, in fp64, from nothing but the weights."""
    w = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    count, dim, heads, kv_heads = len(text), SIZES["dim"], SIZES["heads"], SIZES["kv_heads"]
    head_dim = dim // heads
    angles = np.arange(count)[:, None] * np.exp(np.arange(0, dim, 2) * (-np.log(10000.0) / dim))
    x = w["embedding.weight"][list(text)] + np.stack((np.sin(angles), np.cos(angles)), -1).reshape(count, dim)
    q_at, k_at = np.arange(count)[:, None], np.arange(count)[None]
    kept = (k_at <= q_at) & ((k_at >= q_at - REACH["left"]) | (k_at < REACH["first"]))
    for layer in range(SIZES["layers"]):
        def weight(name):
            return w[f"blocks.{layer}.{name}"]
        rows = norm(x, weight("attention.0.weight")) @ weight("attention.1.project.weight").T
        q, k, v = np.split(rows.reshape(count, -1, head_dim).transpose(1, 0, 2), [heads, heads + kv_heads])
        k, v = (np.repeat(each, heads // kv_heads, 0) for each in (k, v))
        scores = np.where(kept, q @ k.transpose(0, 2, 1) / np.sqrt(head_dim), -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (weights / weights.sum(-1, keepdims=True)) @ v
        x = x + mixed.transpose(1, 0, 2).reshape(count, dim) @ weight("attention.1.out.weight").T
        wide = gelu(norm(x, weight("mlp.0.weight")) @ weight("mlp.1.weight").T + weight("mlp.1.bias"))
        x = x + wide @ weight("mlp.3.weight").T + weight("mlp.3.bias")
    return norm(x[-1], w["head.0.weight"]) @ w["head.1.weight"].T + w["head.1.bias"]


def greedy(tensors, text, count):
    text = bytearray(text)
    for _ in range(count):
        text.append(int(logits(tensors, text).argmax()))
    return list(text[-count:])

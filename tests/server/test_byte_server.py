"""examples/server: what it computes, what it shares, what it refuses, what it gives back."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from byte_server import PROGRAM, ROOT, SIZES, Server, events, greedy, np, run, write_weights

TEXT = b"Streaming attention: a query sees the first tokens of the sequence, itself and the keys before it. " * 3


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    return path, write_weights(path)


@pytest.fixture(scope="module")
def server(model):
    with Server(model[0], "--sequences=4", "--chunk=24") as running:
        yield running


def test_tokens_are_those_of_the_model(model, server):
    for length in (1, 20, 150):  # within the window, and beyond it
        prompt = TEXT[:length]
        assert server.tokens(prompt=list(prompt), max_tokens=12) == greedy(model[1], prompt, 12)


def requests():
    """Texts that begin alike, and some that do not; the likeliest bytes and bytes by chance; more than there are pages for."""
    for number in range(18):
        prompt = list(TEXT[:90 + 3 * number] if number % 3 else TEXT[number:40 + number])
        yield dict(prompt=prompt, max_tokens=50 + number % 3, temperature=0.7 * (number % 2), seed=number)


def test_together_is_as_alone(model):
    with Server(model[0], "--sequences=1", "--drafts=0", "--no-sharing", "--chunk=4096") as alone:
        expected = [alone.tokens(**each) for each in requests()]
        seen = alone.metrics()
        assert seen["cached_tokens"] == seen["drafted_tokens"] == seen["preemptions"] == seen["kept_pages"] == 0
    with Server(model[0], "--sequences=6", "--drafts=7", "--chunk=24", "--pages=32", "--gather=18") as together:
        with ThreadPoolExecutor(18) as pool:
            assert list(pool.map(lambda each: together.tokens(**each), requests())) == expected
        assert together.tokens(**next(requests())) == expected[0]
        seen = together.wait_for(running_requests=0, waiting_requests=0, used_pages=0)
        assert seen["finished"] == 19 and seen["generated_tokens"] == sum(map(len, expected)) + 50
        for name in ("cached_tokens", "accepted_tokens", "preemptions", "evictions", "kept_pages"):
            assert seen[name] > 0, name
        assert seen["accepted_tokens"] < seen["drafted_tokens"]


def test_clients_that_come_while_nobody_accepts_are_served(server):
    clients = []
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        for _ in range(200):
            clients.append(socket.create_connection(("127.0.0.1", server.port), timeout=60))
            clients[-1].sendall(b"GET /health HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    for client in clients:
        with client, client.makefile("rb") as answer:
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("page_size", (1, 48, 256))
def test_pages_of_other_sizes(model, server, page_size):
    body = dict(prompt=list(TEXT[:200]), max_tokens=10)
    with Server(model[0], f"--page-size={page_size}", "--pages=256") as other:
        assert other.tokens(**body) == server.tokens(**body)
        assert other.tokens(**body) == server.tokens(**body)
        cached = other.metrics()["cached_tokens"]
        assert cached == (199 // page_size) * page_size


def test_pages_behind_the_window_are_given_back(model):
    """A text of 40 pages of 16 has at most 4 at its start and 9 of its window, and needs no more."""
    with Server(model[0], "--pages=15", "--drafts=0", "--chunk=16", "--no-sharing") as small:
        assert len(small.tokens(prompt=list(TEXT), max_tokens=340)) == 340
        assert small.metrics()["preemptions"] == 0


def test_a_stream_is_the_answer_in_parts(server):
    body = dict(prompt="Zwölf", max_tokens=40)
    whole = server.complete(**body)
    connection, response = server.stream(**body)
    *parts, last, done = events(response)
    connection.close()
    assert done == "[DONE]" and last["usage"]["completion_tokens"] == 40 and last["usage"]["prompt_tokens"] == 6
    parts.append(last)
    assert sum((part["choices"][0]["tokens"] for part in parts), []) == whole["choices"][0]["tokens"]
    assert "".join(part["choices"][0]["text"] for part in parts) == whole["choices"][0]["text"]
    assert [part["choices"][0]["finish_reason"] for part in parts] == [None] * (len(parts) - 1) + ["length"]


def test_a_stop_text_ends_it_and_is_no_part_of_it(server):
    body = dict(prompt=list(TEXT[:64]), max_tokens=60)
    choice = server.complete(**body)["choices"][0]
    stop = next(found.group() for found in re.finditer("[\x20-\x7e]{2}", choice["text"]))
    found = server.complete(**body, stop=["never there", stop])["choices"][0]
    assert found["finish_reason"] == "stop" and found["text"] == choice["text"][:choice["text"].index(stop)]
    assert found["tokens"] == choice["tokens"][:len(found["tokens"])] and bytes(found["tokens"]).endswith(stop.encode())
    connection, response = server.stream(**body, stop=stop)
    assert "".join(each["choices"][0]["text"] for each in events(response) if each != "[DONE]") == found["text"]
    connection.close()


REFUSED = [
    ("{", "the body is no JSON: .*line 1, column 2"),
    ("[1]", r"expected a JSON object with model, prompt, .*, got \[1\]"),
    ({}, "prompt: is missing"),
    (dict(prompt=""), "prompt: expected at least one byte"),
    (dict(prompt=7), "prompt: expected a text, or an array of bytes, got 7"),
    (dict(prompt=[1, 256]), "prompt: expected bytes, 0 to 255, got 256"),
    (dict(prompt="a", max_tokens=0), "max_tokens: expected a whole number of 1 or more, got 0"),
    (dict(prompt="a", max_tokens=1.5), "max_tokens: expected a whole number of 1 or more, got 1.5"),
    (dict(prompt="a", max_tokens=10**15), "max_tokens: 1000000000000000 are too many"),
    (dict(prompt="a", max_tokens=1 << 25), "max_tokens: expected 1 to 16777216 with the prompt's 1 bytes, got 33554432"),
    (dict(prompt="a", temperature=-1), "temperature: expected 0 to 100, got -1"),
    (dict(prompt="a", seed="x"), 'seed: expected a whole number of 0 or more, got "x"'),
    (dict(prompt="a", stop=[""]), 'stop: expected a text that is not empty, or an array of them, got ""'),
    (dict(prompt="a", stop=["x"] * 9), "stop: expected at most 8 texts, got 9"),
    (dict(prompt="a", stream=1), "stream: expected true or false, got 1"),
    (dict(prompt="a", model="gpt"), 'model: expected byte-model, got "gpt"'),
    (dict(prompt="a", top_p=0.5), 'there is no field "top_p" here; there are model, prompt, max_tokens'),
]


def test_what_is_wrong_is_said(server):
    before = server.metrics()["refused"]
    for body, message in REFUSED:
        status, text = server.answer("POST", "/v1/completions", body)
        error = json.loads(text)["error"]
        assert status == 400 and error["code"] == "invalidArgument" and re.match(message, error["message"]), (body, error)
    assert server.metrics()["refused"] == before + len(REFUSED)
    status, text = server.answer("GET", "/v1/models")
    assert status == 404 and "there are POST /v1/completions" in json.loads(text)["error"]["message"]
    assert server.answer("GET", "/health") == (200, '{"status":"ok"}')


def test_a_request_that_never_fits_is_refused(model):
    with Server(model[0], "--pages=4") as small:
        status, text = small.answer("POST", "/v1/completions", dict(prompt="a", max_tokens=64))
        assert status == 400 and "max_tokens: 65 bytes with the prompt need 5 pages, the cache has 4" in text
        assert len(small.tokens(prompt="a", max_tokens=63)) == 63


def hang_up(connection):
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()


def test_who_goes_away_gives_everything_back(model, server):
    body = dict(prompt=list(TEXT[:100]), max_tokens=20)
    expected = server.tokens(**body)
    with Server(model[0], "--sequences=1", "--queue=1", "--no-sharing") as busy:
        first, response = busy.stream(prompt=list(TEXT), max_tokens=15000)
        next(events(response))
        second = busy.request("POST", "/v1/completions", dict(body, stream=True))
        busy.wait_for(running_requests=1, waiting_requests=1)
        status, text = busy.answer("POST", "/v1/completions", body)
        assert status == 503 and json.loads(text)["error"] == dict(code="unavailable", message="1 requests wait already")
        hang_up(second)  # which waits, and would be next
        busy.wait_for(running_requests=1, waiting_requests=0, cancelled=1)
        hang_up(first)
        response.close()
        seen = busy.wait_for(running_requests=0, waiting_requests=0, cancelled=2)
        assert seen["finished"] == seen["used_pages"] == seen["kept_pages"] == 0
        assert busy.tokens(**body) == expected


def test_a_server_that_ends_ends_its_requests(model):
    with Server(model[0]) as ending:
        connection, response = ending.stream(prompt="x", max_tokens=16000)
        next(events(response))
    connection.close()


def test_what_starts_no_server(model, tmp_path):
    bad = tmp_path / "bad.safetensors"
    assert run(f"--weights={bad}") == (1, f"byte-server: io: {bad}: cannot be read\n")
    bad.write_bytes(b"\xff" * 20)
    code, said = run(f"--weights={bad}")
    assert code == 1 and re.search("corrupt: .*: the header has 18446744073709551615 bytes, the file 20", said)
    whole = model[0].read_bytes()
    bad.write_bytes(whole[:-4])
    code, said = run(f"--weights={bad}")
    assert code == 1 and re.search(r"corrupt: .*its offsets are not those of \[", said)
    for changes, message in ((dict(head__1__bias=np.zeros(255, np.float32)), r"head\.1\.bias: expected \[256\], got \[255\]"),
                             (dict(kv_heads=3), f"heads, kv_heads, first and left do not fit a model of dim {SIZES['dim']}"),
                             (dict(left="far"), "__metadata__: left: expected a whole number, got far")):
        write_weights(bad, **changes)
        code, said = run(f"--weights={bad}")
        assert code == 1 and re.search(message, said), said
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, said = run(f"--weights={model[0]}", f"--port={taken.getsockname()[1]}")
    assert code == 1 and "cannot listen there" in said
    code, said = run(f"--weights={model[0]}", "--page-size=300")
    assert code == 2 and "--page-size" in said


def test_metrics_are_open_metrics(server):
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    families = {family.name for family in parser.text_string_to_metric_families(server.answer("GET", "/metrics")[1])}
    assert {"heddle_server_requests", "heddle_server_first_token_seconds", "heddle_refusals"} <= families


def test_calls_that_a_gpu_takes(tmp_path):
    """On the driver that records launches and computes nothing: what is asked of a GPU is what its kernel takes."""
    heddle, driver = os.environ.get("HEDDLE"), os.environ.get("HEDDLE_FAKE_CUDA")
    if not heddle or not driver:
        pytest.skip("HEDDLE and HEDDLE_FAKE_CUDA name no heddle and no driver")
    kernels, weights, fake = tmp_path / "kernels.db", tmp_path / "model.safetensors", {"HEDDLE_CUDA_DRIVER_LIBRARY": driver, "HEDDLE_FAKE_CUDA_ARCH": "80"}
    made = subprocess.run([heddle, "compile", os.path.join(ROOT, "patterns", "streaming.mlir"), "--kind=decode", "--head-dim=32", "--arch=sm_80", f"--db={kernels}"],
                          capture_output=True, text=True)
    if "NVRTC" in made.stderr:
        pytest.skip(made.stderr.splitlines()[0])
    assert made.returncode == 0, made.stderr
    write_weights(weights, dict(SIZES, dim=128))
    with Server(weights, f"--kernels={kernels}", "--pages=64", "--chunk=24", place="a GPU, bf16, kernel [0-9a-f]{12}", environment=fake) as gpu:
        with ThreadPoolExecutor(4) as pool:
            assert all(len(each) == 9 for each in pool.map(lambda length: gpu.tokens(prompt=list(TEXT[:length]), max_tokens=9), (1, 40, 100, 250)))
        text = gpu.answer("GET", "/metrics")[1]
        assert int(re.search(r'^heddle_launches_total\{.*kind="decode".*\} (\d+)$', text, re.M).group(1)) == SIZES["layers"] * gpu.metrics()["steps"]
        assert gpu.metrics()["failed"] == 0
    write_weights(weights, dict(SIZES, dim=256))
    done = subprocess.run([PROGRAM, f"--weights={weights}", f"--kernels={kernels}", "--port=0"], capture_output=True, text=True, timeout=60, env={**os.environ, **fake})
    assert done.returncode == 1 and re.search("notFound: .* decode bf16 head_dim=64 ", done.stderr), done.stderr


def test_load_prints_what_clients_saw(server):
    command = [sys.executable, os.path.join(ROOT, "examples", "server", "load.py"), f"http://127.0.0.1:{server.port}", "--clients=3", "--requests=8",
               "--tokens=6", "--texts=1", "--shared=48", "--own=9"]
    figures = json.loads(subprocess.run([*command, "--json"], check=True, capture_output=True, text=True, timeout=60).stdout)
    assert figures["requests"] == 8 and figures["errors"] == [] and figures["counted"]["generated_tokens"] == 48
    assert figures["cache_hits"] > 0.3 and 0 < figures["first_token_ms"]["p50"] <= figures["first_token_ms"]["p99"] <= figures["request_ms"]["p99"]
    said = subprocess.run([*command, "--tokens=33554432"], capture_output=True, text=True, timeout=60)
    assert said.returncode == 1 and "8 failed" in said.stdout and "400: " in said.stdout

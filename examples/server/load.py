#!/usr/bin/env python3
"""Load on a byte-server: load.py URL [--clients N] [--requests N] ... Each client sends one request after the other and reads its bytes as they
come. Prompts begin with one of a few shared texts, and end with one of their own. Prints what clients saw and what the server counted; --json
prints it as JSON. Standard library only."""
import argparse
import http.client
import json
import random
import re
import sys
import threading
import time
import urllib.parse

WORDS = "attention pattern keys queries window page cache prefix of the a is in to and kernel tile row head batch".split()
COUNTERS = ("prompt_tokens", "cached_tokens", "generated_tokens", "drafted_tokens", "accepted_tokens", "steps", "rows", "preemptions", "evictions")


def text(chance, size):
    words = ""
    while len(words) < size:
        words += chance.choice(WORDS) + " "
    return words[:size]


def prompts(given):
    chance = random.Random(given.seed)
    shared = [text(chance, given.shared) for _ in range(given.texts)]
    return [chance.choice(shared) + text(chance, chance.randint(1, given.own)) for _ in range(given.requests)]


class Load:
    def __init__(self, given):
        url = urllib.parse.urlsplit(given.url)
        self.given, self.place = given, (url.hostname, url.port or 80)
        self.left, self.lock = list(enumerate(prompts(given))), threading.Lock()
        self.firsts, self.gaps, self.wholes, self.errors, self.tokens = [], [], [], [], 0

    def counters(self):
        connection = http.client.HTTPConnection(*self.place, timeout=60)
        connection.request("GET", "/metrics")
        found = dict(re.findall(r"^heddle_server_(\w+)_total ([0-9.]+)$", connection.getresponse().read().decode(), re.M))
        return {name: int(found[name]) for name in COUNTERS}

    def client(self):
        while True:
            with self.lock:
                if not self.left:
                    return
                number, prompt = self.left.pop(0)
            try:
                self.one(number, prompt)
            except (OSError, ValueError, http.client.HTTPException) as error:
                with self.lock:
                    self.errors.append(f"request {number}: {type(error).__name__}: {error}")

    def one(self, number, prompt):
        body = dict(prompt=prompt, max_tokens=self.given.tokens, stream=True, temperature=self.given.temperature, seed=number)
        connection = http.client.HTTPConnection(*self.place, timeout=self.given.timeout)
        begin = last = time.perf_counter()
        connection.request("POST", "/v1/completions", json.dumps(body))
        response = connection.getresponse()
        if response.status != 200:
            raise ValueError(f"{response.status}: {response.read().decode()}")
        first, gaps, tokens = None, [], 0
        for line in response:
            if not line.startswith(b"data: {"):
                continue
            event, now = json.loads(line[6:]), time.perf_counter()
            count = len(event["choices"][0]["tokens"]) if "choices" in event else 0
            if count == 0 and "error" in event:
                raise ValueError(event["error"]["message"])
            if count == 0:
                continue
            first = first or now - begin
            gaps += [(now - last) / count] * count if tokens else []
            tokens, last = tokens + count, now
        connection.close()
        if tokens != self.given.tokens:
            raise ValueError(f"expected {self.given.tokens} bytes, got {tokens}")
        with self.lock:
            self.firsts.append(first), self.gaps.extend(gaps), self.wholes.append(last - begin)
            self.tokens += tokens

    def run(self):
        before, begin = self.counters(), time.perf_counter()
        threads = [threading.Thread(target=self.client) for _ in range(self.given.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds, after = time.perf_counter() - begin, self.counters()
        return self.figures(seconds, {name: after[name] - before[name] for name in COUNTERS})

    def figures(self, seconds, counted):
        def share(part, whole):
            return counted[part] / counted[whole] if counted[whole] else 0
        times = {name: quantiles(values) for name, values in (("first_token_ms", self.firsts), ("token_ms", self.gaps), ("request_ms", self.wholes))}
        return dict(requests=len(self.wholes), errors=self.errors, seconds=seconds, tokens_per_second=self.tokens / seconds,
                    requests_per_second=len(self.wholes) / seconds, **times, cache_hits=share("cached_tokens", "prompt_tokens"),
                    drafts_accepted=share("accepted_tokens", "drafted_tokens"), tokens_per_step=share("generated_tokens", "steps"), counted=counted)


def quantiles(seconds):
    ordered = sorted(seconds)
    return {f"p{percent}": 1000 * ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] for percent in (50, 99)} if ordered else {}


def show(figures):
    counted = figures["counted"]
    print(f"{figures['requests']} requests in {figures['seconds']:.2f} s, {len(figures['errors'])} failed: "
          f"{figures['tokens_per_second']:.0f} tokens/s, {figures['requests_per_second']:.1f} requests/s")
    for name, what in (("first_token_ms", "to the first token"), ("token_ms", "between tokens"), ("request_ms", "a request")):
        if figures[name]:
            print(f"  {what}: p50 {figures[name]['p50']:.1f} ms, p99 {figures[name]['p99']:.1f} ms")
    print(f"  prompts: {100 * figures['cache_hits']:.1f}% of {counted['prompt_tokens']} bytes were in the cache; "
          f"{counted['evictions']} pages evicted, {counted['preemptions']} requests preempted")
    print(f"  guesses: {100 * figures['drafts_accepted']:.1f}% of {counted['drafted_tokens']} were right; {figures['tokens_per_step']:.2f} tokens a step, "
          f"{counted['rows']} rows in {counted['steps']} steps")
    for error in figures["errors"][:5]:
        print(f"  {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="as the server prints it")
    for name, default, what in (("clients", 8, "at a time"), ("requests", 64, "in all"), ("tokens", 64, "of each result"), ("texts", 4, "shared beginnings"),
                                ("shared", 512, "bytes of them"), ("own", 128, "bytes of a prompt's own, at most"), ("seed", 1, "of chance"),
                                ("timeout", 600, "seconds of a silent server")):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{what} [{default}]")
    parser.add_argument("--temperature", type=float, default=0.0, help="0: the likeliest byte [0]")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    figures = Load(given).run()
    if given.json:
        print(json.dumps(figures))
    else:
        show(figures)
    sys.exit(1 if figures["errors"] else 0)


if __name__ == "__main__":
    main()

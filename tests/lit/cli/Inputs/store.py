# store.py FILE a|b|swapped: a small database of ours, made by the schema alone; no compiler and no GPU.
#   a        window: 20 us at batch 1, 30 us at batch 2; five trials; a name
#   b        window: 10 us at batch 1 by another kernel; causal; a trial of its own and one of a's
#   swapped  as b, with the code of one kernel in place of another's
import hashlib
import os
import sqlite3
import sys

SCHEMA = os.path.join(os.path.dirname(__file__), "../../../../runtime/Store/schema.sql")
PLAN = "heddle-plan 3\nkind forward\nroles q\nlaunch heddle_kernel\ngrid 1 1 1\nblock 1\nshared 0\nparams 8\nslot 0 ptr q\n"
WINDOW, CAUSAL = "aa" * 32, "bb" * 32


def digest(row):
    def text(value):
        if isinstance(value, float):
            return str(value).removesuffix(".0")
        return value.decode() if isinstance(value, bytes) else str(value)

    lines = (f"{name}=" + text(value).replace("\\", "\\\\").replace("\n", "\\n") + "\n" for name, value in row.items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def family(pattern):
    return {"pattern": pattern, "kind": "forward", "dtype": "bf16", "head_dim": 64, "value_dim": 64, "generator": "g1"}


def key(pattern, work, device):
    return {**family(pattern), "work_per_sm": work, "tiles_per_row": 3, "gqa_ratio": 1, "query_rows": 7,
            "batch": work, "heads": 8, "kv_heads": 8, "seqlen_q": 2048, "seqlen_k": 2048, "q_origin": 0, "k_origin": 0,
            "arguments": "1023", "device_name": device, "arch": "sm_90",
            "sm_count": 132, "memory_gib": 140}


class Database:
    def __init__(self, path):
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(path + suffix):
                os.remove(path + suffix)
        self.file = sqlite3.connect(path)
        self.file.executescript(open(SCHEMA).read() + "PRAGMA application_id = 0x68656464; PRAGMA user_version = 5;")

    def insert(self, table, row, extras={}):
        row = {**extras, **row, "checksum": digest(row)}
        marks = ", ".join("?" * len(row))
        self.file.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))

    def kernel(self, content, pattern, config):
        row = {"content_key": content, **family(pattern), "kernel_arch": "sm_90a", "min_driver": 12040, "config": config,
               "plan": PLAN, "cubin": b"code of " + content.encode(), "ptx": "// " + content, "registers": 168, "spill_bytes": 0,
               "shared_bytes": 65536, "compile_log": "", "nvrtc_version": "13.0", "note": ""}
        needs = {name: row[name] for name in ("content_key", "kernel_arch", "min_driver")}
        self.insert("kernels", row, {"needs_checksum": digest(needs)})

    def winner(self, content, of, us, tuned=1):
        self.insert("winners", {**of, "content_key": content, "is_tuned": tuned, "median_us": float(us),
                                "driver_version": 13000, "created_unix": 1795305600}, {"winner_key": digest(of)})

    def trial(self, of, config, us, outcome="measured", message=""):
        self.insert("trials", {**of, "config_digest": digest({"config": config}), "config": config,
                               "outcome": outcome, "median_us": float(us), "min_us": float(us), "max_error": 0.001, "message": message,
                               "registers": 168, "spill_bytes": 0, "compile_seconds": 1.5, "driver_version": 13000,
                               "created_unix": 1795305600, "sm_clock_mhz": 0, "power_watts": 0.0}, {"session_key": digest(of)})

    def name(self, name, pattern):
        self.insert("names", {"name": name, "pattern": pattern, "parameters": "left", "created_unix": 1795305600})


def make(path, which):
    store = Database(path)
    first, second = key(WINDOW, 1, "Some GPU"), key(WINDOW, 2, "Some GPU")
    if which == "a":
        store.kernel("1111aaaa", WINDOW, "block_m=128\nblock_n=64\nstages=2\n")
        store.winner("1111aaaa", first, 20)
        store.winner("1111aaaa", second, 30)
        store.trial(first, "block_m=128 block_n=64", 20)
        store.trial(first, "block_m=64 block_n=64", 25.5)
        store.trial(first, "block_m=64 block_n=128", 22)
        store.trial(first, "block_m=256 block_n=64", 0, "spilled", "200 bytes")
        store.trial(second, "block_m=128 block_n=64", 30)
        store.name("window", WINDOW)
    else:
        store.kernel("2222bbbb", WINDOW, "block_m=64\nblock_n=64\nstages=2\n")
        store.kernel("3333cccc", CAUSAL, "block_m=64\nblock_n=64\nstages=2\n")
        store.winner("2222bbbb", first, 10)
        store.winner("3333cccc", key(CAUSAL, 1, "Other GPU"), 0, tuned=0)
        store.trial(first, "block_m=64 block_n=64", 25.5)
        store.trial(first, "block_m=32 block_n=64", 10)
        store.name("window", WINDOW)
        store.name("causal", CAUSAL)
        if which == "swapped":
            store.file.execute("UPDATE kernels SET cubin = (SELECT cubin FROM kernels WHERE content_key = '3333cccc') WHERE content_key = '2222bbbb'")
    store.file.commit()
    store.file.close()


if __name__ == "__main__":
    make(*sys.argv[1:])

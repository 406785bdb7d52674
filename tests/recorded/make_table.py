"""make_table.py "CALL" GPU < TRIALS: writes a table of tests/data/tuner from what `heddle cache ls --trials --json` prints of a database that has
trials of one call on one GPU. CALL is what the table says it is of, as `heddle report --problem` takes it."""
import json
import sys


def rounded(value, digits):
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def row(trial):
    us = trial["min_us"] if trial["outcome"] == "stopped" else trial["median_us"]
    message = " ".join(trial["message"].split())[:500] if trial["outcome"] not in ("measured", "stopped") else ""
    return ",".join([trial["config"], trial["outcome"], rounded(us, 2), "0", rounded(trial["max_error"], 5), str(trial["registers"]),
                     str(trial["spill_bytes"]), rounded(trial["compile_seconds"], 2), message])


def main(call, gpu, trials):
    of_gpu = [trial for trial in trials if trial["device_name"] == gpu]
    if len({trial["pattern"] for trial in of_gpu}) != 1:
        sys.exit("make_table.py: expected trials of one pattern on " + gpu)
    first = of_gpu[0]
    print(f"# gpu: {gpu}\n# memory_gib: {first['memory_gib']}\n# problem: {call}\n# sm_count: {first['sm_count']}")
    print("config,outcome,median_us,spread,max_error,registers,spill_bytes,compile_seconds,message")
    for trial in of_gpu:
        print(row(trial))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.load(sys.stdin)["trials"])

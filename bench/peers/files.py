"""The files of results: OUT.json and OUT.md, written anew with every workload. No torch here."""
import datetime
import json
import os
import re
import threading

from peers import report

# Two files are of one machine if these agree.
SAME = ("GPU", "torch", "cuDNN", "heddle runtime")


class FileError(ValueError):
    pass


def read(path):
    """The results of an earlier run; FileError if these are none."""
    try:
        with open(path) as file:
            found = json.load(file)
        texts = {name: str(found[name]) for name in ("date", "command", "method")}
        return dict(found, **texts, workloads=list(found["workloads"]), not_measured=dict(found["not_measured"]), machine=dict(found["machine"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{path}: expected results of an earlier run: {type(error).__name__}: {error}") from error


def differences(first, second):
    """What keeps rows of two machines from standing in one table."""
    return [f"{name} {first[name]} and {second[name]}" for name in SAME if name in first and name in second and first[name] != second[name]]


def by_name(value, paths):
    """With file names in place of these paths, wherever they stand in its texts: where a machine keeps its files is no result."""
    if isinstance(value, dict):
        return {name: by_name(each, paths) for name, each in value.items()}
    if isinstance(value, list):
        return [by_name(each, paths) for each in value]
    if isinstance(value, str):
        for path in sorted((path.rstrip("/") for path in paths), key=len, reverse=True):
            if "/" in path:
                value = re.sub(rf"(?<![\w./-]){re.escape(path)}(?!\w)", lambda _, name=os.path.basename(path): name, value)
    return value


def text(content):
    """JSON with a line for each name, and for each element of a list of objects."""
    def lines(value):
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
        return json.dumps(value)
    return "{\n " + ",\n ".join(f"{json.dumps(name)}: {lines(value)}" for name, value in content.items()) + "\n}\n"


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


class Results:
    """What is known so far, in the order asked for; of `paths` it gives file names alone. Any number of threads adds."""

    def __init__(self, output, names, columns, command, method, paths=()):
        self.output, self.names, self.columns, self.paths, self.lock = output, list(names), columns, paths, threading.Lock()
        self.header = {"command": command, "method": method}
        self.rows, self.machine = {}, {}

    def resume(self, path):
        """Takes what an earlier run wrote, but for workloads that it could not measure or that lack a column of this one."""
        earlier = read(path)
        self.machine = earlier["machine"]
        kept = [row for row in earlier["workloads"] if self.has_all_columns(row)]
        self.rows = {row["name"]: row for row in kept}
        self.names = list(dict.fromkeys([row["name"] for row in kept] + self.names))

    def has_all_columns(self, row):
        """Whether they were asked for; some may have no value."""
        entries = [entry for entry in row["entries"] if "values" in entry]
        return all(column.name in entry["values"] or column.name in entry["no_value"] for entry in entries for column in self.columns)

    def missing(self, names):
        return [name for name in names if name not in self.rows]

    def set_machine(self, machine):
        """FileError if it is not the one of the rows that are there."""
        with self.lock:
            different = differences(self.machine, machine)
            if different:
                raise FileError(f"{self.output}: its rows are of another machine: {', '.join(different)}; choose another file")
            self.machine.update(machine)

    def add(self, row):
        with self.lock:
            self.rows[row["name"]] = row
            self.write()

    def content(self):
        rows = [self.rows[name] for name in self.names if name in self.rows]
        content = {"date": now(), **self.header, "machine": self.machine,
                   "columns": [{"name": column.name, "title": column.title, "unit": column.unit} for column in self.columns],
                   "workloads": [row for row in rows if "entries" in row],
                   "not_measured": {row["name"]: row["verdict"] for row in rows if "entries" not in row}}
        return by_name(content, self.paths)

    def write(self):
        content = self.content()
        partial = self.output + ".partial"
        with open(partial, "w") as file:
            file.write(text(content))
        os.replace(partial, self.output)
        with open(os.path.splitext(self.output)[0] + ".md", "w") as file:
            file.write(report.markdown(content, self.columns))

    def is_right(self):
        def right(row):
            own = [entry for entry in row.get("entries", ()) if report.is_own(entry)]
            return bool(own) and all(entry["ok"] for entry in own)
        return all(right(row) for row in self.rows.values())


def merge(results, paths):
    """Rows of several files, of which later ones win."""
    parts = [read(path) for path in paths]
    for part in parts:
        results.set_machine(part["machine"])
        results.rows.update({name: {"name": name, "verdict": reason} for name, reason in part["not_measured"].items() if name not in results.rows})
        results.rows.update({row["name"]: row for row in part["workloads"]})
    results.names = list(dict.fromkeys(results.names + list(results.rows)))
    results.header = {"date": max(part["date"] for part in parts),
                      **{name: "; ".join(dict.fromkeys(part[name] for part in parts)) for name in ("command", "method")}}
    results.write()

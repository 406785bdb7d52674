"""What a run knows: workloads, columns and providers, the standard ones and those of plug-ins. No torch here.

A plug-in is a Python file with any of the lists WORKLOADS (Workload), COLUMNS (Column) and PROVIDERS (Provider).
"""
import fnmatch
import importlib.util
import os

from peers import columns, providers, workloads
from peers.columns import Column
from peers.launch import Provider
from peers.workload import Workload

_KINDS = {"WORKLOADS": Workload, "COLUMNS": Column, "PROVIDERS": Provider}


class PluginError(ValueError):
    pass


class Bench:
    def __init__(self, files=()):
        self.workloads, self.columns, self.providers = dict(workloads.WORKLOADS), list(columns.STANDARD), []
        self.groups = dict(workloads.GROUPS)
        for file in files:
            self._add(file)

    def find(self, name):
        if name.endswith(workloads.BACKWARD) and (forward := self.workloads.get(name[:-len(workloads.BACKWARD)])):
            return workloads.backward_of(forward)
        return self.workloads.get(name) or workloads.find(name)

    def names(self, words):
        """Of names, groups and globs, each once, in their order; PluginError for a word that stands for nothing."""
        found = {}
        for word in words:
            matching = self.groups.get(word) or ([word] if self.find(word) else fnmatch.filter({**self.workloads, **self._sweep()}, word))
            if not matching:
                raise PluginError(f"no workload {word}; --list names those that there are, and groups: {' '.join(self.groups)}")
            found.update(dict.fromkeys(matching))
        return list(found)

    def _sweep(self):
        return dict.fromkeys(self.groups["sweep"])

    def _add(self, file):
        module = _loaded(file)
        lists = {name: list(getattr(module, name)) for name in _KINDS if hasattr(module, name)}
        if not lists:
            raise PluginError(f"{file}: expected one of the lists {', '.join(_KINDS)}")
        for name, entries in lists.items():
            for entry in entries:
                if not isinstance(entry, _KINDS[name]):
                    raise PluginError(f"{file}: {name}: expected {_KINDS[name].__module__}.{_KINDS[name].__name__}, got {entry!r}")
                self._add_one(file, name, entry)
        if "WORKLOADS" in lists:
            group = os.path.splitext(os.path.basename(file))[0]
            self.groups.setdefault(group, [workload.name for workload in lists["WORKLOADS"]])

    def _add_one(self, file, name, entry):
        taken = {"WORKLOADS": self.workloads, "COLUMNS": {column.name for column in self.columns},
                 "PROVIDERS": {provider.name for provider in (*providers.PEERS, *self.providers)}}[name]
        if entry.name in taken:
            raise PluginError(f"{file}: {name}: there is already one named {entry.name}")
        if name == "WORKLOADS":
            self.workloads[entry.name] = entry
        else:
            (self.columns if name == "COLUMNS" else self.providers).append(entry)


def _loaded(file):
    if not os.path.exists(file):
        raise PluginError(f"{file}: no such file")
    specification = importlib.util.spec_from_file_location(f"peers_plugin_{os.path.basename(file)[:-3]}", file)
    if specification is None:
        raise PluginError(f"{file}: expected a Python file, NAME.py")
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        raise PluginError(f"{file}: {type(error).__name__}: {error}") from error
    return module

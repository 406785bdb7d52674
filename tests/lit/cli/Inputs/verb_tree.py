"""The verbs and operations of heddle, as its help lists them."""
import re
import subprocess


def run(*words):
    return subprocess.run(["heddle", *words], capture_output=True, text=True)


def below(*path):
    listed = re.search(r"\nSubcommands:\n(.*?)(\n\n|$)", run(*path, "--help").stdout, re.S)
    return re.findall(r"^  ([a-z-]+)", listed.group(1), re.M) if listed else []


def leaves(*path):
    subs = below(*path)
    return [leaf for sub in subs for leaf in leaves(*path, sub)] if subs else [path]

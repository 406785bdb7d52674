"""The tables that the library checks calls by, as it gives them: `tables()["kinds"]`."""
import functools
import json

from . import _library


@functools.lru_cache(maxsize=None)
def tables():
    return json.loads(_library.library().tables())

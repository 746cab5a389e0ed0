"""Parse each IDL file once for all generators of a build of rnea_msgs; see .ci/messages. Python imports this at its start.

Six generators parse the same 43 files, each with lark's parser for any grammar: half of their processor time.
"""

import fcntl
import hashlib
import os
import pickle
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path


class _ParseOnce(MetaPathFinder):
    """Finder that replaces rosidl_parser.parser.parse_idl_string by one with a cache in the folder RNEA_PARSED_IDL."""

    def find_spec(self, name, path=None, target=None):
        if name != "rosidl_parser.parser":
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec

        spec = find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            module.parse_idl_string = _cached(module.parse_idl_string)

        spec.loader.exec_module = exec_module
        return spec


def _cached(parse):
    def parse_idl_string(text, png_file=None):
        file = Path(os.environ["RNEA_PARSED_IDL"], hashlib.sha256(text.encode()).hexdigest())
        with file.open("ab+") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)  # another generator may be parsing it
            stream.seek(0)
            if content := stream.read():
                return pickle.loads(content)
            found = parse(text)
            stream.write(pickle.dumps(found))
            return found

    return parse_idl_string


if "RNEA_PARSED_IDL" in os.environ:
    sys.meta_path.insert(0, _ParseOnce())

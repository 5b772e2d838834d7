#!/usr/bin/env python3
"""Reads exported files with Python's parsers, as the frameworks do: parse_files.py FILE…"""

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path


def parse_yaml(text):
    import yaml

    tree = yaml.safe_load(text)
    rate = tree.get("optim", {}).get("lr") or tree["optimizer"]["learning_rate_scheduler"]["learning_rate"]
    # YAML 1.1 takes numbers like 1e-5 for texts.
    assert isinstance(rate, float), rate
    assert "null" not in str(tree), tree  # a text instead of nothing
    return tree


PARSERS = {".json": json.loads, ".toml": tomllib.loads, ".yaml": parse_yaml, ".py": ast.parse}

for name in sys.argv[1:]:
    path = Path(name)
    if path.suffix == ".sh":
        subprocess.run(["bash", "-n", name], check=True)
        continue
    assert PARSERS[path.suffix](path.read_text()), name

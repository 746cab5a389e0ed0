"""Sphinx configuration for rosdoc2, which copies this folder and runs it from a conf.py that names this one.

Files that the pages need are copied next to it, in the layout of the repository. `make docs` does not use it.
"""

import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = Path(re.search(r'open\("(.+?)"\)', Path(__file__).read_text(encoding="utf-8"))[1]).parents[2]
sys.path.insert(0, str(REPOSITORY / "docs"))
from conf import *  # noqa: E402, F403  that of docs/

for folder in ("docs", "benchmark"):
    shutil.copytree(REPOSITORY / folder, HERE / folder, ignore=shutil.ignore_patterns("*.py*", "gallery", "generated"))
for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.rst", "QUALITY_DECLARATION.md"):
    shutil.copyfile(REPOSITORY / name, HERE / name)
for name in ("examples", "rnea_ros"):  # pages show parts of them
    (HERE / name).symlink_to(REPOSITORY / name)

gallery.PAGES, gallery_run = HERE / "docs" / "gallery", False  # noqa: F405
root_doc = "index"
include_patterns = ["index.rst", *include_patterns]  # noqa: F405
extensions = [name for name in extensions if name != "sphinx_copybutton"]  # noqa: F405  the build farm has neither that nor furo
html_theme_options, html_extra_path, html_static_path = {}, [], ["docs/static", *html_static_path[1:]]  # noqa: F405
templates_path = ["docs/api/templates"]

#!/usr/bin/python3
"""The page's own tests: `unit`, of what is pure, and `browser`, of each view against an invented cluster.

Skipped, loudly, where there is no npm, or no chromium: ./run setup installs them."""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
APP = ROOT / "page/app"
CHROMIUM = os.environ.get("SIDING_CHROMIUM", "/usr/bin/chromium")
SKIPPED = 77


def missing(browser):
    """What is not there; empty: nothing."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "npm is not installed, so there is no page"
    if not (APP / "node_modules/.siding-installed").exists():
        return "the page's packages are not installed: build sidingd"
    if browser and not os.access(CHROMIUM, os.X_OK):
        return f"{CHROMIUM} is not there: no browser to look at the page with"
    return ""


def main():
    what = sys.argv[1]
    lacks = missing(what == "browser")
    if lacks:
        print(f"skipped: {lacks}")
        return SKIPPED
    if what == "unit":
        return subprocess.run([APP / "with-packages", "node", "build.mjs", "--unit-tests"]).returncode
    built = pathlib.Path(os.environ["SIDING_BIN"]).parent / "page/app/dist"
    tests = sorted(map(str, (APP / "test/browser").glob("*.test.mjs")))
    return subprocess.run(["node", "--test", *tests], cwd=APP, env={**os.environ, "SIDING_PAGE": str(built)}).returncode


if __name__ == "__main__":
    sys.exit(main())

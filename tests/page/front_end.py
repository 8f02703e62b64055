#!/usr/bin/python3
"""The page's own tests: `unit`, of what is pure, and `browser`, of each view against an invented cluster.

Skipped, loudly, where the page is not built (SIDING_PAGE), or there is no chromium: ./run setup installs what both need."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
APP = ROOT / "page/app"
CHROMIUM = os.environ.get("SIDING_CHROMIUM", "/usr/bin/chromium-headless-shell")
BUILT = pathlib.Path(os.environ.get("SIDING_BIN", ROOT / "build/dev/bin")).parent / "page/app/dist"
SKIPPED = 77


def missing(browser):
    """What is not there; empty: nothing."""
    if not (BUILT / "index.html").exists() or not (APP / "node_modules/.siding-installed").exists():
        return "sidingd is built without the page (SIDING_PAGE)"
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
    tests = sorted(map(str, (APP / "test/browser").glob("*.test.mjs")))
    return subprocess.run(["node", "--test", *tests], cwd=APP, env={**os.environ, "SIDING_PAGE": str(BUILT)}).returncode


if __name__ == "__main__":
    sys.exit(main())

"""Which sources clang-tidy looks at, by what has changed or by turns. Paths are relative to the repository."""

import pathlib
import re
import subprocess
import zlib

INCLUDE = re.compile(r'^#include\s+"([^"]+)"', re.MULTILINE)


def git(root, *arguments):
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.split("\0" if "-z" in arguments else "\n")


def changed(root, main="main"):
    """Files that differ from where this branch left `main`, whether that is committed or not."""
    base = git(root, "merge-base", "HEAD", main)[0]
    differ = git(root, "diff", "-z", "--name-only", "--no-renames", "--diff-filter=d", base)
    fresh = git(root, "ls-files", "-z", "--others", "--exclude-standard")
    return {name for name in [*differ, *fresh] if name}


def includes(root):
    """What each of our files includes of ours."""
    names = set(filter(None, git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.h", "*.cc", "*.c")))
    return {name: {i for i in INCLUDE.findall((root / name).read_text()) if i in names}
            for name in names if (root / name).is_file()}


def includer(header, sources, included):
    """A source that compiles the header: its own, or its test, or else the first of those that are nearest."""
    stem = header.removesuffix(".h")
    for own in (f"{stem}.cc", f"{stem}.c", f"{stem}_test.cc"):
        if own in sources:
            return own
    seen, reached = {header}, {header}
    while reached:
        reached = {name for name, of in included.items() if of & reached} - seen
        if near := sorted(reached & sources):
            return near[0]
        seen |= reached
    return None  # nothing compiles it


def of_change(changes, sources, included):
    """The sources among the changes, and one for each header."""
    picked = changes & sources
    headers = {includer(name, sources, included) for name in changes if name.endswith(".h")}
    return picked | (headers - {None})


def share(sources, number, of):
    """One of `of` parts of what is not a test, which `number` turns through. A source stays in its part whatever comes or
    goes beside it. Tests take more than half of the time, and are looked at where they change."""
    return {name for name in sources if not is_test(name) and zlib.crc32(name.encode()) % of == number % of}


def is_test(name):
    return name.endswith("_test.cc") or name.startswith("tests/")


def numbers(text):
    """"N/M"."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or int(match.group(2)) == 0:
        raise ValueError(f"expected N/M, such as 3/16, got '{text}'")
    return int(match.group(1)), int(match.group(2))


def compiled(database, root):
    """The sources that the build compiles, and how: without what only g++ understands.

    Its precompiled headers clang cannot read, and each source includes what it uses without them."""
    commands = {}
    for entry in database:
        path = pathlib.Path(entry["directory"], entry["file"])
        if not path.is_relative_to(root) or path.is_relative_to(pathlib.Path(entry["build"])):
            continue
        commands.setdefault(str(path.relative_to(root)), for_clang(entry["arguments"]))
    return commands


def for_clang(arguments):
    kept = []
    words = iter(arguments)
    for word in words:
        if word == "-include":
            next(words)  # CMake's precompiled header, which is all that our build includes by force
        elif word not in ("-Winvalid-pch", "-fpch-preprocess") and not word.startswith("-Wno-error="):
            kept.append(word)
    return kept + ["-Wthread-safety"]

#!/usr/bin/python3
"""Every source is as .clang-format wants it."""

import pathlib
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Format(unittest.TestCase):
    @unittest.skipUnless(shutil.which("clang-format"), "clang-format is not installed")
    def test_sources_are_formatted(self):
        names = subprocess.run(["git", "ls-files", "*.h", "*.cc", "*.c", "*.cu", "*.cuh"], cwd=ROOT,
                               capture_output=True, text=True).stdout.split()
        done = subprocess.run(["clang-format", "--dry-run", "-Werror", *names], cwd=ROOT, capture_output=True, text=True)
        bad = sorted({line.split(":")[0] for line in done.stderr.splitlines() if "error:" in line})
        self.assertEqual(bad, [], "run ./run format")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/python3
"""The bugs that tests/simulation/planted plants fit the code as it is now."""

import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Planted(unittest.TestCase):
    def test_each_can_be_planted(self):
        patches = sorted((ROOT / "tests" / "simulation" / "planted").rglob("*.patch"))
        self.assertTrue(patches)
        for patch in patches:
            with self.subTest(patch.stem):
                done = subprocess.run(["patch", "-d", ROOT, "-p1", "--dry-run", "--fuzz=0", "-i", patch], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

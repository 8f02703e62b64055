#!/usr/bin/python3
"""A unit test that can start threads says so in its CMakeLists.txt (THREADS): only those run under ThreadSanitizer in
`./run check`."""

import json
import os
import pathlib
import subprocess
import unittest

BUILD = pathlib.Path(os.environ["SIDING_BIN"]).parent


def unit_tests():
    """Program and labels of each."""
    listed = subprocess.run(["ctest", "--show-only=json-v1", "-L", "unit"], cwd=BUILD, capture_output=True, text=True, check=True)
    for test in json.loads(listed.stdout)["tests"]:
        labels = next(p["value"] for p in test["properties"] if p["name"] == "LABELS")
        yield test["command"][0], labels


def can_start_threads(program):
    done = subprocess.run(["nm", "--demangle", "--undefined-only", program], capture_output=True, text=True, check=True)
    return "std::thread::_M_start_thread" in done.stdout


class Threads(unittest.TestCase):
    def test_those_with_threads_are_marked_and_no_others(self):
        for program, labels in unit_tests():
            with self.subTest(program=program):
                self.assertEqual(can_start_threads(program), "threads" in labels)

    def test_there_are_some_of_both(self):
        self.assertEqual({"threads" in labels for _, labels in unit_tests()}, {True, False})


if __name__ == "__main__":
    unittest.main()

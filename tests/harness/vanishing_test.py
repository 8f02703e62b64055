#!/usr/bin/python3
"""What has gone is no error, and everything else is one."""

import os
import pathlib
import tempfile
import unittest
import unittest.mock

from vanishing import folders_below, may_be_gone, paths, removed


class Vanishing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_paths_are_those_of_pathlib(self):
        for name in ("a/b/c", "a/.b/c", ".a/b/.c", "[a]/b/c"):
            (self.folder / name).mkdir(parents=True)
        for pattern in ("*", "*/*", "a/*", "[[]a]/*", "**/c", "**/*", "*/b/*", "*/"):
            self.assertEqual(sorted(paths(self.folder, pattern)), sorted(self.folder.glob(pattern)), pattern)
        self.assertEqual(paths(self.folder / "[a]", "*"), [self.folder / "[a]" / "b"])
        self.assertEqual(paths(self.folder / "none", "*"), [])

    def test_a_folder_that_goes_before_it_is_read_is_no_error(self):
        scandir = os.scandir

        def late(folder):
            if pathlib.Path(folder).name == "a":
                os.rmdir(f"{folder}/b")
                os.rmdir(folder)
            return scandir(folder)
        for look in (lambda: paths(self.folder, "*/*"), lambda: paths(self.folder, "**/*"), lambda: folders_below(self.folder)):
            for name in ("a/b", "c/d"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            with unittest.mock.patch.object(os, "scandir", late):
                found = look()
            self.assertFalse((self.folder / "a").exists())
            self.assertIn(self.folder / "c" / "d", found)

    def test_what_may_be_gone(self):
        with may_be_gone():
            (self.folder / "none").read_text()
        with may_be_gone():
            os.kill(2**22, 0)  # more than a process can have
        with self.assertRaises(IsADirectoryError), may_be_gone():
            self.folder.read_text()

    def test_what_holds_something_is_not_removed(self):
        (self.folder / "a/b").mkdir(parents=True)
        self.assertFalse(removed(self.folder / "a"))
        self.assertTrue(removed(self.folder / "a/b"))
        self.assertTrue(removed(self.folder / "a"))
        self.assertTrue(removed(self.folder / "a"))


if __name__ == "__main__":
    unittest.main()

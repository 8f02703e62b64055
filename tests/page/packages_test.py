#!/usr/bin/python3
"""page/app/with-packages: the page's packages are installed once for all who build, and again when they are other ones."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "page/app/with-packages"

# Notes that it was called, and does what npm does with what is there. It waits until FOLDER/go can be read.
NPM = """#!/bin/sh
echo "$*" >>"$FOLDER/calls"
rm -rf node_modules
cat "$FOLDER/go" >/dev/null || exit 1
mkdir node_modules
"""


class Packages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="siding-packages-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.app, self.bin = self.dir / "app", self.dir / "bin"
        self.app.mkdir()
        self.bin.mkdir()
        shutil.copy(SCRIPT, self.app)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            (self.app / name).write_text(name)
        (self.bin / "npm").write_text(NPM)
        (self.bin / "npm").chmod(0o755)
        (self.dir / "go").touch()

    def start(self, *command):
        env = {"PATH": f"{self.bin}:{os.environ['PATH']}", "FOLDER": str(self.dir)}
        process = subprocess.Popen([self.app / SCRIPT.name, *command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def run_it(self, *command):
        """Exit status, and what was said."""
        process = self.start(*command)
        said, problem = process.communicate()
        return process.returncode, said + problem

    def calls(self):
        return (self.dir / "calls").read_text().splitlines() if (self.dir / "calls").exists() else []

    def test_the_command_finds_them_in_its_folder(self):
        self.assertEqual(self.run_it("sh", "-c", "test -d node_modules && echo there"), (0, "there\n"))
        self.assertEqual(self.calls(), ["ci --ignore-scripts --loglevel=error"])

    def test_what_is_installed_is_left_alone(self):
        self.run_it("true")
        (self.app / "node_modules/in-use").touch()
        self.assertEqual(self.run_it("cat", "node_modules/in-use"), (0, ""))
        self.assertEqual(len(self.calls()), 1)

    def test_others_are_installed_anew(self):
        self.run_it("true")
        for name in ("package.json", "package-lock.json", ".npmrc"):
            (self.app / name).write_text("others")
            self.run_it("true")
        self.assertEqual(len(self.calls()), 4)

    def test_who_comes_while_they_are_installed_waits_for_it(self):
        (self.dir / "go").unlink()
        os.mkfifo(self.dir / "go")
        both = [self.start("test", "-d", "node_modules") for _ in range(2)]
        (self.dir / "go").write_text("")  # as soon as it is read
        self.assertEqual([process.wait() for process in both], [0, 0])
        self.assertEqual(len(self.calls()), 1)

    def test_what_was_not_installed_whole_is_not_taken_for_it(self):
        self.run_it("true")
        (self.app / "package-lock.json").write_text("others")
        (self.dir / "go").unlink()
        status, said = self.run_it("true")
        self.assertEqual(status, 1)
        self.assertIn("could not be installed; without the page: cmake -DSIDING_PAGE=OFF", said)
        (self.dir / "go").touch()
        self.assertEqual(self.run_it("true"), (0, ""))
        self.assertTrue((self.app / "node_modules").is_dir())

    def test_the_end_of_the_command_is_told(self):
        self.assertEqual(self.run_it("sh", "-c", "exit 3")[0], 3)


if __name__ == "__main__":
    unittest.main()

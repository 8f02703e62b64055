"""What the examples' tests share: a folder of their own, running a program, and waiting for what it does."""

import os
import pathlib
import subprocess
import tempfile
import time
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parent


class ExampleCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="siding-example-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.count = 0

    def new_out(self):
        self.count += 1
        return self.folder / f"out.{self.count}"

    def start(self, command, **env):
        """Starts a program; its output goes to a file, which `log` reads. It is ended with the test."""
        self.count += 1
        path = self.folder / f"log.{self.count}"
        with open(path, "w") as output:
            process = subprocess.Popen([str(c) for c in command], env=dict(os.environ, **env), cwd=self.folder,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        process.path = path
        self.addCleanup(self._end, process)
        return process

    @staticmethod
    def _end(process):
        if process.poll() is None:
            process.kill()
            process.wait()

    @staticmethod
    def log(process):
        return process.path.read_text()

    def until(self, condition, what):
        deadline = time.monotonic() + 60
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f"timed out waiting for {what}")
            time.sleep(0.002)

    def finish(self, process, expected=0):
        self.assertEqual(process.wait(timeout=60), expected, self.log(process))

    def digest(self, out):
        """The first word of a result: what the demo compares."""
        return out.read_text().split()[0]

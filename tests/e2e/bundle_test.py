#!/usr/bin/python3
"""sidingctl bundle collects what a report of a fault needs, and nothing that is secret."""

import json
import pathlib
import stat
import subprocess
import sys
import tarfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from case import ClusterCase  # noqa: E402

SECRET = "hunter2-of-ada"


class Bundle(ClusterCase):
    nodes = ("n1",)

    def setUp(self):
        super().setUp()
        self.settings = self.cluster.dir / "settings"
        self.settings.mkdir()
        (self.settings / "sidingd.yaml").write_text(f"events_to:\n  - {{name: a, url: https://h.example.org/{SECRET}, secret: /k}}\n")
        (self.settings / "hook.key").write_text(SECRET)
        self.file = self.cluster.dir / "bundle.tar.gz"

    def bundle(self, *args):
        argv = [*self.cluster.ctl_program(), *self.cluster.ctl_connection(), "bundle", self.file, "--settings", self.settings, *args]
        return subprocess.run([str(a) for a in argv], capture_output=True, text=True)

    def unpacked(self):
        with tarfile.open(self.file) as archive:
            members = archive.getmembers()
            self.assertTrue(all(m.isreg() and m.mode == 0o600 for m in members))
            return {m.name.split("/", 1)[1]: archive.extractfile(m).read().decode() for m in members}

    def test_it_has_what_the_controller_knows(self):
        job = self.counter()
        self.wait_counting(job)
        done = self.bundle()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        files = self.unpacked()
        self.assertEqual([n["name"] for n in json.loads(files["controller/nodes.json"])["nodes"]], ["n1"])
        self.assertEqual([int(j["id"]) for j in json.loads(files["controller/jobs.json"])["jobs"]], [job])
        kinds = [json.loads(line)["kind"] for line in files["controller/events.json"].splitlines()]
        self.assertIn("started", kinds)
        self.assertEqual(files["controller/doctor.txt"], "nothing to mend\n")
        self.assertIn("Linux", files["machine/kernel.txt"])
        self.assertTrue(all(name in files["README.txt"] for name in files if name != "README.txt"))

    def test_nothing_secret_is_in_it(self):
        job = self.cluster.submit("--env", f"TOKEN={SECRET}", "--workdir", self.cluster.dir, "--output", f"{self.outputs()}/%j", "--",
                                  "/bin/echo", SECRET)
        self.cluster.wait_state(job, "done")
        self.assertEqual(self.bundle().returncode, 0)
        files = self.unpacked()
        self.assertEqual([name for name, text in files.items() if SECRET in text], [])
        self.assertIn("https://h.example.org/(left out)", files["settings/sidingd.yaml"])
        self.assertNotIn("settings/hook.key", files)

    def test_only_its_owner_may_read_it(self):
        self.bundle()
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)

    def test_without_a_controller_it_says_what_is_missing(self):
        self.cluster.controller.terminate()
        self.cluster.controller.wait()
        done = self.bundle("--json")
        self.assertEqual(done.returncode, 0)
        missing = {e["name"]: e["missing"] for e in json.loads(done.stdout)["entries"]}
        self.assertIn("no controller answers", missing["controller/nodes.json"])
        self.assertIn("machine/kernel.txt", self.unpacked())
        self.cluster.start_controller()

    def test_a_file_that_is_there_is_not_replaced(self):
        self.file.write_text("precious")
        done = self.bundle()
        self.assertEqual((done.returncode, self.file.read_text()), (1, "precious"))
        self.assertIn("--force replaces it", done.stderr)
        self.assertEqual(self.bundle("--force").returncode, 0)
        self.assertIn("README.txt", self.unpacked())


if __name__ == "__main__":
    unittest.main()

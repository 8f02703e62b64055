#!/usr/bin/python3
"""siding-store and the images of real jobs: what it exports is what criu restores, and what it repairs brings a job back."""

import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import isolated  # noqa: E402
import jobs  # noqa: E402
from case import ClusterCase, wait_for  # noqa: E402
from cluster import BIN, PATIENCE  # noqa: E402
from machines import Machines  # noqa: E402

MIB = 32
IMAGE = pathlib.Path(__file__).resolve().parents[2] / "store" / "testdata" / "version1"
HELD = "agent.restore.united"  # the agent has made an image whole, and criu has not begun


class StoreTool(ClusterCase):
    """A job that is tracked, with a row of checkpoints: the last has parents."""

    nodes = ("machine1",)
    policy = ClusterCase.policy + "keep_checkpoints: 20\n"  # none is deleted while it is looked at

    def make_cluster(self):
        return Machines(self.nodes, self.slots, policy=self.policy)

    def setUp(self):
        super().setUp()
        gate = self.new_gate()
        argv = jobs.command(self.cluster.dir, "table", jobs.TABLE, gate, MIB)
        # The interval is far longer than a test: it has the job tracked, and each checkpoint is made by hand.
        self.job = self.submit_gated(gate, "--name", "table", "--slots", 1, "--preemptible=checkpoint", "--checkpoint-interval", "1h",
                                     "--workdir", self.cluster.dir, "--output", f"{self.outputs()}/%j.%r", "--", *argv)
        self.wait_counting(self.job)
        for _ in range(3):
            self.wait_goes_on(self.job)
            self.cluster.ctl("checkpoint", self.job)
        self.checkpoint = max(self.checkpoints("good"), key=lambda name: int(name.split(".")[1]))
        self.image = self.cluster.shared / "images" / self.checkpoint / "0"
        self.exported = self.cluster.dir / "exported"

    def siding_store(self, *args):
        done = subprocess.run([BIN / "siding-store", *map(str, args)], capture_output=True, text=True, timeout=PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def export(self):
        code, said = self.siding_store("export", self.cluster.shared, self.checkpoint, 0, self.exported)
        self.assertEqual(code, 0, said)

    def listed(self):
        code, said = self.siding_store("list", self.cluster.shared, "--json")
        self.assertEqual(code, 0, said)
        return json.loads(said)

    def lose_the_machine(self):
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")

    def count(self, kind):
        return [e["kind"] for e in self.cluster.events(self.job)].count(kind)


class Listed(StoreTool):
    def test_what_images_share_is_held_once(self):
        listed = self.listed()
        last = next(i for i in listed["images"] if i["checkpoint"] == self.checkpoint)
        self.assertGreater(last["parents"], 0)
        self.assertLess(last["new_bytes"] * 2, last["used_bytes"])
        self.assertLess(listed["held_bytes"], listed["used_bytes"])
        shown = self.checkpoints("good")[self.checkpoint]
        self.assertEqual((last["used_bytes"], last["new_bytes"]), (int(shown["bytes"]), int(shown["new_bytes"])))
        self.assert_counted(self.job)


class Exported(StoreTool):
    def test_it_is_what_the_agent_restores_the_job_from(self):
        self.export()
        hold = self.cluster.dir / "hold"
        self.cluster.variables["machine1"] = {"SIDING_FAULT": f"{HELD}=hold={hold}"}
        self.lose_the_machine()
        log = self.cluster.logs / "agent-machine1.log"
        wait_for(f"the agent to be at {HELD}", lambda: f"fault: {HELD}=hold" in log.read_text())
        whole, = self.cluster.shared.glob("restore/*")
        names = sorted(p.name for p in whole.iterdir() if p.name != "manifest.json")
        self.assertEqual(sorted(p.name for p in self.exported.iterdir()), names)
        for name in names:
            self.assertTrue((self.exported / name).read_bytes() == (whole / name).read_bytes(), f"{name} is not what the agent has made")
        hold.touch()
        self.cluster.wait_event(self.job, "restored")
        self.assert_counted(self.job)

    def test_plain_criu_restores_it_when_the_job_and_its_images_are_gone(self):
        self.export()
        files = json.loads(json.loads((self.image / "manifest.json").read_text())["metadata"]["files"])
        self.cluster.ctl("kill", self.job)
        self.cluster.wait_state(self.job, "cancelled")
        wait_for("its images to be gone", lambda: not self.image.exists())
        # As an agent does: what was written after the checkpoint is cut off. criu takes a file of that length only.
        output = self.outputs() / f"{self.job}.0"
        size, = (f["size"] for f in files if f["path"] == str(output))
        os.truncate(output, size)
        done = subprocess.run([self.cluster.criu, "restore", "-D", self.exported, "--work-dir", self.cluster.logs, "-o", "criu-by-hand.log",
                               "--external", "mnt[]", "--root", "/", "--manage-cgroups=ignore", "--restore-detached"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr + self.cluster.tail("criu-by-hand"))
        self.end_alone(self.job)
        self.assertIsNone(jobs.counted(output))

    def test_nobody_else_may_read_it(self):
        self.export()
        for path in (self.exported, *self.exported.iterdir()):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o700 if path == self.exported else 0o600, path)
        self.assert_counted(self.job)

    def test_a_signal_leaves_all_of_it_or_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            wait_for("a signal before its end", lambda: self.is_ended_by(number))
        self.assert_counted(self.job)

    def is_ended_by(self, number):
        """False: it was done before that."""
        tool = subprocess.Popen([BIN / "siding-store", "export", self.cluster.shared, self.checkpoint, "0", self.exported],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not self.exported.exists() and tool.poll() is None:
            pass  # it is done in a moment
        tool.send_signal(number)
        said = tool.communicate(timeout=PATIENCE)[1]
        self.assertIn(tool.returncode, (0, 128 + number), said)
        self.assertEqual(self.exported.exists(), tool.returncode == 0, said)
        shutil.rmtree(self.exported, ignore_errors=True)
        return tool.returncode != 0


@unittest.skipUnless(os.geteuid() == 0, "needs root, to mount a file system")
class FullDisk(unittest.TestCase):
    def test_a_full_disk_is_said_and_nothing_is_left(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        isolated.enter_mounts()
        # It has room for as many bytes, and for one folder.
        subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=2,mode=700", "tmpfs", folder], check=True)
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        done = subprocess.run([BIN / "siding-store", "export", IMAGE, "42.3", "0", folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("No space left on device", done.stderr)
        self.assertEqual(list(folder.iterdir()), [])


class Repaired(StoreTool):
    """There is a backup of the tier's images from before one was damaged."""

    def setUp(self):
        super().setUp()
        self.copy = self.cluster.dir / "copy"
        self.copy.mkdir(mode=0o700)
        subprocess.run(["cp", "-a", self.cluster.shared / "images", self.copy], check=True)
        self.damaged = max(self.image.glob("pages-*.img"), key=lambda p: p.stat().st_size)
        with open(self.damaged, "r+b") as file:
            byte = file.read(1)[0]
            file.seek(0)
            file.write(bytes([byte ^ 1]))

    def repair(self, *args):
        return self.siding_store("repair", self.cluster.shared, "--from", self.copy, *args)

    def test_the_job_goes_on_from_an_image_that_was_repaired_beside_its_agent(self):
        code, said = self.repair("--dry-run")
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count("would be repaired"), 1, said)
        self.assertFalse((self.cluster.shared / "damaged").exists())
        code, said = self.repair()
        self.assertEqual(code, 0, said)
        self.assertEqual(len(list((self.cluster.shared / "damaged").iterdir())), 1)
        self.assertTrue(self.cluster.ctl("checkpoints", "verify", self.checkpoint)["good"])
        self.assertLess(self.listed()["held_bytes"], self.listed()["used_bytes"], "what images share is shared still")
        self.lose_the_machine()
        event = self.cluster.wait_event(self.job, "restored")
        self.assertNotIn("damaged", event["text"])
        self.assertEqual(self.count("checkpoint-damaged"), 0)
        self.assert_counted(self.job)


if __name__ == "__main__":
    unittest.main()

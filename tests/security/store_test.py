#!/usr/bin/python3
"""Who can write to the shared tier, such as root of another node, puts something else in an image's place; and what siding-store
shows and does, for whom and of which folders."""

import ctypes
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from case import ClusterCase, CtlError, wait_for  # noqa: E402
from cluster import BIN, PATIENCE  # noqa: E402

NOBODY = 65534
IMAGE = pathlib.Path(__file__).resolve().parents[2] / "store" / "testdata" / "version1"
CHECKSUM = re.compile(rb'("checksum": "xxh3:)([0-9a-f]{32})("\n}\n)\Z')


class Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def with_own_checksum(manifest):
    """As docs/design/store-format.md says how it is made."""
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_128bits.restype = Hash
    library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    text = CHECKSUM.sub(rb"\g<1>" + b"0" * 32 + rb"\g<3>", manifest)
    found = library.XXH3_128bits(text, len(text))
    return CHECKSUM.sub(rb"\g<1>" + f"{found.high:016x}{found.low:016x}".encode() + rb"\g<3>", text)


def siding_store(*args, user=None):
    """(exit code, stdout, stderr), with little memory and time."""
    limits = ["prlimit", "--as=1073741824", "timeout", "-s", "KILL", str(PATIENCE)]
    done = subprocess.run([*limits, str(BIN / "siding-store"), *map(str, args)], capture_output=True, user=user, group=user,
                          extra_groups=None if user is None else [])
    return done.returncode, done.stdout, done.stderr


class Replaced(ClusterCase):
    """A job with two checkpoints, which waits for a node to be restored on."""

    def setUp(self):
        super().setUp()
        self.victim = self.counter()
        self.wait_counting(self.victim)
        self.cluster.ctl("checkpoint", self.victim)
        self.first = self.cluster.ctl("checkpoints", "list")["checkpoints"][0]["id"]
        for node in self.nodes:
            self.cluster.ctl("cordon", node)
        self.cluster.ctl("vacate", self.victim)
        self.second = self.cluster.job(self.victim)["checkpoint"]
        self.images = self.cluster.shared / "images"

    def put_first_in_place_of_second(self):
        """The older state, under the newer one's name, with all checksums right."""
        shutil.rmtree(self.images / self.second)
        shutil.copytree(self.images / self.first, self.images / self.second)
        manifest = self.images / self.second / "0" / "manifest.json"
        text = manifest.read_bytes().replace(f'"checkpoint": "{self.first}"'.encode(), f'"checkpoint": "{self.second}"'.encode())
        manifest.write_bytes(with_own_checksum(text))
        code, out, err = siding_store("verify", self.cluster.shared)
        self.assertEqual(code, 0, f"as far as the tier itself tells, it is good: {out} {err}")

    def assert_restored_from_first(self):
        self.cluster.ctl("uncordon", "n1")
        event = self.cluster.wait_event(self.victim, "checkpoint-damaged")
        self.assert_counted(self.victim)
        return event["text"]

    def test_an_image_that_was_replaced_is_refused(self):
        self.put_first_in_place_of_second()
        self.assertIn("has been replaced", self.assert_restored_from_first())

    def test_verify_says_so(self):
        self.put_first_in_place_of_second()
        with self.assertRaises(CtlError) as error:
            self.cluster.ctl("checkpoints", "verify", self.second)
        self.assertIn("has been replaced", str(error.exception))

    def test_a_controller_that_was_restarted_knows_it_as_well(self):
        self.put_first_in_place_of_second()
        self.cluster.kill9_controller()
        self.cluster.start_controller()
        self.assertIn("has been replaced", self.assert_restored_from_first())

    def test_a_link_in_place_of_a_checkpoint_is_refused_and_what_it_leads_to_stays(self):
        elsewhere = self.cluster.dir / "elsewhere"
        (self.images / self.second).rename(elsewhere)
        (self.images / self.second).symlink_to(elsewhere)
        self.assertIn("is not a folder", self.assert_restored_from_first())
        # With the job's end its checkpoints are deleted.
        wait_for("the checkpoints to be gone", lambda: not os.path.lexists(self.images / self.second))
        self.assertTrue((elsewhere / "0" / "manifest.json").exists())

    def test_a_manifest_without_end_costs_the_agent_nothing(self):
        manifest = self.images / self.second / "0" / "manifest.json"
        os.truncate(manifest, 1 << 40)
        self.assertIn("bytes at most", self.assert_restored_from_first())
        self.assertIsNone(self.cluster.agents["n1"].poll())


class Users(ClusterCase):
    nodes = ("n1",)

    def test_an_ordinary_user_is_shown_nothing(self):
        job = self.counter()
        self.wait_counting(job)
        self.cluster.ctl("checkpoint", job)
        for tier in (self.cluster.shared, self.cluster.dir / "n1" / "store"):
            for verb in ("list", "verify"):
                for flags in ((), ("--json",)):
                    code, out, _ = siding_store(verb, tier, *flags, user=NOBODY)
                    self.assertEqual((code, out), (2, b""), f"{verb} {tier}")
            checkpoint = self.cluster.ctl("checkpoints", "list")["checkpoints"][0]["id"]
            with tempfile.TemporaryDirectory() as folder:
                os.chmod(folder, 0o1777)
                code, out, _ = siding_store("export", tier, checkpoint, 0, f"{folder}/exported", user=NOBODY)
                self.assertEqual((code, out, os.listdir(folder)), (2, b"", []), tier)
            code, out, _ = siding_store("repair", tier, "--from", tier, user=NOBODY)
            self.assertEqual((code, out), (2, b""), tier)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to look at what a user has made")
class Hostile(unittest.TestCase):
    """A folder that a user has made looks like a tier, and root looks at it."""

    def setUp(self):
        self.tier = pathlib.Path(tempfile.mkdtemp(prefix="siding-hostile-"))
        self.addCleanup(shutil.rmtree, self.tier)
        shutil.copytree(IMAGE / "images", self.tier / "images")
        self.checkpoint = next((self.tier / "images").iterdir())
        self.image = self.checkpoint / "0"
        subprocess.run(["chown", "-R", str(NOBODY), self.tier], check=True)

    def remains(self):
        return {str(p): (p.lstat().st_mode, p.lstat().st_uid, p.lstat().st_ino) for p in self.tier.rglob("*")}

    def verify(self, *args):
        before = self.remains()
        code, out, err = siding_store("verify", self.tier, *args)
        self.assertEqual(self.remains(), before, "it changes nothing")
        return code, (out + err).decode(errors="replace")

    def assert_refused(self, text):
        code, said = self.verify()
        self.assertEqual(code, 1, said)
        self.assertIn(text, said)

    def test_good_as_it_is(self):
        self.assertEqual(self.verify()[0], 0)

    def test_a_link_to_what_only_root_may_read(self):
        (self.image / "core-1.img").unlink()
        (self.image / "core-1.img").symlink_to("/etc/shadow")
        self.assert_refused("core-1.img is not a regular file")

    def test_pipes_and_devices(self):
        for name in ("manifest.json", "core-1.img"):
            for kind in (stat.S_IFIFO, stat.S_IFCHR):
                good = (self.image / name).read_bytes()
                (self.image / name).unlink()
                os.mknod(self.image / name, kind | 0o600, os.makedev(1, 5))
                self.assert_refused(f"{name} is not a regular file")
                (self.image / name).unlink()
                (self.image / name).write_bytes(good)

    def test_a_manifest_without_end(self):
        os.truncate(self.image / "manifest.json", 1 << 40)
        self.assert_refused("bytes at most")

    def test_a_manifest_that_unpacks_to_gigabytes(self):
        (self.image / "manifest.json").write_text("[" * 60_000_000)
        self.assert_refused("nested")

    def test_names_that_speak_to_the_terminal(self):
        (self.image / "\x1b]0;owned\x07").write_text("x")
        code, said = self.verify()
        self.assertEqual(code, 1)
        self.assertNotIn("\x1b", said)
        (self.image / os.fsdecode(b"\xff")).write_text("x")
        self.assertEqual(self.verify("--json")[0], 1)

    def test_what_is_exported_is_of_who_exports_it_and_for_nobody_else(self):
        target = pathlib.Path(tempfile.mkdtemp()) / "exported"
        self.addCleanup(shutil.rmtree, target.parent)
        code, out, err = siding_store("export", self.tier, self.checkpoint.name, 0, target)
        self.assertEqual(code, 0, out + err)
        for path in (target, *target.iterdir()):
            self.assertEqual((path.stat().st_uid, path.stat().st_mode & 0o077), (0, 0), path)

    def test_nothing_is_exported_into_a_folder_that_another_user_has_made(self):
        target = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, target)
        os.chown(target, NOBODY, NOBODY)
        code, _, err = siding_store("export", self.tier, self.checkpoint.name, 0, target)
        self.assertEqual(code, 2, err)
        self.assertIn(b"belongs to uid 65534", err)
        self.assertEqual(list(target.iterdir()), [])

    def test_a_link_in_place_of_a_checkpoint(self):
        self.checkpoint.rename(self.tier / "elsewhere")
        self.checkpoint.symlink_to(self.tier / "elsewhere")
        code, said = self.verify(self.checkpoint.name)
        self.assertEqual(code, 2)
        self.assertIn("there is no image of checkpoint", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)

#!/usr/bin/python3
"""Remote users who say who they are by MUNGE: a munged of our own, with a key of its own."""

import concurrent.futures
import os
import shutil
import unittest

from case import BIN, PATIENCE, CtlError, RemoteCase, RemoteCluster, run, wait_for
from machines import fake_time_library

UNAUTHENTICATED = 16


class MungeCluster(RemoteCluster):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.munge_dir = self.dir / "munge"
        self.munge_dir.mkdir(mode=0o755)
        os.chmod(self.authority.dir, 0o755)  # for users, who need the authority's certificate
        self.munge_socket = self.munge_dir / "s"
        self.munged = None

    def start_controller(self):
        if self.munged is None:
            self.munge_key.touch(0o600)
            self.munge_key.write_bytes(os.urandom(128))
            self.munged = self.start_munged(self.munge_socket)
        super().start_controller()

    @property
    def munge_key(self):
        return self.munge_dir / "key"

    def start_munged(self, socket, **environment):
        plain = self.env
        self.env = {**plain, **environment}
        try:
            munged = self._spawn("munged", [
                shutil.which("munged"), "--foreground", "--force", f"--key-file={self.munge_key}", f"--socket={socket}",
                f"--pid-file={socket}.pid", f"--log-file={socket}.log", f"--seed-file={socket}.seed"])
        finally:
            self.env = plain
        wait_for("munged", socket.exists)
        return munged

    @staticmethod
    def stop_munged(munged):
        munged.terminate()
        munged.wait(PATIENCE)

    def stop(self):
        if self.munged:
            self.stop_munged(self.munged)
        super().stop()

    def controller_args(self):
        return (*super().controller_args(), "--identity", "munge", "--munge-socket", self.munge_socket)

    def ctl_connection(self):
        return ("--controller", self.address, "--ca", self.authority.ca, "--munge", "--munge-socket", self.munge_socket)

    def restart_munged(self):
        """It has forgotten then what it has decoded."""
        self.stop_munged(self.munged)
        wait_for("munged's socket to be gone", lambda: not self.munge_socket.exists())
        self.munged = self.start_munged(self.munge_socket)

    def credential(self, payload, *flags, uid=None, socket=None):
        return run("munge", "-S", socket or self.munge_socket, "-s", payload, *flags, **({"user": uid} if uid else {})).stdout.strip()

    def credential_of_then(self, payload, off):
        """Made by a munged with the same key, whose clock is off so far."""
        socket = self.munge_dir / "then"
        munged = self.start_munged(socket, LD_PRELOAD=fake_time_library(), FAKETIME=off, FAKETIME_DONT_FAKE_MONOTONIC="1",
                                   NO_FAKE_STAT="1")
        try:
            return self.credential(payload, socket=socket)
        finally:
            self.stop_munged(munged)


@unittest.skipUnless(shutil.which("munged") and shutil.which("munge"), "munge is not installed (./run setup)")
class MungeCase(RemoteCase):
    def make_cluster(self):
        return MungeCluster(self.nodes, slots=1)


class Callers(MungeCase):
    def test_the_caller_is_who_asks(self):
        with self.assertRaisesRegex(CtlError, "only operators may cordon nodes"):
            self.cluster.ctl("cordon", "n1", uid=1)
        self.assert_logged("Cordon by user daemon is refused")

    def test_root_is_root(self):
        self.assertEqual(self.cluster.ctl("jobs").get("jobs", []), [])

    def test_a_credential_is_good_once(self):
        credential = self.cluster.credential("siding.v1.Siding/ListNodes")
        self.assertEqual(self.call("", "", "", credential)[0], 0)
        code, message = self.call("", "", "", credential)
        self.assertEqual(code, UNAUTHENTICATED)
        self.assertIn("Replayed credential", message)
        self.assert_logged("ListNodes from", "Replayed credential")

    def test_nor_again_when_munged_has_forgotten_it(self):
        credential = self.cluster.credential("siding.v1.Siding/ListNodes")
        self.assertEqual(self.call("", "", "", credential)[0], 0)
        for again in (credential, credential + " "):
            self.cluster.restart_munged()
            code, message = self.call("", "", "", again)
            self.assertEqual(code, UNAUTHENTICATED)
            self.assertIn("has been used before", message)

    def test_nor_again_when_the_controller_has_forgotten_it(self):
        credential = self.cluster.credential("siding.v1.Siding/ListNodes")
        self.assertEqual(self.call("", "", "", credential)[0], 0)
        self.cluster.kill9_controller()
        self.cluster.start_controller()
        self.assertIn("Replayed credential", self.call("", "", "", credential)[1])

    def test_of_calls_at_once_with_one_credential_one_is_answered(self):
        credential = self.cluster.credential("siding.v1.Siding/ListNodes")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            codes = list(pool.map(lambda _: self.call("", "", "", credential)[0], range(8)))
        self.assertEqual(sorted(codes), [0] + 7 * [UNAUTHENTICATED])

    def test_a_credential_for_somebody_elses_eyes_is_refused(self):
        credential = self.cluster.credential("siding.v1.Siding/ListNodes", "--restrict-uid=1")
        code, message = self.call("", "", "", credential)
        self.assertEqual(code, UNAUTHENTICATED)
        self.assertIn("Unauthorized", message)

    @unittest.skipUnless(fake_time_library(), "needs libfaketime (./run setup)")
    def test_an_expired_credential_is_refused(self):
        credential = self.cluster.credential_of_then("siding.v1.Siding/ListNodes", "-1h")
        code, message = self.call("", "", "", credential)
        self.assertEqual(code, UNAUTHENTICATED)
        self.assertIn("Expired credential", message)

    @unittest.skipUnless(fake_time_library(), "needs libfaketime (./run setup)")
    def test_one_of_a_minute_ago_is_not(self):
        credential = self.cluster.credential_of_then("siding.v1.Siding/ListNodes", "-1m")
        self.assertEqual(self.call("", "", "", credential)[0], 0)

    def test_what_unpacks_to_a_thousand_times_as_much_is_not_shown_whole(self):
        credential = self.cluster.credential("x" * 100_000, "--zip=zlib")
        self.assertLess(len(credential), 1000)
        code, message = self.call("", "", "", credential)
        self.assertEqual(code, UNAUTHENTICATED)
        self.assertLess(len(message), 300)

    def test_a_long_credential_is_no_header(self):
        self.assertNotEqual(self.call("", "", "", self.cluster.credential("x" * 60_000, "--zip=none"))[0], 0)
        self.assert_serving()

    def test_a_credential_is_good_for_one_method(self):
        code, message = self.call("", "", "", self.cluster.credential("siding.v1.Siding/Kill"))
        self.assertEqual(code, UNAUTHENTICATED)
        self.assertIn("is for 'siding.v1.Siding/Kill', not for 'siding.v1.Siding/ListNodes'", message)

    def test_another_keys_credential_is_refused(self):
        code, message = self.call("", "", "", "MUNGE:AwQFAAC=:")
        self.assertEqual(code, UNAUTHENTICATED)
        self.assertIn("MUNGE:", message)

    def test_without_a_credential_nobody_is_known(self):
        code, message = self.call()
        self.assertEqual(code, UNAUTHENTICATED)
        self.assertIn("sidingctl --munge", message)

    def test_a_users_certificate_is_no_credential(self):
        code, message = self.call("", *self.cluster.authority.files("user", "root"))
        self.assertEqual(code, UNAUTHENTICATED)
        self.assertIn("sidingctl --munge", message)

    def test_a_munged_that_is_gone_is_named(self):
        done = run(BIN / "sidingctl", "--controller", self.cluster.address, "--ca", self.cluster.authority.ca, "--munge",
                   "--munge-socket", "/nonexistent/s", "nodes")
        self.assertIn("/nonexistent/s", done.stderr)


class MungeJobs(MungeCase):
    nodes = ("n1",)

    def test_a_job_runs_as_who_submitted_it(self):
        job = int(self.cluster.ctl("submit", "--workdir", "/", "--output", "/dev/null", "--", "/bin/true", uid=1)["id"])
        self.cluster.submitted.append(job)
        self.assertEqual(self.cluster.wait_state(job, "done")["spec"]["user"], "daemon")


if __name__ == "__main__":
    unittest.main()

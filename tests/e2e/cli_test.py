#!/usr/bin/python3
"""What sidingctl does without a controller."""

import json
import os
import pathlib
import pwd
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

from case import PATIENCE, Cluster, CtlError

BIN = pathlib.Path(os.environ["SIDING_BIN"])


def ctl(*args):
    return subprocess.run([str(BIN / "sidingctl"), *args], capture_output=True, text=True)


class Cli(unittest.TestCase):
    def test_no_controller_is_exit_code_3_and_names_the_socket(self):
        done = ctl("--socket", "/nonexistent/s.sock", "jobs")
        self.assertEqual(done.returncode, 3)
        self.assertIn("/nonexistent/s.sock", done.stderr)

    def test_usage_errors_are_exit_code_2(self):
        self.assertEqual(ctl("jobz").returncode, 2)
        self.assertEqual(ctl("submit", "--start-by", "soon", "--", "/bin/true").returncode, 2)

    def test_what_could_not_be_written_is_no_success(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([str(BIN / "sidingctl"), "completion", "bash"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "sidingctl: completion: its output could not be written\n"))

    def verbs(self):
        verbs = re.findall(r"^  (\w+) ", ctl("--help").stdout.split("Subcommands:")[1], re.MULTILINE)
        self.assertGreater(len(verbs), 15)
        return verbs

    def test_every_verb_has_help(self):
        for verb in self.verbs():
            self.assertEqual(ctl(verb, "--help").returncode, 0, verb)

    def test_every_verb_is_in_the_manual(self):
        manual = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "user" / "sidingctl.md").read_text()
        for verb in self.verbs():
            self.assertRegex(manual, f"[`|(]{verb}|sidingctl {verb}", verb)

    def test_a_good_policy_is_described_and_a_bad_one_has_its_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "p.yaml"
            path.write_text("margin: 2s\nclasses:\n- {name: vip, match: {user: ada}, methods: []}\n")
            good = ctl("policy", "check", str(path))
            self.assertEqual(good.returncode, 0, good.stderr)
            self.assertIn("class vip: user ada: protected", good.stdout)
            path.write_text("margin: 2s\nconfidence: 7\n")
            bad = ctl("policy", "check", str(path))
            self.assertEqual(bad.returncode, 1)
            self.assertIn(f"{path}:2: confidence: expected a number from 0.5 to", bad.stderr)
            self.assertFalse(json.loads(ctl("policy", "check", "--json", str(path)).stdout)["good"])

    def test_bash_completes_verbs_and_flags(self):
        script = f"""
            source <({shlex.quote(str(BIN))}/sidingctl completion bash)
            COMP_WORDS=(sidingctl mig); COMP_CWORD=1; _sidingctl; echo "${{COMPREPLY[@]}}"
            COMP_WORDS=(sidingctl submit --start); COMP_CWORD=2; _sidingctl; echo "${{COMPREPLY[@]}}"
        """
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        self.assertEqual(done.stdout.split(), ["migrate", "--start-by"], done.stderr)


class Services(unittest.TestCase):
    def test_a_bad_policy_is_refused_with_its_line(self):
        path = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"siding-policy-{os.getpid()}.yaml"
        path.write_text("margin: 1s\nmargni: 2s\n")
        self.addCleanup(path.unlink)
        done = subprocess.run([str(BIN / "sidingd"), "--policy", str(path), "--check-config"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{path}:2", done.stderr)


    def test_a_file_in_the_place_of_the_socket_is_not_deleted(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "precious"
            path.write_text("work of a year")
            done = subprocess.run([str(BIN / "sidingd"), "--socket", str(path), "--state-dir", f"{folder}/state"],
                                  capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 1)
            self.assertIn("is no socket", done.stderr)
            self.assertEqual(path.read_text(), "work of a year")


class PolicyInForce(unittest.TestCase):
    def setUp(self):
        self.operators = f"operators: [{pwd.getpwuid(os.geteuid()).pw_name}]\n"
        self.cluster = Cluster(nodes=(), policy=self.operators + "margin: 1s\n")
        self.addCleanup(shutil.rmtree, self.cluster.dir)
        self.addCleanup(self.cluster.stop)
        self.path = self.cluster.dir / "policy.yaml"
        self.cluster.start_controller()

    def test_it_is_shown_with_its_file(self):
        shown = self.cluster.ctl("policy", "show")
        self.assertEqual((shown["file"], shown["policy"]["margin"]), (str(self.path), "1s"))

    def test_what_is_shown_is_a_policy_file(self):
        shown = ctl("--socket", str(self.cluster.socket), "policy", "show").stdout
        self.path.write_text(shown)
        self.assertEqual(self.cluster.ctl("policy", "reload")["changes"], [])

    def test_a_reload_says_what_it_changes(self):
        self.path.write_text(self.operators + "margin: 2s\n")
        done = ctl("--socket", str(self.cluster.socket), "policy", "reload")
        # The controller may have seen the change by itself already.
        self.assertIn(done.stdout.splitlines()[1:], ([], ["-margin: 1s", "+margin: 2s"]), done.stderr)
        self.assertEqual(self.cluster.ctl("policy", "show")["policy"]["margin"], "2s")

    def test_a_bad_file_is_named_with_its_line_and_changes_nothing(self):
        self.path.write_text(self.operators + "margin: soon\n")
        with self.assertRaisesRegex(CtlError, f"{self.path}:2: margin: expected"):
            self.cluster.ctl("policy", "reload")
        shown = self.cluster.ctl("policy", "show")
        self.assertEqual(shown["policy"]["margin"], "1s")
        self.assertIn(f"{self.path}:2", shown["problem"])

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to call as another user")
    def test_only_operators_may_reload_it(self):
        with self.assertRaisesRegex(CtlError, "only operators may reload the policy"):
            self.cluster.ctl("policy", "reload", uid=65534)


if __name__ == "__main__":
    unittest.main()

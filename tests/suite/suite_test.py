#!/usr/bin/python3
"""tests/suite/run and tests/stress, with the real ctest on tests that fail when they are told to."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent


class Suite(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.add("other", "true")

    def add(self, name, script, *properties):
        """A test that notes each of its runs in the file `name`."""
        with open(self.dir / "CTestTestfile.cmake", "a") as file:
            file.write(f'add_test({name} "/bin/sh" "-c" "echo run >> {self.dir}/{name}; {script}")\n')
            if properties:
                file.write(f'set_tests_properties({name} PROPERTIES {" ".join(properties)})\n')

    def add_real(self, name, script):
        self.add(name, script, "LABELS", '"real"')

    def fails_in_run(self, name, number):
        return f"echo words of {name}; test $(wc -l < {self.dir}/{name}) -ne {number}"

    def runs_of(self, name):
        return (self.dir / name).read_text().count("run")

    def run_all(self, *words, at_once=2):
        done = subprocess.run([HERE / "run", self.dir, "-j", str(at_once), *words], capture_output=True, text=True)
        return done.returncode, done.stdout

    def stress(self, *words):
        done = subprocess.run([HERE.parent / "stress", "--build", self.dir, *words], capture_output=True, text=True)
        return done.returncode, done.stdout


class Run(Suite):
    def test_what_passes_is_not_repeated(self):
        self.assertEqual(self.run_all()[0], 0)
        self.assertEqual(self.runs_of("other"), 1)

    def test_a_real_one_that_passes_alone_is_named(self):
        self.add_real("real", self.fails_in_run("real", 1))
        code, said = self.run_all()
        self.assertEqual(code, 0)
        self.assertIn("flaky: real failed beside others and passed alone", said)
        self.assertIn("1 flaky\ntests: 2 passed, 0 failed, 0 skipped\n", said)

    def test_its_first_output_is_kept_whole(self):
        self.add_real("real", f"seq 300000; {self.fails_in_run('real', 1)}")
        self.run_all()
        lines = (self.dir / "flaky/real.txt").read_text().splitlines()
        self.assertEqual(lines, [*map(str, range(1, 300001)), "words of real"])

    def test_a_real_one_that_fails_alone_too_has_failed(self):
        self.add_real("real", "false")
        code, said = self.run_all()
        self.assertEqual(code, 1)
        self.assertIn("failed: real failed beside others, and did not pass alone", said)
        self.assertIn("0 flaky\ntests: 1 passed, 1 failed, 0 skipped\n", said)
        self.assertEqual(self.runs_of("real"), 2)

    def test_a_real_one_that_is_skipped_alone_has_failed(self):
        self.add("real", f"test $(wc -l < {self.dir}/real) -ne 1 || exit 1; exit 77", "LABELS", '"real"', "SKIP_RETURN_CODE", "77")
        code, said = self.run_all()
        self.assertEqual(code, 1)
        self.assertIn("0 flaky\ntests: 1 passed, 1 failed, 0 skipped\n", said)

    def test_no_other_is_repeated(self):
        self.add("unit", self.fails_in_run("unit", 1))
        self.assertEqual(self.run_all()[0], 1)
        self.assertEqual(self.runs_of("unit"), 1)

    def test_one_that_failed_alone_is_not_repeated(self):
        self.add_real("real", self.fails_in_run("real", 1))
        self.assertEqual(self.run_all(at_once=1)[0], 1)
        self.assertEqual(self.runs_of("real"), 1)

    def test_one_that_was_the_only_one_is_not_repeated(self):
        self.add_real("real", self.fails_in_run("real", 1))
        self.assertEqual(self.run_all("-R", "real")[0], 1)
        self.assertEqual(self.runs_of("real"), 1)

    def test_a_flaky_one_does_not_hide_one_that_failed(self):
        self.add_real("real", self.fails_in_run("real", 1))
        self.add("unit", "false")
        code, said = self.run_all()
        self.assertEqual(code, 1)
        self.assertIn("1 flaky\ntests: 2 passed, 1 failed, 0 skipped\n", said)

    def test_many_that_fail_are_no_chance(self):
        for i in range(9):
            self.add_real(f"real{i}", self.fails_in_run(f"real{i}", 1))
        self.assertEqual(self.run_all()[0], 1)
        self.assertEqual([self.runs_of(f"real{i}") for i in range(9)], [1] * 9)

    def test_skipped_ones_are_counted(self):
        self.add("skips", "exit 77", "SKIP_RETURN_CODE", "77")
        code, said = self.run_all()
        self.assertEqual(code, 0)
        self.assertIn("tests: 1 passed, 0 failed, 1 skipped\n", said)

    def test_one_that_cannot_be_started_has_failed(self):
        with open(self.dir / "CTestTestfile.cmake", "a") as file:
            file.write('add_test(gone "/no/such/program")\n')
        code, said = self.run_all()
        self.assertEqual(code, 1)
        self.assertIn("tests: 1 passed, 1 failed, 0 skipped\n", said)

    def test_no_test_at_all_is_an_error(self):
        self.assertEqual(self.run_all("-R", "nothing")[0], 1)


class Stress(Suite):
    def test_failures_are_counted_and_kept(self):
        self.add_real("real", self.fails_in_run("real", 2))
        self.add_real("good", "true")
        code, said = self.stress("3")
        self.assertEqual(code, 1)
        self.assertIn("round 2: real failed", said)
        self.assertIn("3 rounds, 2 tests, 6 runs, 1 failed\nreal: failed 1 of 3 times", said)
        self.assertEqual((self.dir / "stress/real.2.txt").read_text().strip(), "words of real")

    def test_only_real_ones_that_match_are_run(self):
        self.add_real("real", "true")
        self.add_real("another", "true")
        self.assertEqual(self.stress("1", "-R", "^real$")[0], 0)
        self.assertEqual([(self.dir / name).exists() for name in ("real", "another", "other")], [True, False, False])

    def test_the_machine_is_busy_meanwhile_and_not_afterwards(self):
        # The shell's parent is ctest, whose parent has the load as children.
        self.add_real("real", f"cat /proc/$(cut -d' ' -f4 /proc/$PPID/stat)/task/*/children > {self.dir}/load")
        self.assertEqual(self.stress("1")[0], 0)
        pids = (self.dir / "load").read_text().split()
        self.assertGreater(len(pids), 2)
        self.assertEqual([pid for pid in pids if pathlib.Path("/proc", pid).exists()], [])

    def test_a_round_that_cannot_be_run_is_an_error(self):
        self.assertEqual(self.stress("1", "-R", "nothing")[0], 1)
        self.assertEqual(self.stress("0")[0], 2)


if __name__ == "__main__":
    sys.exit(unittest.main())

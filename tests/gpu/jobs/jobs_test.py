#!/usr/bin/python3
"""The jobs for GPUs, by themselves: two runs agree. Where there is no GPU, only what they say to bad arguments.

GPU_JOBS names the folder of the programs, if it is not bin/gpu of the build.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

JOBS = pathlib.Path(os.environ.get("GPU_JOBS") or pathlib.Path(os.environ["SIDING_BIN"]) / "gpu")
TRAIN = [sys.executable, str(pathlib.Path(__file__).with_name("train.py"))]
HAS_GPU = os.path.exists("/dev/nvidiactl")
SHORT = ["--steps", "21"]


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines(), done.stderr


@unittest.skipUnless((JOBS / "plain").exists(), "the jobs were not built: no nvcc")
class Arguments(unittest.TestCase):
    def test_a_value_that_is_no_number_is_named(self):
        code, _, error = run(JOBS / "plain", "--mib", "much")
        self.assertEqual(code, 2)
        self.assertIn("--mib: expected a whole number from 1 to 1000000000, not 'much'", error)

    def test_an_unknown_option_gets_the_usage(self):
        code, _, error = run(JOBS / "plain", "--size", "1")
        self.assertEqual(code, 2)
        self.assertIn("no option --size\nusage:", error)

    @unittest.skipIf(HAS_GPU, "there is a GPU")
    def test_a_call_that_fails_is_named_with_its_line(self):
        code, _, error = run(JOBS / "plain")
        self.assertEqual(code, 1)
        self.assertRegex(error, r"^plain\.cu:\d+: cudaMalloc\(.*\): cudaError")


class Results(unittest.TestCase):
    def digest(self, *command):
        """The digest that a run prints, whose every step had its line."""
        code, lines, error = run(*command)
        self.assertEqual((code, error), (0, ""))
        steps = [line for line in lines if line.startswith("step ")]
        self.assertEqual(len(steps), int(command[command.index("--steps") + 1]))
        self.assertTrue(lines[-1].startswith("digest "), lines[-1])
        return lines[-1]

    def check_two_runs_agree(self, *command):
        self.assertEqual(self.digest(*command), self.digest(*command))

    @unittest.skipUnless(HAS_GPU, "no GPU")
    def test_two_runs_agree(self):
        for job in ("plain", "streams", "processes", "several_gpus", "managed"):
            with self.subTest(job):
                self.check_two_runs_agree(JOBS / job, *SHORT)

    @unittest.skipUnless(HAS_GPU, "no GPU")
    def test_two_runs_of_long_kernels_agree(self):
        self.check_two_runs_agree(JOBS / "long_kernel", "--steps", "2", "--seconds", "1")

    @unittest.skipUnless(HAS_GPU, "no GPU")
    def test_graph_and_pools_do_not_change_the_result(self):
        plain = self.digest(JOBS / "streams", *SHORT, "--graph", "0", "--pools", "0")
        self.assertEqual(self.digest(JOBS / "streams", *SHORT), plain)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch")
    def test_two_trainings_agree(self):
        device = "cuda" if HAS_GPU else "cpu"
        self.check_two_runs_agree(*TRAIN, *SHORT, "--width", "64", "--device", device)


if __name__ == "__main__":
    unittest.main()

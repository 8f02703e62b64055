#!/usr/bin/python3
"""The model, the lifecycle table in it and the planner link neither gRPC nor protobuf; the simulator and the controller
link the same ones."""

import os
import pathlib
import re
import subprocess
import unittest

BUILD = pathlib.Path(os.environ["SIDING_BIN"]).parent
FORBIDDEN = re.compile(r"grpc|protobuf")


def symbols(path):
    return subprocess.run(["nm", "--demangle", str(path)], capture_output=True, text=True, check=True).stdout


class Link(unittest.TestCase):
    def test_pure_libraries_know_nothing_of_the_wire(self):
        for library in ("model/libsiding_model.a", "planner/libsiding_planner.a", "policy/libsiding_policy.a",
                        "sim/libsiding_sim.a"):
            self.assertIsNone(FORBIDDEN.search(symbols(BUILD / library)), library)

    def test_controller_and_simulator_link_the_same_planner_and_lifecycle(self):
        for program in ("sidingd", "siding-sim"):
            names = symbols(BUILD / "bin" / program)
            for function in ("siding::MakePlan(", "siding::Next(siding::JobState, siding::JobEvent)"):
                self.assertIn(function, names, program)

    @unittest.skipUnless((BUILD / "lib" / "siding_spank.so").exists(), "Slurm's headers are not installed")
    def test_the_plugin_in_slurms_processes_needs_libc_only_and_shows_slurms_names_only(self):
        plugin = str(BUILD / "lib" / "siding_spank.so")
        needed = subprocess.run(["objdump", "-p", plugin], capture_output=True, text=True, check=True).stdout
        self.assertEqual(re.findall(r"NEEDED\s+(\S+)", needed), ["libc.so.6"])
        shown = subprocess.run(["nm", "-D", "--defined-only", plugin], capture_output=True, text=True, check=True).stdout
        strangers = [line.split()[-1] for line in shown.splitlines()
                     if not re.search(r" (slurm_spank_\w+|plugin_(name|type|version)|spank_plugin_version)$", line)]
        self.assertEqual(strangers, [])

    def test_no_program_needs_libslurm_or_libmunge(self):
        for program in ("sidingd", "sidingctl", "siding-agent"):
            needed = subprocess.run(["objdump", "-p", str(BUILD / "bin" / program)], capture_output=True, text=True, check=True).stdout
            self.assertNotRegex(needed, "libslurm|libmunge", program)

    def test_the_check_would_find_it(self):
        self.assertIsNotNone(FORBIDDEN.search(symbols(BUILD / "bin" / "sidingd")))


if __name__ == "__main__":
    unittest.main(verbosity=2)

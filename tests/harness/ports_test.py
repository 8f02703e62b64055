#!/usr/bin/python3
"""A test's port is its own until the test ends."""

import subprocess
import sys
import unittest
import unittest.mock

import ports


class Ports(unittest.TestCase):
    def among(self, first, last):
        for name, value in (("FIRST", first), ("LAST", last)):
            patch = unittest.mock.patch.object(ports, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def other_process(self, code):
        child = subprocess.Popen([sys.executable, "-c", f"import ports\n{code}"], cwd=ports.__file__.rsplit("/", 1)[0], text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(child.communicate)
        return child

    def test_no_port_is_given_twice_in_a_process(self):
        self.among(32_100, 32_119)  # outside of those that other tests are given
        first = ports.free_ports(8)
        self.assertEqual(len({*first, *ports.free_ports(8)}), 16)

    def test_a_row_leaves_out_what_has_been_given(self):
        self.among(32_300, 32_309)
        taken = ports.free_ports(1)
        row = ports.free_row(4)
        self.assertFalse({*taken} & {*range(row, row + 4)})

    def test_a_port_of_another_process_is_not_given_though_nobody_listens_yet(self):
        child = self.other_process("ports.FIRST = ports.LAST = 32_200; print(ports.free_ports(1), flush=True); input()")
        child.stdout.readline()
        self.among(32_200, 32_209)
        self.assertEqual(sorted(ports.free_ports(9)), list(range(32_201, 32_210)))
        child.communicate("\n")
        self.assertEqual(ports.free_ports(1), [32_200])


if __name__ == "__main__":
    unittest.main()

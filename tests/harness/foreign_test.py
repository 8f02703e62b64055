#!/usr/bin/python3
"""What tests/trial takes for a fault."""

import unittest

from foreign import Program

TRACED = "process 7 (sh) is being traced by process 6 (strace)"


class Fault(unittest.TestCase):
    plain = Program("plain", "true")
    traced = Program("traced", "true", may_refuse="traced")

    def test_none_is_one_that_was_checkpointed_and_preempted(self):
        for program in (self.plain, self.traced):
            self.assertEqual(program.fault(images=1, preemptions=1, refused=""), "")

    def test_none_is_a_refusal_for_what_is_known_of_it(self):
        self.assertEqual(self.traced.fault(images=0, preemptions=0, refused=TRACED), "")

    def test_one_is_a_refusal_of_others(self):
        self.assertEqual(self.plain.fault(images=0, preemptions=0, refused=TRACED), f"refused beforehand: {TRACED}")

    def test_and_for_another_reason(self):
        self.assertIn("io_uring", self.traced.fault(images=0, preemptions=0, refused="process 7 (sh) uses io_uring"))

    def test_and_where_too_little_came_of_it(self):
        for images, preemptions in ((0, 0), (0, 1), (1, 0)):
            self.assertIn("too little", self.plain.fault(images, preemptions, refused=""))


if __name__ == "__main__":
    unittest.main()

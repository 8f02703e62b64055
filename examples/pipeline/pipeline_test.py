#!/usr/bin/python3
"""The pipeline: one result for equal arguments, and clear errors."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from example_case import EXAMPLES, ExampleCase  # noqa: E402

PIPELINE = EXAMPLES / "pipeline" / "pipeline.sh"


class PipelineTest(ExampleCase):
    def result(self, *options):
        out = self.new_out()
        work = self.folder / f"work.{self.count}"
        self.finish(self.start([PIPELINE, "--out", out, "--work", work, "--rounds", 3, "--lines", 2000, *options]))
        return self.digest(out)

    def test_two_runs_agree(self):
        self.assertEqual(self.result(), self.result())

    def test_every_round_counts(self):
        self.assertNotEqual(self.result(), self.result("--rounds", 4))

    def test_another_seed_gives_another_result(self):
        self.assertNotEqual(self.result(), self.result("--seed", 2))

    def test_left_over_work_does_not_matter(self):
        # A killed run that starts again finds its folder as it was left.
        (self.folder / "work.1").mkdir()
        (self.folder / "work.1" / "text").write_text("half a round")
        self.assertEqual(self.result(), self.result())

    def test_wrong_option_is_named(self):
        process = self.start([PIPELINE, "--out", "x", "--work", "y", "--rounds", "no"])
        self.finish(process, expected=2)
        self.assertIn('--rounds: expected a number from 1 to 999999999, got "no"', self.log(process))


if __name__ == "__main__":
    unittest.main()

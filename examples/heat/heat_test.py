#!/usr/bin/python3
"""The heat solver: one result, however it is cut, threaded, stopped or put back."""

import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from example_case import ExampleCase  # noqa: E402

HEAT = os.environ["HEAT"]


class HeatTest(ExampleCase):
    def command(self, out, steps=400, **options):
        more = [text for name, value in options.items() for text in (f"--{name}", value)]
        return [HEAT, "--size", 128, "--steps", steps, "--out", out, *more]

    def one(self, threads="1", **options):
        out = self.new_out()
        self.finish(self.start(self.command(out, **options), OMP_NUM_THREADS=threads))
        return self.digest(out)

    def start_rank(self, out, rank, ranks, **options):
        return self.start(self.command(out, exchange=self.folder / "halo", **options), OMP_NUM_THREADS="1",
                          SIDING_RANK=str(rank), SIDING_NODES=str(ranks), SIDING_JOB_ID="7")

    def gang(self, ranks, **options):
        out = self.new_out()
        for process in [self.start_rank(out, rank, ranks, **options) for rank in range(ranks)]:
            self.finish(process)
        return self.digest(out)

    def test_two_runs_agree(self):
        self.assertEqual(self.one(), self.one())

    def test_more_steps_give_another_result(self):
        self.assertNotEqual(self.one(steps=400), self.one(steps=401))

    def test_threads_do_not_matter(self):
        self.assertEqual(self.one(threads="1"), self.one(threads="3"))

    def test_two_ranks_agree_with_one(self):
        self.assertEqual(self.one(), self.gang(2))

    def test_three_ranks_and_a_broken_last_exchange_agree_with_one(self):
        self.assertEqual(self.one(steps=397), self.gang(3, steps=397, every=5))

    def test_ballast_does_not_matter(self):
        self.assertEqual(self.one(), self.one(memory=8))

    def test_frozen_rank_does_not_matter(self):
        out, halo = self.new_out(), self.folder / "halo"
        frozen = self.start_rank(out, 1, 2)
        self.until((halo / "7.1.up.0").exists, "its first halo")
        os.kill(frozen.pid, signal.SIGSTOP)
        self.until(lambda: pathlib.Path(f"/proc/{frozen.pid}/stat").read_text().split()[2] == "T", "the stop")
        other = self.start_rank(out, 0, 2)
        self.until((halo / "7.0.down.1").exists, "the other to wait for the frozen one's second halo")
        os.kill(frozen.pid, signal.SIGCONT)
        for process in (frozen, other):
            self.finish(process)
        self.assertEqual(self.digest(out), self.one())

    def test_removed_halo_is_written_again(self):
        # As a rank finds it that was put back to a moment before its neighbour's clean-up.
        out = self.new_out()
        first = self.start_rank(out, 0, 2)
        halo = self.folder / "halo" / "7.0.down.0"
        self.until(halo.exists, "the first halo")
        halo.unlink()
        second = self.start_rank(out, 1, 2)
        self.finish(first)
        self.finish(second)
        self.assertEqual(self.digest(out), self.one())

    def test_foreign_halo_is_refused(self):
        (self.folder / "halo").mkdir()
        (self.folder / "halo" / "7.1.up.0").write_bytes(b"of another program")
        process = self.start_rank(self.new_out(), 0, 2)
        self.finish(process, expected=1)
        self.assertIn("7.1.up.0 is not of this run", self.log(process))

    def test_wrong_option_is_named(self):
        process = self.start([HEAT, "--out", "x", "--size", "many"])
        self.finish(process, expected=2)
        self.assertIn('--size: expected a number of at least 3, got "many"', self.log(process))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/python3
"""The training: one result, however often it saves itself and continues."""

import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from example_case import EXAMPLES, ExampleCase  # noqa: E402


class TrainTest(ExampleCase):
    def start_train(self, out, *options, epochs=200):
        return self.start(["/usr/bin/python3", EXAMPLES / "train" / "train.py", "--samples", 512, "--hidden", 32,
                           "--epochs", epochs, "--out", out, *options])

    def result(self, *options, **more):
        out = self.new_out()
        self.finish(self.start_train(out, *options, **more))
        return self.digest(out)

    def save_early(self, out, after):
        """A training that was told to save itself after its first epoch, and the file it saves to."""
        state = self.folder / "state.npz"
        process = self.start_train(out, "--self-checkpoint", state, "--after-save", after)
        self.until(lambda: "epoch 1 of" in self.log(process), "the first epoch")
        process.send_signal(signal.SIGUSR1)
        return process, state

    def test_two_runs_agree(self):
        self.assertEqual(self.result(epochs=10), self.result(epochs=10))

    def test_another_seed_gives_another_result(self):
        self.assertNotEqual(self.result(epochs=10), self.result("--seed", 2, epochs=10))

    def test_exits_when_saved_and_goes_on_to_the_same_result(self):
        out = self.new_out()
        process, state = self.save_early(out, "exit")
        self.finish(process)
        self.assertFalse(out.exists())
        self.finish(self.start_train(out, "--self-checkpoint", state, "--resume"))
        self.assertEqual(self.digest(out), self.result())

    def test_marks_when_saved_and_goes_on_to_the_same_result(self):
        out = self.new_out()
        process, state = self.save_early(out, "marker")
        self.until((self.folder / "state.npz.marker").exists, "the marker")
        self.finish(process)
        self.assertEqual(self.digest(out), self.result())
        self.assertEqual(self.digest(out), self.result("--self-checkpoint", state, "--resume"))

    def test_resume_without_a_save_begins_at_the_beginning(self):
        self.assertEqual(self.result("--self-checkpoint", self.folder / "none", "--resume", epochs=10),
                         self.result(epochs=10))

    def test_save_of_another_training_is_refused(self):
        process, state = self.save_early(self.new_out(), "exit")
        self.finish(process)
        other = self.start_train(self.new_out(), "--self-checkpoint", state, "--resume", "--seed", 2)
        self.finish(other, expected=1)
        self.assertIn("is of another training", self.log(other))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/python3
"""An element of an array that made way comes back before the elements that have not been started yet, and Slurm has no more from siding
than that, and not for longer."""

import subprocess
import time

from case import BIN, PATIENCE, main, wait_for
from deadline_test import CONFIG, NOBODY, DeadlineCase

FACTORS = ("PriorityType=priority/multifactor\nPriorityWeightAge=100000\nPriorityMaxAge=0-0:10\nPriorityCalcPeriod=1\n"
           "PriorityDecayHalfLife=0\nPriorityUsageResetPeriod=DAILY\n")


class Array(DeadlineCase):
    config = CONFIG + "  suspend: false\n"

    def make_way(self):
        """Elements 0 and 1 of four had the two nodes, and one of them has left for a job with a deadline: the array, that job,
        and the one that has left, as a job and as an element."""
        array = self.slurm.submit("-o", self.work / "out.%A_%a", "-a", "0-3%2", "-c", self.slurm.cpus, "--siding-preemptible",
                                  self.counter(), uid=NOBODY, cwd=self.work)
        for element in (0, 1):
            self.wait_counting(f"{array}_{element}")
        self.numbers = {int(element): int(job) for element, job in
                        (row.split() for row in self.slurm.run("squeue", "-h", "-r", "-t", "R", "-o", "%K %A").splitlines())}
        for job in self.numbers.values():
            self.running(job)
        express = self.express(command="until [ -e leave ]; do sleep 0.1; done")
        self.slurm.wait_state(express, "RUNNING")
        [element] = wait_for("one element to be in the queue again", lambda: [
            e for e, job in self.numbers.items() if self.slurm.job(job)["JobState"] == "PENDING"])
        return array, express, self.numbers[element], element

    def wait_due(self, job):
        """Slurm does not start it at once after it has left."""
        wait_for("the delay to be over", lambda: self.slurm.job(job)["EligibleTime"] <= time.strftime("%Y-%m-%dT%H:%M:%S"))

    def wait_before_siblings(self, array, job):
        """What Slurm shows of it then."""
        def before():
            own, others = int(self.slurm.job(job)["Priority"]), self.waiting(array)
            return len(others) > 0 and own > max(others)
        wait_for("it to go before its siblings", before)
        return self.slurm.job(job)

    def waiting(self, array):
        """The priorities of elements that have not been started yet."""
        rows = (row.split() for row in self.slurm.run("squeue", "-h", "-r", "-t", "PD", "-j", array, "-o", "%K %Q").splitlines())
        return [int(priority) for element, priority in rows if int(element) not in self.numbers]

    def next_of(self, array, express):
        """Which element has the node when the job with the deadline is done."""
        (self.work / "leave").touch()
        self.slurm.wait_state(express, "COMPLETED")
        running = wait_for("both nodes to have an element", lambda: len(
            rows := self.slurm.run("squeue", "-h", "-r", "-t", "R", "-j", array, "-o", "%K").split()) == 2 and rows)
        return set(map(int, running))

    def cleanup(self):
        return subprocess.run([BIN / "sidingctl", "slurm", "cleanup"], env=self.slurm.env, capture_output=True, text=True,
                              timeout=PATIENCE).stdout

    def nice(self, job):
        return int(self.slurm.job(job)["Nice"])

    def test_it_has_its_node_again_before_siblings_that_have_not_been_started(self):
        array, express, job, element = self.make_way()
        self.wait_before_siblings(array, job)
        self.wait_due(job)
        self.assertEqual(self.next_of(array, express), {0, 1})
        self.gate.touch()
        self.slurm.wait_state(job, "COMPLETED")
        self.assert_counted(f"{array}_{element}")

    def test_nothing_of_it_is_left_when_it_runs(self):
        array, express, job, _ = self.make_way()
        shown = self.wait_before_siblings(array, job)
        self.assertEqual(int(shown["Nice"]), -1)
        self.wait_due(job)
        self.next_of(array, express)
        self.assert_nothing_left()
        self.assertEqual(self.nice(job), 0)

    def test_jobs_that_came_before_its_array_stay_before_it(self):
        before = self.slurm.submit("--begin=now+1hour", "-o", "/dev/null", "--wrap", "true")
        array, _, job, _ = self.make_way()
        shown, first = self.wait_before_siblings(array, job), self.slurm.job(before)
        # Slurm's order.
        self.assertLess((-int(first["Priority"]), first["SubmitTime"]), (-int(shown["Priority"]), shown["SubmitTime"]))

    def test_a_controller_that_was_killed_knows_what_to_take_back(self):
        array, express, job, _ = self.make_way()
        self.wait_before_siblings(array, job)
        self.siding.kill9_controller()
        self.assertEqual(self.nice(job), -1)
        self.siding.start_controller()
        self.wait_due(job)
        self.assertEqual(self.next_of(array, express), {0, 1})
        self.assert_nothing_left()
        self.assertEqual(self.nice(job), 0)

    def test_an_operator_can_take_it_back_without_a_controller(self):
        array, _, job, _ = self.make_way()
        self.wait_before_siblings(array, job)
        self.siding.kill9_controller()
        self.assertIn(f"job {job}: mark removed, nice 0", self.cleanup())
        self.assertEqual(self.nice(job), 0)

    def test_one_that_its_user_holds_stays_held(self):
        array, express, job, element = self.make_way()
        self.wait_before_siblings(array, job)
        self.slurm.run("scontrol", "hold", job, uid=NOBODY)
        self.assertNotIn(element, self.next_of(array, express))
        self.siding.kill9_controller()
        self.assertNotIn("nice", self.cleanup())
        self.assertEqual(self.slurm.job(job)["Reason"], "JobHeldUser")


class ArrayByFactors(Array):
    """Where a priority has factors, siblings have gained some by waiting."""

    def prepare(self):
        super().prepare()
        self.slurm.extra = FACTORS

    test_nothing_of_it_is_left_when_it_runs = None
    test_jobs_that_came_before_its_array_stay_before_it = None
    test_an_operator_can_take_it_back_without_a_controller = None
    test_a_controller_that_was_killed_knows_what_to_take_back = None


if __name__ == "__main__":
    main()

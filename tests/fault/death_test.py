#!/usr/bin/python3
"""SIGKILL at the main steps of a preemption: afterwards no job is lost, none was started twice, none is frozen."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from case import ClusterCase, wait_for  # noqa: E402
from vanishing import paths  # noqa: E402

# The step at which a process dies: (whose event, which event).
STEPS = {
    "planned": ("express", "planned"),
    "dumping": ("victim", "order-dump"),
    "committed": ("victim", "commit"),
    "released": ("victim", "released"),
    "granted": ("express", "place"),
    "restoring": ("victim", "place-again"),
}


class Death(ClusterCase):
    def start_jobs(self):
        self.victim = self.counter(mib=64, nodes=2)
        self.wait_counting(self.victim, rank=1)
        self.express_job = self.express(nodes=2)

    def reach(self, step):
        who, kind = STEPS[step]
        job = self.victim if who == "victim" else self.express_job
        if kind == "place-again":
            wait_for("the victim to be placed again",
                     lambda: sum(e["kind"] == "place" for e in self.cluster.events(job)) >= 2)
        else:
            self.cluster.wait_event(job, kind)

    def assert_everything_came_out_right(self):
        self.cluster.wait_state(self.express_job, "done")
        self.assert_counted(self.victim, ranks=2)
        starts = [e for e in self.cluster.events(self.express_job) if e["kind"] == "started"]
        self.assertEqual(len(starts), 1)
        self.assert_all_quiet()
        # Images that are not needed any more go away in their own time: it takes as long as the disk takes.
        staging = self.cluster.shared / "staging"
        wait_for("staging to be empty", lambda: not paths(staging, "*"))


def controller_dies_at(step):
    def test(self):
        self.start_jobs()
        self.reach(step)
        self.cluster.kill9_controller()
        self.cluster.start_controller()
        self.assert_everything_came_out_right()
    return test


def agent_dies_at(step):
    def test(self):
        self.start_jobs()
        self.reach(step)
        self.cluster.kill9_agent("n2")
        self.cluster.start_agent("n2")
        self.assert_everything_came_out_right()
    return test


for name in STEPS:
    setattr(Death, f"test_controller_killed_when_{name}", controller_dies_at(name))
    setattr(Death, f"test_agent_killed_when_{name}", agent_dies_at(name))


if __name__ == "__main__":
    unittest.main(verbosity=2)

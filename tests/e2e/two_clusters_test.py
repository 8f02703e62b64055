#!/usr/bin/python3
"""Two clusters on one machine, with the same names of nodes, numbers of jobs and user, told apart by nothing: neither takes, freezes,
ends or removes what is the other's."""

import os
import shutil
import sys
import unittest

from case import WORKS, Cluster, jobs, wait_for
from cluster import FREEZERS
from cluster_case import has_failed
from vanishing import paths

# Each step is a line, a number in a file of its temporary folder that it has open all the time, one in shared memory, and a file that it
# makes in the folder by name and removes. It ends when the gate is there, and says whether all of it is whole.
PROGRAM = r"""
import mmap, os, sys, time
gate, shared = sys.argv[1:]
folder = os.environ["TMPDIR"]
kept = open(os.path.join(folder, "kept"), "w")
with open(shared, "wb") as file:
    file.truncate(8)
file = open(shared, "r+b")
memory = mmap.mmap(file.fileno(), 8)
print("begun", flush=True)
step = 0
while not os.path.exists(gate):
    print(step, flush=True)
    kept.write(f"{step}\n")
    kept.flush()
    step += 1
    memory[:8] = step.to_bytes(8, "little")
    passing = os.path.join(folder, f"step-{step}")
    open(passing, "x").close()
    os.unlink(passing)
    time.sleep(0.02)
assert open(kept.name).read().split() == list(map(str, range(step)))
assert int.from_bytes(open(shared, "rb").read(), "little") == step
os.unlink(shared)
print("done", flush=True)
"""
NODES = ("n1", "n2")


class Site:
    """One of the clusters, and the jobs in it."""

    def __init__(self, nodes=NODES):
        self.cluster = Cluster(nodes, 1, policy="min_runtime: 0s\ncooldown: 0s\nmargin: 500ms\n")
        self.gates = {}

    def submit(self, method="checkpoint"):
        place = self.cluster.dir / f"gate-{len(self.gates)}"
        argv = jobs.command(self.cluster.dir, "program", PROGRAM, place, f"/dev/shm/{self.cluster.dir.name}-{len(self.gates)}")
        job = self.cluster.submit("--name", "program", "--slots", 1, f"--preemptible={method}", "--workdir", self.cluster.dir, "--output",
                                  self.cluster.dir / "out.%j", "--", *argv)
        self.gates[job] = place
        return job

    def lines(self, job):
        path = self.cluster.dir / f"out.{job}"
        return path.read_text().splitlines() if path.exists() else []

    def wait_more(self, job):
        """Waits until it has done some steps from now on, and the controller knows that it runs."""
        now = len(self.lines(job))
        wait_for(f"job {job} to do more", lambda: len(self.lines(job)) >= now + 10)
        self.cluster.wait_state(job, "running")

    def end(self, job):
        self.gates[job].touch()
        self.cluster.wait_state(job, "done")


def left_outside():
    """What is in the places that clusters share."""
    found = {str(path) for pattern in ("siding-*-job-*", "siding-removed-*", "siding-new-*") for path in paths("/tmp", pattern)}
    found |= {f"/dev/shm/{name}" for name in os.listdir("/dev/shm")}
    return found | {str(group) for root in FREEZERS for node in NODES for group in paths(root, f"{node}/*/")}


@unittest.skipUnless(WORKS, "needs root and a criu that works here (./run setup)")
class SitesCase(unittest.TestCase):
    def site(self, *nodes):
        site = Site(nodes)
        self.addCleanup(self._finish, site.cluster)
        site.cluster.start()
        return site

    def _finish(self, cluster):
        cluster.stop()
        if has_failed(self):
            for log in [*sorted(cluster.logs.iterdir()), *paths(cluster.dir, "out.*")]:
                print(f"---- {log}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-40:]), file=sys.stderr)
        shutil.rmtree(cluster.dir, ignore_errors=True)

    def assert_right(self, site, job, begun=1):
        """The last time that it has begun, it has come to its end."""
        lines = site.lines(job)
        self.assertEqual(lines.count("begun"), begun, lines)
        last = lines[len(lines) - lines[::-1].index("begun"):]
        self.assertEqual(last, [*map(str, range(len(last) - 1)), "done"])


class TwoClusters(SitesCase):
    def setUp(self):
        self.before = left_outside()
        self.sites = self.site(*NODES), self.site(*NODES)

    def submit_to_both(self, method="checkpoint"):
        """A job for each node, of both."""
        numbers = [[site.submit(method) for _ in NODES] for site in self.sites]
        self.assertEqual(*numbers)
        self.wait_more_of_all(numbers[0])
        return numbers[0]

    def wait_more_of_all(self, numbers):
        for site in self.sites:
            for job in numbers:
                site.wait_more(job)

    def assert_nothing_left(self):
        for site in self.sites:
            wait_for("no process of any job to be left", lambda s=site: not s.cluster.task_processes())
        wait_for("nothing to be left in the places that clusters share", lambda: left_outside() <= self.before)

    def test_each_has_one_name_and_no_other_has_it(self):
        first, second = (site.cluster.names() for site in self.sites)
        self.assertEqual((len(first), len(second), len(first | second)), (1, 1, 2))

    def test_a_job_ends_beside_the_other_clusters_job_of_its_number(self):
        first, second = self.sites
        numbers = self.submit_to_both()
        for job in numbers:
            first.end(job)
            self.assert_right(first, job)
        wait_for("what they had to be removed", lambda: not first.cluster.temporary_folders())
        for job in numbers:
            second.wait_more(job)
            second.end(job)
            self.assert_right(second, job)
        self.assert_nothing_left()

    def test_a_job_is_checkpointed_and_restored_beside_it(self):
        numbers = self.submit_to_both()
        for site in self.sites:
            for job in numbers:
                site.cluster.ctl("vacate", job)
                site.cluster.wait_event(job, "restored")
            self.wait_more_of_all(numbers)
        for site in self.sites:
            for job in numbers:
                site.end(job)
                self.assert_right(site, job)
        self.assert_nothing_left()

    def test_a_job_that_has_left_its_node_finds_what_it_had(self):
        first, second = self.sites
        numbers = self.submit_to_both()
        for node in NODES:
            first.cluster.ctl("cordon", node)
        for job in numbers:
            first.cluster.ctl("vacate", job)
            first.cluster.wait_state(job, "parked")
            second.wait_more(job)
            second.end(job)
            self.assert_right(second, job)
        for node in NODES:
            first.cluster.ctl("uncordon", node)
        for job in numbers:
            first.cluster.wait_event(job, "restored")
            first.wait_more(job)
            first.end(job)
            self.assert_right(first, job)
        self.assert_nothing_left()

    def test_a_job_is_frozen_beside_it(self):
        first, second = self.sites
        numbers = self.submit_to_both("suspend")
        for job in numbers:
            first.cluster.ctl("suspend", job)
            first.cluster.wait_state(job, "suspended")
        for job in numbers:
            second.wait_more(job)
            first.cluster.ctl("resume", job)
        self.wait_more_of_all(numbers)
        for site in self.sites:
            for job in numbers:
                site.end(job)
                self.assert_right(site, job)
        self.assert_nothing_left()

    def test_a_job_is_killed_and_starts_again_beside_it(self):
        first, second = self.sites
        numbers = self.submit_to_both("kill")
        request = first.cluster.submit("--name", "express", "--nodes", len(NODES), "--slots", 1, "--start-by", "+10m", "--", "/bin/true")
        first.cluster.wait_state(request, "done")
        self.wait_more_of_all(numbers)
        for site, begun in ((first, 2), (second, 1)):
            for job in numbers:
                site.end(job)
                self.assert_right(site, job, begun)
        self.assert_nothing_left()


class ANewController(SitesCase):
    """One that counts jobs from 1, beside a task of its predecessor."""

    def test_its_jobs_and_those_of_the_one_before_do_not_meet(self):
        site = self.site("n1")
        before = site.submit()
        site.wait_more(before)
        site.cluster.kill9_controller()
        shutil.rmtree(site.cluster.dir / "controller")
        site.cluster.start_controller()
        wait_for("the agent to be there", lambda: any(node["state"] == "up" for node in site.cluster.node_list()))
        job = site.submit()
        site.wait_more(job)
        self.assertEqual(len(site.cluster.temporary_folders(job)), 1)
        site.end(job)
        self.assert_right(site, job)
        site.gates[before].touch()
        wait_for("the other one to come to its end", lambda: site.lines(before)[-1] == "done")
        self.assert_right(site, before)

    def test_nor_if_they_have_the_same_number(self):
        site = self.site("n1")
        number = site.submit()
        site.wait_more(number)
        site.cluster.kill9_agent("n1")
        site.cluster.kill9_controller()
        shutil.rmtree(site.cluster.dir / "controller")
        site.gates["before"] = site.gates.pop(number)
        (site.cluster.dir / f"out.{number}").rename(site.cluster.dir / "out.before")
        site.cluster.start_controller()
        self.assertEqual(site.submit(), number)
        site.cluster.start_agent("n1")
        site.wait_more(number)
        self.assertEqual(len(site.cluster.temporary_folders(number)), 2)
        site.cluster.ctl("vacate", number)
        site.cluster.wait_event(number, "restored")
        site.wait_more(number)
        site.end(number)
        self.assert_right(site, number)
        now = len(site.lines("before"))
        wait_for("the other one to go on", lambda: len(site.lines("before")) > now + 10)
        site.gates["before"].touch()
        wait_for("the other one to come to its end", lambda: site.lines("before")[-1] == "done")
        self.assert_right(site, "before")


if __name__ == "__main__":
    unittest.main()

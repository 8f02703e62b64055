#!/usr/bin/python3
"""Deadlines on a real Slurm, steered by siding's controller: victims leave with all they hold, the job with the deadline has
their nodes, and the victims come back. Nothing but Slurm's own commands is used to submit and to look."""

import re
import shlex
import unittest

from case import BIN, PLUGIN, SlurmError, jobs, wait_for
from cluster import Cluster
from preemption_test import NOBODY, PreemptionCase

POLICY = "min_runtime: 0s\ncooldown: 0s\n"
CONFIG = "slurm:\n  mode: steering\n  ask_socket: {dir}/run/ask.sock\n"


class DeadlineCase(PreemptionCase):
    policy, config = POLICY, CONFIG

    def prepare(self):
        self.slurm.plugstack = f"optional {PLUGIN} programs={BIN} controller={self.slurm.dir}/run/ask.sock"
        self.work = self.slurm.dir / "work"
        self.work.mkdir()
        self.work.chmod(0o777)

    def setUp(self):
        super().setUp()
        arguments = {node: self.agent_arguments(node) for node in self.slurm.nodes}
        # The agents know nothing of what Slurm's nodes have: one slot would not do for a job of four CPUs.
        self.siding = Cluster(self.slurm.nodes, slots=1, folder=self.slurm.dir / "siding", agent_args=arguments, policy=self.policy,
                              config=self.config.format(dir=self.slurm.dir), env=self.slurm.env)
        self.addCleanup(self.siding.stop)
        self.siding.start()

    def agent_arguments(self, node):
        return ["--slurm-socket", self.slurm.agent_socket(node)]

    def victim(self, node, *args, uid=NOBODY):
        """A batch job that fills this node, once siding knows that it runs."""
        job = self.slurm.submit("-o", self.work / "out.%j", "-w", node, "-c", self.slurm.cpus, "--siding-preemptible", *args,
                                self.counter(), uid=uid, cwd=self.work)
        self.wait_counting(job)
        # Where it may run is asked for no more: it may come back anywhere.
        self.running(job)
        return job

    def listener(self, node):
        """A batch job that says when it is told that it will have to leave."""
        script = self.work / "listen.sh"
        script.write_text("#!/bin/bash\ntrap 'echo told' URG\nwhile true; do echo on; sleep 0.05; done\n")
        job = self.slurm.submit("-o", self.work / "out.%j", "-w", node, "-c", self.slurm.cpus, "--siding-preemptible",
                                "--siding-notice=3s", script, uid=NOBODY, cwd=self.work)
        self.wait_counting(job)
        self.running(job)
        return job

    def running(self, job):
        return wait_for(f"siding to see job {job} run", lambda: (j := self.siding.jobs().get(job)) and j["state"] == "running" and j)

    def express(self, *args, nodes=1, command="hostname"):
        return self.slurm.submit("-o", self.work / "express.%j", "-N", nodes, "-c", self.slurm.cpus, "--siding-start-by=+10m", *args,
                                 "--wrap", command, uid=NOBODY, cwd=self.work)

    def assert_unharmed(self, *victims):
        """They may end now, and give the result of an uninterrupted run. How often each was restarted."""
        ended = [self.end_job(job) for job in victims]
        self.assertEqual({job["ExitCode"] for job in ended}, {"0:0"})
        for job in victims:
            self.assert_counted(job)
        return [job["Restarts"] for job in ended]

    def assert_nothing_left(self):
        """Of siding in Slurm. What it said of a job stays with one that has ended."""
        wait_for("siding to have taken back all it did", lambda: not self.reservations() and "siding" not in self.comments())

    def comments(self):
        """What Slurm shows of administrators' comments on jobs that have not ended."""
        jobs = self.slurm.run("scontrol", "-o", "show", "jobs").splitlines()
        alive = [job for job in jobs if re.search(r" JobState=(PENDING|RUNNING|SUSPENDED) ", job)]
        # Up to the next field: folders' names have siding's name in them, too.
        return "\n".join(found[1] for job in alive if (found := re.search(r" AdminComment=(.*?) \w+=", job)))

    def reservations(self):
        text = self.slurm.run("scontrol", "-o", "show", "reservation")
        return [word[16:] for word in text.split() if word.startswith("ReservationName=")]


class Steering(DeadlineCase):
    config = CONFIG + "  suspend: false\n"

    def test_a_job_with_a_deadline_gets_the_node_of_one_that_comes_back_with_its_memory(self):
        victims = [self.victim("node1"), self.victim("node2")]
        express = self.express()
        self.slurm.wait_state(express, "COMPLETED")
        self.assertEqual(self.slurm.job(express)["Restarts"], "0")
        self.assertEqual(sorted(self.assert_unharmed(*victims)), ["0", "1"])
        self.assert_nothing_left()

    def test_only_who_is_on_nodes_that_it_may_have_makes_way(self):
        victims = [self.victim("node1"), self.victim("node2")]
        express = self.express("--exclude=node1")
        self.slurm.wait_state(express, "COMPLETED")
        self.assertEqual(self.assert_unharmed(*victims), ["0", "1"])

    def test_for_one_that_wants_whole_nodes_everybody_there_makes_way(self):
        victims = [self.victim("node1", "-c1"), self.victim("node1", "-c1")]
        express = self.express("-c1", "--exclusive", "--exclude=node2")
        self.slurm.wait_state(express, "COMPLETED")
        self.assertEqual(self.assert_unharmed(*victims), ["1", "1"])

    def test_two_of_them_get_a_node_each(self):
        victims = [self.victim("node1"), self.victim("node2")]
        expresses = [self.express(), self.express()]
        for express in expresses:
            self.slurm.wait_state(express, "COMPLETED")
        self.assert_unharmed(*victims)
        self.assert_nothing_left()

    def test_one_of_two_nodes_gets_both(self):
        victims = [self.victim("node1"), self.victim("node2")]
        express = self.express(nodes=2, command="srun hostname")
        self.slurm.wait_state(express, "COMPLETED")
        self.assert_unharmed(*victims)

    def test_a_step_on_two_nodes_makes_way_as_one_and_its_script_begins_again(self):
        script = self.work / "gang.sh"
        script.write_text(f"#!/bin/bash\nsrun sh -c {shlex.quote(f'exec {self.count()} >> gang.$SLURM_PROCID')}\n")
        gang = self.slurm.submit("-N2", "--ntasks-per-node=1", "-c", self.slurm.cpus, "--siding-preemptible=checkpoint", script, uid=NOBODY,
                                 cwd=self.work)
        wait_for("both ranks to count", lambda: all((p := self.work / f"gang.{r}").exists() and p.stat().st_size > 50 for r in (0, 1)))
        wait_for("siding to see the step", lambda: len(self.running(gang)["nodes"]) == 2)
        express = self.express()
        self.slurm.wait_state(express, "COMPLETED")
        self.assertEqual(self.end_job(gang)["Restarts"], "1")
        for rank in (0, 1):
            self.assertIsNone(jobs.counted(self.work / f"gang.{rank}"))
        self.assert_nothing_left()

    def test_one_that_is_cancelled_while_it_waits_leaves_nothing(self):
        victims = [self.victim("node1"), self.victim("node2")]
        express = self.express()
        wait_for("its nodes to be kept", self.reservations)
        self.slurm.run("scancel", express)
        self.assert_nothing_left()
        self.assert_unharmed(*victims)

    def test_a_controller_that_dies_in_the_middle_goes_on_where_it_was(self):
        victims = [self.victim("node1"), self.victim("node2")]
        express = self.express()
        wait_for("its nodes to be kept", self.reservations)
        self.siding.kill9_controller()
        self.siding.start_controller()
        self.slurm.wait_state(express, "COMPLETED")
        self.assert_unharmed(*victims)
        self.assert_nothing_left()

    def test_a_parked_job_that_is_cancelled_is_gone_for_siding_too(self):
        victims = [self.victim("node1"), self.victim("node2")]
        express = self.express(command="sleep 1000")
        self.slurm.wait_state(express, "RUNNING")
        parked = next(job for job in victims if self.siding.state(job) == "parked")
        self.slurm.run("scancel", parked)
        self.siding.wait_state(parked, "cancelled")
        self.slurm.run("scancel", express)
        self.assert_nothing_left()

    def test_slurm_says_why(self):
        self.victim("node1")
        self.victim("node2")
        express = self.express(command="sleep 1000")
        self.slurm.wait_state(express, "RUNNING")
        self.assertEqual(self.comments().count(f"makes way for job {express}"), 1)
        self.assertIn("is to start by", self.comments())

    def test_one_that_cannot_be_served_is_refused_at_submission(self):
        self.victim("node1", "--siding-max-preemptions=0")
        before = self.slurm.run("squeue", "-h", "-o", "%A")
        with self.assertRaisesRegex(SlurmError, "siding: only 1 of 2 nodes can be free by then"):
            self.express(nodes=2)
        with self.assertRaisesRegex(SlurmError, "siding: needs 3 nodes, the cluster has 2"):
            self.express(nodes=3)
        self.assertEqual(self.slurm.run("squeue", "-h", "-o", "%A"), before)

    def test_a_victim_that_asks_for_notice_is_told_before_it_leaves(self):
        victims = [self.listener("node1"), self.listener("node2")]
        express = self.express(command="sleep 1000")
        self.slurm.wait_state(express, "RUNNING")
        parked = next(job for job in victims if self.siding.state(job) == "parked")
        self.assertEqual([job for job in victims if "told" in self.output(job)], [parked])
        self.slurm.run("scancel", express, *victims)

    def restart_slurmctld(self):
        self.slurm.stop_controller()
        self.slurm.start_controller()
        self.slurm.wait_answer()

    def test_one_that_comes_as_soon_as_slurmctld_is_back_gets_a_victims_node(self):
        victims = [self.victim("node1"), self.victim("node2")]
        self.restart_slurmctld()
        express = self.express()
        self.slurm.wait_state(express, "COMPLETED")
        self.assertEqual(sorted(self.assert_unharmed(*victims)), ["0", "1"])
        self.assert_nothing_left()

    def test_one_that_slurm_took_before_it_knew_its_nodes_is_told_so_and_served_then(self):
        victims = [self.victim("node1"), self.victim("node2")]
        for node in self.slurm.nodes:
            self.slurm.kill9_node(node)
        self.restart_slurmctld()
        express = self.express()
        # The one if siding had heard of the new slurmctld before sbatch asked, and so promised nothing; the other if it had not.
        told = "waits its turn", "is to start as soon as can be"
        wait_for("its user to be told", lambda: any(words in self.comments() for words in told))
        for node in self.slurm.nodes:
            self.slurm.start_node(node)
        self.slurm.wait_state(express, "COMPLETED")
        self.assertEqual(sorted(self.assert_unharmed(*victims)), ["0", "1"])
        self.assert_nothing_left()

    def test_without_a_controller_it_waits_like_any_other(self):
        victims = [self.victim("node1"), self.victim("node2")]
        self.siding.kill9_controller()
        express = self.express()
        self.assertEqual(self.slurm.job(express)["JobState"], "PENDING")
        self.assertEqual(self.assert_unharmed(*victims), ["0", "0"])
        self.slurm.wait_state(express, "COMPLETED")


class Suspending(DeadlineCase):
    """Slurm suspends victims for siding, which frees their CPUs at once."""

    def staying(self):
        """A job with a deadline that runs until it is let go."""
        express = self.express(command="until [ -e leave ]; do sleep 0.1; done")
        self.slurm.wait_state(express, "RUNNING")
        return express

    def let_go(self, express):
        (self.work / "leave").touch()
        self.slurm.wait_state(express, "COMPLETED")

    def test_a_frozen_victim_frees_its_node_and_goes_on(self):
        victims = [self.victim("node1"), self.victim("node2")]
        express = self.staying()
        states = sorted(self.slurm.job(job)["JobState"] for job in victims)
        self.assertEqual(states, ["RUNNING", "SUSPENDED"])
        self.let_go(express)
        self.assertEqual(self.assert_unharmed(*victims), ["0", "0"])
        self.assert_nothing_left()

    def test_a_controller_that_dies_leaves_nobody_suspended(self):
        victims = [self.victim("node1"), self.victim("node2")]
        express = self.staying()
        self.siding.kill9_controller()
        self.let_go(express)
        self.siding.start_controller()
        self.assert_unharmed(*victims)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main(verbosity=2)

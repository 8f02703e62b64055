#!/usr/bin/python3
"""From the request to the restored job, on real processes."""

import unittest

from case import FAR, ClusterCase, CtlError, jobs, kill, wait_for


class Preemption(ClusterCase):
    def test_checkpointed_gang_ends_as_if_nothing_had_happened(self):
        gang = self.counter(nodes=2)
        self.wait_counting(gang, rank=1)
        express = self.express(nodes=2)
        self.assert_in_time(express)
        self.cluster.wait_state(express, "done")
        self.assert_counted(gang, ranks=2)
        self.assertEqual(self.cluster.job(gang)["preemptions"], 1)
        self.assert_all_quiet()

    def test_suspended_job_goes_on_in_place(self):
        victim = self.counter(methods="suspend")
        other = self.counter(methods="suspend")
        self.wait_counting(victim)
        self.wait_counting(other)
        express = self.express()
        self.assert_in_time(express)
        self.assert_counted(victim)
        self.assert_counted(other)

    def test_killed_job_starts_again(self):
        victims = [self.counter(methods="kill") for _ in self.nodes]
        for victim in victims:
            self.wait_counting(victim)
        self.assert_in_time(self.express())
        killed, other = sorted(victims, key=lambda victim: not self.cluster.job(victim)["preemptions"])
        self.assert_counted(other)
        self.end_job(killed)
        self.assertTrue(jobs.began_anew((self.outputs() / f"{killed}.0").read_text().splitlines()))

    def test_job_that_asks_for_notice_is_told(self):
        script = "trap 'echo told' URG; while true; do echo on; sleep 0.05; done"
        victim = self.cluster.submit("--name", "listener", "--slots", 1, "--preemptible=suspend", "--notice", "2s", "--workdir",
                                     self.cluster.dir, "--output", f"{self.outputs()}/%j.%r", "--", "sh", "-c", script)
        self.wait_counting(victim)
        self.cluster.ctl("suspend", victim)
        told = (self.outputs() / f"{victim}.0").read_text().split().count("told")
        self.cluster.ctl("kill", victim)
        self.assertEqual(told, 1)
        with self.assertRaises(CtlError) as refused:
            self.cluster.submit("--notice", "2s", "--preemptible=kill", "--", "/bin/true")
        self.assertIn("notice: expected nothing, unless the job allows suspend or checkpoint", str(refused.exception))

    def test_program_that_saves_itself(self):
        gate = self.new_gate()
        argv = jobs.command(self.cluster.dir, "saver", jobs.SAVER, gate, self.cluster.dir / "state")
        victim = self.submit_gated(gate, "--name", "saver", "--slots", 1, "--preemptible=app", "--app-signal", "USR1@10s",
                                   "--restart-command", " ".join([*argv, "--resume"]), "--workdir", self.cluster.dir,
                                   "--output", f"{self.outputs()}/%j.%r", "--", *argv)
        self.wait_counting(victim)
        self.assert_in_time(self.express(nodes=2))
        self.assert_counted(victim)

    def test_program_that_saves_itself_on_schedule_loses_little_when_it_is_killed(self):
        gate, state = self.new_gate(), self.cluster.dir / "state"
        argv = [*jobs.command(self.cluster.dir, "saver", jobs.SAVER, gate, state), "--go-on"]
        victim = self.submit_gated(gate, "--name", "saver", "--slots", 1, "--preemptible=app,kill", "--app-signal", "USR1@10h",
                                   "--app-marker", state, "--checkpoint-interval", "1s", "--kill-grace", "1s",
                                   "--restart-command", " ".join([*argv, "--resume"]), "--workdir", self.cluster.dir,
                                   "--output", f"{self.outputs()}/%j.%r", "--", *argv)
        self.cluster.wait_event(victim, "continued")
        self.assert_in_time(self.express(nodes=2))  # too soon for a save that may take hours
        self.assertIn("order-kill", [e["kind"] for e in self.cluster.events(victim)])
        self.cluster.wait_event(victim, "restored")
        self.end_job(victim)
        lines = (self.outputs() / f"{victim}.0").read_text().splitlines()
        self.assertEqual(lines.count("0"), 1, "it began again at the beginning")
        numbers = set(map(int, lines[:-1]))
        self.assertEqual(numbers, set(range(len(numbers))))

    def test_job_with_a_timer_that_would_run_on_is_checkpointed(self):
        gate = self.new_gate()
        argv = ["/usr/bin/timeout", "600", *jobs.command(self.cluster.dir, "counter", jobs.COUNTER, gate, 8)]
        victim = self.submit_gated(gate, "--name", "timed", "--slots", 1, "--preemptible=suspend,checkpoint", "--workdir",
                                   self.cluster.dir, "--output", f"{self.outputs()}/%j.%r", "--", *argv)
        self.wait_counting(victim)
        wait_for("the timer to be known",
                 lambda: "(timeout) has a POSIX timer on CLOCK_REALTIME" in self.cluster.job(victim).get("timer", ""))
        express = self.express(nodes=2)
        self.assert_in_time(express)
        self.cluster.wait_state(express, "done")
        self.assert_counted(victim)
        kinds = [event["kind"] for event in self.cluster.events(victim)]
        self.assertIn("order-dump", kinds)
        self.assertNotIn("order-suspend", kinds)

    def test_job_that_cannot_be_dumped_runs_on_and_says_why(self):
        argv = jobs.command(self.cluster.dir, "uring", jobs.URING)
        stubborn = self.cluster.submit("--name", "uring", "--slots", 1, "--preemptible=checkpoint", "--allow-io-uring",
                                       "--workdir", self.cluster.dir, "--output", f"{self.outputs()}/%j.%r", "--", *argv)
        output = self.outputs() / f"{stubborn}.0"
        wait_for("it to have what it wants, or to fail",
                 lambda: output.exists() and "ready" in output.read_text() or self.cluster.state(stubborn) == "failed")
        if self.cluster.state(stubborn) == "failed":
            self.skipTest("this kernel forbids io_uring")
        self.wait_counting(stubborn, lines=2)
        self.cluster.ctl("vacate", "--no-wait", stubborn)
        self.cluster.wait_event(stubborn, "dump-failed")
        job = self.cluster.wait_state(stubborn, "running")
        self.assertIn("io_uring", job["methods_note"])
        with self.assertRaises(CtlError) as refused:
            self.express(nodes=2)
        self.assertIn("refused", str(refused.exception))

    def test_migration(self):
        job = self.counter()
        self.wait_counting(job)
        start = self.cluster.job(job)["nodes"]
        target = [n for n in self.nodes if n not in start]
        self.cluster.ctl("migrate", job, "--to", target[0])
        self.assertEqual(self.cluster.wait_state(job, "running", "done").get("nodes", target), target)
        self.assert_counted(job)

    def test_output_is_cut_back_to_the_checkpoint(self):
        job = self.counter()
        self.wait_counting(job)
        self.cluster.ctl("checkpoint", job)
        grown = len((self.outputs() / f"{job}.0").read_text().splitlines())
        self.wait_counting(job, lines=grown + 20)
        # The node goes away without a word, as in a crash; the job must continue from its checkpoint elsewhere.
        node = self.cluster.job(job)["nodes"][0]
        kill(self.cluster.task_processes())
        self.assertTrue(node)
        self.assert_counted(job)
        notes = [e["text"] for e in self.cluster.events(job) if e["kind"] == "note"]
        self.assertTrue(any("cut back" in n for n in notes), notes)


class Refusals(ClusterCase):
    def refused(self, *args):
        with self.assertRaises(CtlError) as error:
            self.cluster.submit(*args)
        return str(error.exception)

    def test_impossible_deadline_touches_nothing(self):
        job = self.counter(8, 2, "kill", "--kill-grace", "5m")
        self.wait_counting(job)
        text = self.refused("--name", "x", "--nodes", 2, "--start-by", "+4m", "--", "/bin/true")
        self.assertIn("earliest", text)
        self.assertEqual(self.cluster.job(job)["state"], "running")
        self.assertEqual(self.cluster.job(job)["preemptions"], 0)

    def test_deadline_in_the_past(self):
        self.assertIn("passed", self.refused("--start-by", "2020-01-01T00:00:00Z", "--", "/bin/true"))

    def test_more_nodes_than_there_are(self):
        self.assertIn("cluster has 2", self.refused("--nodes", 3, "--start-by", f"+{FAR}s", "--", "/bin/true"))

    def test_malformed_job_file(self):
        path = self.cluster.dir / "bad.yaml"
        path.write_text("name: x\nnodes: many\ncommand: [/bin/true]\n")
        text = self.refused("--file", path)
        self.assertIn("bad.yaml:2", text)

    def test_other_users_jobs_are_out_of_reach(self):
        job = self.counter(methods="kill")
        self.wait_counting(job)
        with self.assertRaises(CtlError) as error:
            self.cluster.ctl("kill", job, uid=65534)
        self.assertIn(f"there is no job {job};", str(error.exception))
        self.assertEqual(self.cluster.job(job)["state"], "running")


class OtherUsers(ClusterCase):
    def test_a_job_runs_and_comes_back_as_its_user(self):
        job = self.counter(uid=65534)
        self.wait_counting(job)
        self.assertEqual((self.outputs() / f"{job}.0").stat().st_uid, 65534)
        self.cluster.ctl("vacate", job)
        self.assert_counted(job)


class StoreCase(ClusterCase):
    def checkpointed(self):
        job = self.counter()
        self.wait_counting(job)
        self.cluster.ctl("checkpoint", job)
        return job, self.cluster.ctl("checkpoints", "list")["checkpoints"][0]["id"]

    def damage(self, checkpoint):
        pages = next((self.cluster.shared / "images" / checkpoint).glob("*/pages-*.img"))
        with open(pages, "r+b") as f:
            f.seek(5000)
            byte = f.read(1)
            f.seek(5000)
            f.write(bytes([byte[0] ^ 1]))
        return pages.name


class Store(StoreCase):
    def test_verify_names_the_damaged_file(self):
        _, checkpoint = self.checkpointed()
        self.assertTrue(self.cluster.ctl("checkpoints", "verify", checkpoint)["good"])
        name = self.damage(checkpoint)
        with self.assertRaises(CtlError) as error:
            self.cluster.ctl("checkpoints", "verify", checkpoint)
        self.assertIn(name, str(error.exception))

    def test_damaged_image_is_passed_over_for_the_one_before(self):
        job, first = self.checkpointed()
        self.cluster.ctl("cordon", "n1")
        self.cluster.ctl("cordon", "n2")
        self.cluster.ctl("vacate", job)
        second = self.cluster.job(job)["checkpoint"]
        self.assertNotEqual(first, second)
        name = self.damage(second)
        self.cluster.ctl("uncordon", "n1")
        self.cluster.wait_event(job, "checkpoint-damaged")
        self.assert_counted(job)
        self.assertTrue(any(name in e["text"] for e in self.cluster.events(job)))

    def test_images_of_ended_jobs_are_removed(self):
        job, checkpoint = self.checkpointed()
        self.cluster.ctl("kill", job)
        wait_for("the image to be gone", lambda: not (self.cluster.shared / "images" / checkpoint).exists())


class Scrubbed(StoreCase):
    nodes = ("n1",)

    def test_an_image_that_nobody_asks_for_is_found_damaged_while_its_job_runs(self):
        job, checkpoint = self.checkpointed()
        name = self.damage(checkpoint)
        self.cluster.kill9_agent("n1")
        (self.cluster.dir / "n1" / "scrubbed").write_text("0")  # it has been away for long: to read everything is overdue
        self.cluster.start_agent("n1")
        self.assertIn(name, self.cluster.wait_event(job, "checkpoint-damaged")["text"])
        self.assertEqual(self.cluster.state(job), "running")


if __name__ == "__main__":
    unittest.main(verbosity=2)

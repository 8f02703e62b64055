#!/usr/bin/python3
"""A requeued job that cannot continue from its checkpoint goes back into the queue: its work is not lost. Only an image that is found
to be damaged does not count, and an older one does."""

import os
import shutil
import signal
import subprocess

from case import BIN, main, wait_for
from held_criu import HeldCriu
from job_case import NOBODY, PreemptionCase


class PutOff(PreemptionCase):
    def prepare(self):
        self.criu = HeldCriu(self.slurm.dir / "criu")
        self.addCleanup(self.criu.let_go)
        super().prepare()

    def park(self):
        """A job that left node1 and may start on node2."""
        job = self.submit("--siding-preemptible", "-e", self.work / "err.%j", self.counter(), uid=NOBODY)
        self.wait_counting(job)
        self.vacate(job)
        return job

    def errors(self, job):
        path = self.work / f"err.{job}"
        return path.read_text() if path.exists() else ""

    def wait_put_off(self, job, why):
        wait_for("the start to have been put off", lambda: why in self.errors(job))

    def assert_went_on(self, job, restarts="2"):
        self.assertEqual(self.end_job(job)["Restarts"], restarts)
        self.assert_counted(job)

    def test_while_the_shared_tier_is_away(self):
        job = self.park()
        images, away = self.agents.shared / "images", self.agents.shared / "away"
        images.rename(away)
        self.wait_put_off(job, f"{images} is not there; the job goes back into the queue")
        away.rename(images)
        self.assert_went_on(job)

    def test_while_there_is_no_agent(self):
        job = self.park()
        self.agents.kill9_agent("node2")
        self.wait_put_off(job, "agent could not be asked")
        self.agents.start_agent("node2")
        self.assert_went_on(job)

    def test_when_the_agent_dies_before_it_answers(self):
        job = self.park()
        agent = self.agents.agents["node2"]
        os.kill(agent.pid, signal.SIGSTOP)
        self.slurm.wait_state(job, "RUNNING")
        wait_for("the shim to wait for the agent", lambda: self.connections("node2"))
        self.agents.kill9_agent("node2")
        self.wait_put_off(job, "the agent")
        self.agents.start_agent("node2")
        self.assert_went_on(job)

    def connections(self, node):
        """Of plugins, to this agent's socket; beside the one on which it listens. All keep the name that it had at first."""
        path = str(self.slurm.agent_socket(node))
        with open("/proc/net/unix") as sockets:
            return sum(path in line for line in sockets) > 1

    def test_not_when_the_agent_dies_during_the_restore(self):
        job = self.park()
        self.criu.hold()
        self.criu.wait_reached()
        self.agents.kill9_agent("node2")
        self.criu.let_go()
        self.agents.start_agent("node2")
        self.agents.wait_phase("node2", f"{job}.2.0", "RUNNING")
        self.assert_went_on(job, restarts="1")

    def test_a_damaged_image_gives_way_to_the_one_before(self):
        job = self.submit("--siding-preemptible", "-e", self.work / "err.%j", self.counter(), uid=NOBODY)
        self.wait_counting(job)
        self.agents.checkpoint({"node1": [f"{job}.1.0"]}, f"slurm-{job}.1", keep_running=True)
        self.wait_counting(job, 40)
        self.agents.checkpoint({"node1": [f"{job}.1.0"]}, f"slurm-{job}.2")
        self.damage(f"slurm-{job}.2")
        self.wait_put_off(job, "is damaged")  # a restore cuts the file back to what it was
        self.assert_went_on(job)

    def test_one_that_is_repaired_while_it_is_set_aside_counts(self):
        hold, backup = self.agents.dir / "hold", self.agents.dir / "backup"
        self.agents.kill9_agent("node2")
        self.agents.env["node2"] = {"SIDING_FAULT": f"store.set-aside=hold={hold}"}
        self.agents.start_agent("node2")
        job = self.park()
        shutil.copytree(self.agents.shared / "images", backup / "images")
        self.damage(f"slurm-{job}.1")
        log = self.agents.dir / "node2.log"
        wait_for("the agent to have read what is damaged", lambda: "fault: store.set-aside=hold" in log.read_text())
        subprocess.run([BIN / "siding-store", "repair", self.agents.shared, "--from", backup], check=True, stdout=subprocess.DEVNULL)
        hold.touch()
        self.assert_went_on(job, restarts="1")
        self.assertEqual(len(list((self.agents.shared / "damaged").iterdir())), 1)

    def damage(self, checkpoint):
        pages = next((self.agents.shared / "images" / checkpoint / "0").glob("pages-*.img"))
        with open(pages, "r+b") as file:
            file.write(b"damage")

    def test_without_an_older_one_it_begins_anew(self):
        job = self.park()
        self.damage(f"slurm-{job}.1")
        self.end_job(job)
        self.assertIn("is damaged", self.errors(job))
        self.assert_began_anew(job)  # what it had written before is still there: Slurm appends

    def test_a_job_that_is_held_goes_on_when_it_is_released(self):
        script = self.work / "held.sh"
        script.write_text("#!/bin/bash\n[ -n \"$SLURM_RESTART_COUNT\" ] || exit 98\n")
        job = self.submit(script, uid=NOBODY)
        wait_for("Slurm to hold the job", lambda: self.slurm.job(job)["Priority"] == "0")
        self.slurm.run("scontrol", "release", job, uid=NOBODY)
        self.slurm.wait_state(job, "COMPLETED")


if __name__ == "__main__":
    main()

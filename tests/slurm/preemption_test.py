#!/usr/bin/python3
"""Jobs of a real Slurm leave their node with all they hold, and continue where they were on another one."""

import json
import pathlib

from case import jobs, main, marked_processes, wait_for
from job_case import NOBODY, PreemptionCase
from vanishing import may_be_gone


class Preemption(PreemptionCase):
    def test_a_batch_job_goes_on_on_another_node(self):
        job = self.submit("--siding-preemptible", self.counter("exit 5"))
        self.wait_counting(job)
        self.vacate(job)
        ended = self.end_job(job, "FAILED")
        self.assertEqual((ended["ExitCode"], ended["BatchHost"], ended["Restarts"]), ("5:0", "node2", "1"))
        self.assert_counted(job)

    def test_so_does_one_of_an_ordinary_user_and_comes_back_again(self):
        job = self.submit("--siding-preemptible", self.counter(), uid=NOBODY)
        self.wait_counting(job)
        self.vacate(job)
        self.wait_counting(job, 40)
        self.vacate(job, incarnation=2, node="node2", to="node1")
        ended = self.end_job(job)
        self.assertEqual((ended["BatchHost"], ended["Restarts"]), ("node1", "2"))
        self.assert_counted(job)

    def test_a_step_writes_through_the_pipes_of_its_next_srun(self):
        script = self.work / "steps.sh"
        script.write_text(f"#!/bin/bash\nsrun --siding-preemptible {self.count()}\n")
        job = self.submit(script)
        self.wait_counting(job)
        rank = 65536
        self.agents.checkpoint({"node1": [f"{job}.1.{rank}"]}, f"slurm-{job}.1")
        self.slurm.wait_state(job, "PENDING")
        self.slurm.run("scontrol", "update", f"JobId={job}", "ReqNodeList=node2")
        self.end_job(job)
        self.assert_step_counted(job)

    def test_a_step_of_several_tasks_on_two_nodes_goes_on_as_one(self):
        script = self.work / "steps.sh"
        script.write_text(f"#!/bin/bash\nsrun --siding-preemptible -n4 sh -c 'exec {self.count(4)} > {self.work}/out.task$SLURM_PROCID'\n")
        job = self.slurm.submit("-o", self.work / "out.script", "-N2", "--ntasks-per-node=2", script, uid=NOBODY, cwd=self.work)
        for task in range(4):
            self.wait_counting(f"task{task}")
        on = {"node1": (65536, 65537), "node2": (65538, 65539)}
        self.agents.checkpoint({node: [f"{job}.1.{rank}" for rank in ranks] for node, ranks in on.items()}, f"slurm-{job}.1")
        ended = self.end_job(job)
        self.assertEqual(ended["Restarts"], "1")
        for task in range(4):
            self.assert_counted(f"task{task}")

    def test_a_program_that_saves_itself_comes_back_with_its_own_restart(self):
        command = " ".join(jobs.command(self.work, "saver", jobs.SAVER, self.gate, self.work / "state"))
        script = self.work / "saver.sh"
        script.write_text(f"#!/bin/bash\nexec {command} $([ -e {self.work}/state ] && echo --resume)\n")
        job = self.submit("--siding-preemptible=app", "--siding-checkpoint-signal=USR1@20s", script, uid=NOBODY)
        self.wait_counting(job)
        task = f"{job}.1.0"
        self.agents.order("node1", task, save={"app": {"signal": 10, "graceUs": 20_000_000}})
        self.agents.wait_phase("node1", task, "SAVED")
        ended = self.end_job(job)
        self.assertEqual(ended["Restarts"], "1")
        self.assert_counted(job)

    def test_each_element_of_an_array_is_a_job_of_its_own(self):
        first = self.slurm.submit("-o", self.work / "out.%A_%a", "-a", "1-2", "-w", "node1", "--siding-preemptible", self.counter(),
                                  cwd=self.work)
        self.wait_counting(f"{first}_1")
        self.wait_counting(f"{first}_2")
        rows = dict(row.split() for row in self.slurm.run("squeue", "-h", "-r", "-o", "%K %A").splitlines())
        self.vacate(rows["2"], to=None)  # Slurm refuses another node for one element
        for element in ("1", "2"):
            self.end_job(rows[element])
            self.assert_counted(f"{first}_{element}")

    def test_a_checkpoint_that_is_called_off_leaves_the_job_running(self):
        job = self.submit("--siding-preemptible", self.counter())
        task = f"{job}.1.0"
        self.wait_counting(job)
        op = self.agents.order("node1", task, dump={"checkpoint": f"slurm-{job}.1", "tier": "SHARED"})
        self.agents.wait_phase("node1", task, "PREPARED")
        self.agents.order("node1", task, op, abort={})
        self.end_job(job)
        self.assert_counted(job)


class Ordinary(PreemptionCase):
    """What Slurm's users and tools do with a preemptible job as with any other."""

    def trapper(self):
        """Says what reaches it; ends with 7 when it is told to terminate."""
        script = self.work / "trap.sh"
        script.write_text("#!/bin/bash\ntrap 'echo usr1' USR1\ntrap 'echo term; exit 7' TERM\necho ready\n"
                          "while true; do sleep 0.05; done\n")
        return script

    def run_trapper(self):
        job = self.submit("--siding-preemptible", self.trapper(), uid=NOBODY)
        self.wait_counting(job, 1)
        self.agents.wait_phase("node1", f"{job}.1.0", "RUNNING")
        return job

    def wait_word(self, job, word):
        wait_for(f"job {job} to say {word}", lambda: word in self.output(job))

    def test_a_signal_reaches_it_once(self):
        job = self.run_trapper()
        self.slurm.run("scancel", "--signal=USR1", "--batch", job)
        self.wait_word(job, "usr1")
        self.slurm.run("scancel", "--signal=TERM", "--batch", job)
        self.wait_word(job, "term")
        ended = self.slurm.wait_state(job, "FAILED")
        self.assertEqual(ended["ExitCode"], "7:0")
        self.assertEqual(self.output(job).count("usr1"), 1, self.output(job))

    def test_scancel_ends_it_and_leaves_nothing(self):
        job = self.run_trapper()
        self.slurm.run("scancel", job)
        self.slurm.wait_state(job, "CANCELLED")
        report = self.agents.wait_phase("node1", f"{job}.1.0", "EXITED")
        self.assertNotIn("error", report)
        wait_for("no process of the job to be left", lambda: not self.of_job(job))

    def of_job(self, job):
        found = []
        for pid in marked_processes(self.work):
            with may_be_gone():
                if b"siding-init" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def test_it_is_suspended_and_resumed(self):
        job = self.submit("--siding-preemptible", self.counter())
        self.wait_counting(job)
        self.slurm.run("scontrol", "suspend", job)
        init = int(self.agents.wait_phase("node1", f"{job}.1.0", "RUNNING") and self.init_of(job))
        wait_for("the command to be stopped", lambda: self.state_of_children(init) == {"T"})
        self.slurm.run("scontrol", "resume", job)
        self.end_job(job)
        self.assert_counted(job)

    def init_of(self, job):
        return json.loads((self.agents.dir / "node1" / "tasks" / f"{job}.1.0" / "running.json").read_text())["init"]["pid"]

    @staticmethod
    def state_of_children(pid):
        states = set()
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with may_be_gone():
                states.add(pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0])
        return states

    def test_it_runs_as_submitted(self):
        script = self.work / "show.sh"
        script.write_text("#!/bin/bash\npwd; id -u; umask; ulimit -n; echo $X; cat; echo err >&2; echo \"$1\"\n")
        plain = self.slurm.submit("-o", self.work / "out.plain", "--export=ALL,X=a b", script, "an argument", uid=NOBODY, cwd=self.work)
        asked = self.slurm.submit("-o", self.work / "out.asked", "--export=ALL,X=a b", "--siding-preemptible", script, "an argument",
                                  uid=NOBODY, cwd=self.work)
        for job in (plain, asked):
            self.slurm.wait_state(job, "COMPLETED")
        self.assertEqual((self.work / "out.asked").read_text(), (self.work / "out.plain").read_text())

    def test_a_command_that_is_not_there_fails_as_ever(self):
        codes = []
        for flags in ([], ["--siding-preemptible"]):
            job = self.submit(*flags, "--wrap", "exec /nowhere/nothing")
            codes.append(self.slurm.wait_state(job, "FAILED")["ExitCode"])
        self.assertEqual(codes, ["127:0", "127:0"])

    def test_an_agent_that_died_finds_it_again(self):
        job = self.submit("--siding-preemptible", self.counter())
        self.wait_counting(job)
        self.agents.kill9_agent("node1")
        self.agents.start_agent("node1")
        self.vacate(job)
        self.end_job(job)
        self.assert_counted(job)


    def test_an_agent_that_dies_in_the_middle_of_a_dump_costs_nothing(self):
        job = self.submit("--siding-preemptible", self.counter())
        self.wait_counting(job)
        self.agents.order("node1", f"{job}.1.0", dump={"checkpoint": f"slurm-{job}.1", "tier": "SHARED"})
        self.agents.wait_phase("node1", f"{job}.1.0", "PREPARED")
        self.agents.kill9_agent("node1")
        self.end_job(job)
        self.assert_counted(job)

    def test_a_slurmd_that_was_restarted_requeues_it_as_well(self):
        job = self.submit("--siding-preemptible", self.counter())
        self.wait_counting(job)
        self.slurm.stop_node("node1")
        self.slurm.start_node("node1")
        self.vacate(job)
        self.end_job(job)
        self.assert_counted(job)


class UnderCgroups(PreemptionCase):
    proctrack = "cgroup"

    test_a_batch_job_goes_on_on_another_node = Preemption.test_a_batch_job_goes_on_on_another_node
    test_so_does_one_of_an_ordinary_user_and_comes_back_again = Preemption.test_so_does_one_of_an_ordinary_user_and_comes_back_again
    test_a_step_writes_through_the_pipes_of_its_next_srun = Preemption.test_a_step_writes_through_the_pipes_of_its_next_srun
    test_a_checkpoint_that_is_called_off_leaves_the_job_running = Preemption.test_a_checkpoint_that_is_called_off_leaves_the_job_running
    test_it_is_suspended_and_resumed = Ordinary.test_it_is_suspended_and_resumed
    init_of, state_of_children = Ordinary.init_of, staticmethod(Ordinary.state_of_children)
    trapper, run_trapper, wait_word = Ordinary.trapper, Ordinary.run_trapper, Ordinary.wait_word
    of_job, test_a_signal_reaches_it_once = Ordinary.of_job, Ordinary.test_a_signal_reaches_it_once
    test_scancel_ends_it_and_leaves_nothing = Ordinary.test_scancel_ends_it_and_leaves_nothing


if __name__ == "__main__":
    main()

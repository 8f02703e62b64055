#!/usr/bin/python3
"""A job keeps to the memory and to the number of processes that it may have, through all that can be done to it, and no
other job is harmed by one that does not."""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from case import PATIENCE, Cluster, ClusterCase, wait_for  # noqa: E402
import jobs  # noqa: E402
from vanishing import paths  # noqa: E402

NODE = "fenced"
MOST_PIDS = 300
CGROUPS = pathlib.Path("/sys/fs/cgroup")
FOLDERS = ("memory", "pids", "unified", "")  # of cgroups, version 1 and 2

# Holds MIB, counts, and takes a GiB more once the file is there.
GREEDY = r"""
import os, sys, time
trigger, mib = sys.argv[1], int(sys.argv[2])
ballast = [bytearray(os.urandom(1 << 20)) for _ in range(mib)]
i = 0
while True:
    print(i, flush=True)
    i += 1
    time.sleep(0.02)
    if os.path.exists(trigger):
        for _ in range(1024):
            ballast.append(bytearray(os.urandom(1 << 20)))
        print("has it all", flush=True)
"""

# Has as many children as it gets, up to 1,500, and says how many; then again whenever it is asked by a new file.
BOMB = r"""
import os, sys, time
ask = sys.argv[1]
made = 0
def explode():
    global made
    while made < 1500:
        try:
            if os.fork() == 0:
                while True:
                    time.sleep(60)
        except OSError:
            break
        made += 1
explode()
print(f"has {made}", flush=True)
asked = 0
while True:
    print("alive", flush=True)
    time.sleep(0.05)
    if os.path.exists(f"{ask}.{asked}"):
        explode()
        print(f"asked {asked}: has {made}", flush=True)
        asked += 1
"""


CLUSTER = "[0-9a-f]" * 16  # its name, see agent/os/names.h


def cgroup_file(node, task, name):
    for folder in FOLDERS:
        for path in paths(CGROUPS / folder / "siding" / node, f"{task}.{CLUSTER}/{name}"):
            return path
    return None


def memory_limit(pid):
    """Of the cgroup that the process is in, in bytes; None: there is none."""
    lines = [line.split(":", 2)[1:] for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    first = next((folder for controllers, folder in lines if "memory" in controllers.split(",")), None)
    root, name, folder = CGROUPS, "memory.max", next((folder for controllers, folder in lines if not controllers), None)
    if first is not None:  # version 1
        root, name, folder = CGROUPS / "memory", "memory.limit_in_bytes", first
    here = root / folder.lstrip("/")
    assert here.is_dir(), f"process {pid} is in {folder}, and there is no {here}"
    while not (here / name).exists():
        if here == root:
            return None  # of version 2: nothing above the process has the controller
        here = here.parent
    text = (here / name).read_text().strip()
    return None if text == "max" or int(text) > 1 << 60 else int(text)


class FenceCase(ClusterCase):
    nodes, slots = (NODE,), 2
    agent_args = ("--task-pids", MOST_PIDS)

    def make_cluster(self):
        return Cluster(self.nodes, self.slots, policy=self.policy, agent_args=self.agent_args)

    def setUp(self):
        super().setUp()
        if self.cluster.node_list()[0].get("fence_problem"):
            self.skipTest("needs the cgroup controllers memory and pids")

    def run_job(self, name, source, *args, memory=None, preemptible="suspend,checkpoint", wrap=()):
        argv = jobs.command(self.cluster.dir, name, source, *args)
        return self.cluster.submit("--name", name, "--slots", 1, *(["--memory", memory] if memory else []),
                                   f"--preemptible={preemptible}", "--workdir", self.cluster.dir,
                                   "--output", f"{self.outputs()}/%j.%r", "--", *wrap, *argv)

    def output(self, job):
        path = self.outputs() / f"{job}.0"
        return path.read_text() if path.exists() else ""

    def trigger(self, name):
        (self.cluster.dir / name).touch()

    def init_of(self, task):
        return json.loads((self.cluster.task_folder(NODE, task) / "running.json").read_text())["init"]["pid"]

    def wait_limit(self, task, limit):
        def is_kept():
            try:
                return memory_limit(self.init_of(task)) == limit
            except FileNotFoundError:
                return False  # it is on its way
        wait_for(f"task {task} to be kept to {limit}", is_kept)

    def new_agent(self):
        self.cluster.kill9_agent(NODE)
        self.cluster.start_agent(NODE)
        wait_for("the node to be up again", lambda: self.cluster.node_list()[0]["state"] == "up")

    def assert_out_of_memory(self, job, text):
        view = self.cluster.wait_state(job, "failed")
        self.assertIn(f"out of memory: used all of its {text}", view["reason"])
        self.assertNotIn("has it all", self.output(job))
        self.assertIn("out of memory", " ".join(e["text"] for e in self.cluster.events(job)))
        self.assertIn("out of memory", self.cluster.ctl("explain", job)["job"]["reason"])


class Memory(FenceCase):
    def test_a_job_that_takes_too_much_ends_and_says_why(self):
        neighbour = self.counter()
        job = self.run_job("greedy", GREEDY, self.cluster.dir / "now", 1, memory="16MiB")
        self.wait_counting(job, lines=1)
        self.trigger("now")
        self.assert_out_of_memory(job, "16.0 MiB")
        self.assert_counted(neighbour)
        self.assertIsNone(self.cluster.agents[NODE].poll())
        self.assert_all_quiet()

    def test_all_of_a_job_ends_of_which_the_kernel_has_ended_one_process(self):
        # The shell would continue.
        job = self.run_job("greedy", GREEDY, self.cluster.dir / "now", 1, memory="64MiB",
                           wrap=("/bin/sh", "-c", '"$@"; sleep 1000', "sh"))
        self.wait_counting(job, lines=1)
        self.trigger("now")
        self.assert_out_of_memory(job, "64.0 MiB")

    def test_a_script_that_ends_well_hides_no_child_that_the_kernel_has_ended(self):
        job = self.run_job("greedy", GREEDY, self.cluster.dir / "now", 1, memory="64MiB",
                           wrap=("/bin/sh", "-c", '"$@"; exit 0', "sh"))
        self.wait_counting(job, lines=1)
        self.trigger("now")
        self.assert_out_of_memory(job, "64.0 MiB")
        self.assertEqual(self.cluster.job(job)["exit_code"], 137)

    def test_it_holds_through_all_that_is_done_to_a_job(self):
        mib = 64
        most = mib << 20
        # All but a few pages: what is done to the job needs more, which must not end it.
        job = self.run_job("greedy", GREEDY, self.cluster.dir / "now", 48, memory=f"{mib}MiB")
        self.wait_counting(job)
        self.wait_limit(f"{job}.1.0", most)
        self.cluster.ctl("suspend", job)
        self.cluster.wait_state(job, "suspended")
        self.new_agent()
        self.cluster.wait_state(job, "suspended")
        self.cluster.ctl("resume", job)
        self.cluster.wait_state(job, "running")
        self.cluster.ctl("checkpoint", job)
        self.cluster.wait_state(job, "running")
        self.wait_limit(f"{job}.1.0", most)
        self.new_agent()
        self.wait_limit(f"{job}.1.0", most)
        for incarnation in 2, 3:
            self.cluster.ctl("vacate", job)
            wait_for("the job to be back", lambda: self.cluster.job(job).get("incarnation") == incarnation and
                     self.cluster.state(job) == "running")
            self.wait_limit(f"{job}.{incarnation}.0", most)
            self.new_agent()
            self.wait_limit(f"{job}.{incarnation}.0", most)
        said = self.output(job).splitlines()
        self.assertEqual(said, [str(i) for i in range(len(said))])  # nothing was lost
        self.trigger("now")
        self.assert_out_of_memory(job, f"{mib}.0 MiB")

    def test_an_agent_that_dies_while_it_is_open_finds_it_again(self):
        for point in "agent.dump.ready", "agent.dump.prepared", "criu.dump.step":
            with self.subTest(point):
                job = self.run_job("greedy", GREEDY, self.cluster.dir / "never", 4, memory="64MiB")
                self.wait_counting(job)
                self.cluster.kill9_agent(NODE)
                self.cluster.env["SIDING_FAULT"] = f"{point}=kill"
                self.cluster.start_agent(NODE)
                self.cluster.wait_state(job, "running")
                self.wait_limit(f"{job}.1.0", 64 << 20)
                self.cluster.ctl("checkpoint", "--no-wait", job)
                self.cluster.agents[NODE].wait(PATIENCE)
                del self.cluster.env["SIDING_FAULT"]
                self.cluster.start_agent(NODE)
                self.cluster.wait_state(job, "running")
                self.wait_limit(f"{job}.1.0", 64 << 20)
                lines = self.output(job).count("\n")
                wait_for("it to continue", lambda: self.output(job).count("\n") > lines)
                self.cluster.ctl("kill", job)
                self.cluster.wait_state(job, "cancelled")

    def test_a_job_that_says_nothing_is_not_fenced(self):
        job = self.counter(mib=64)
        self.wait_counting(job)
        self.assertIsNone(memory_limit(self.init_of(f"{job}.1.0")))
        self.assert_counted(job)


class Processes(FenceCase):
    def test_a_fork_bomb_stops_at_the_limit(self):
        neighbour = self.counter()
        ask = self.cluster.dir / "ask"
        job = self.run_job("bomb", BOMB, ask)
        wait_for("the bomb to have gone off", lambda: "has " in self.output(job))
        asked = 0

        def assert_held(what):
            nonlocal asked
            self.trigger(f"ask.{asked}")
            said = wait_for(f"the bomb to answer {what}",
                            lambda: next((line for line in self.output(job).splitlines() if line.startswith(f"asked {asked}")), None))
            # The init and the program are two of them.
            self.assertLessEqual(int(said.split()[-1]), MOST_PIDS - 2, what)
            asked += 1

        assert_held("at first")
        self.cluster.ctl("suspend", job)
        self.cluster.wait_state(job, "suspended")
        self.cluster.ctl("resume", job)
        self.cluster.wait_state(job, "running")
        assert_held("after a suspend")
        self.new_agent()
        assert_held("with a new agent")
        self.cluster.ctl("checkpoint", job)
        self.cluster.wait_state(job, "running")
        assert_held("after a checkpoint")
        self.cluster.ctl("vacate", job)
        wait_for("the job to be back", lambda: self.cluster.job(job).get("incarnation") == 2 and self.cluster.state(job) == "running")
        assert_held("restored")
        self.assert_counted(neighbour)
        self.cluster.ctl("kill", job)
        self.cluster.wait_state(job, "cancelled")
        self.assert_all_quiet()


class NoFence(FenceCase):
    agent_args = ("--fence", "none")

    def test_a_site_may_do_without(self):
        job = self.counter(64, 1, "suspend,checkpoint", "--memory", "16MiB")
        self.wait_counting(job)
        self.assertIsNone(memory_limit(self.init_of(f"{job}.1.0")))
        self.assert_counted(job)

    def test_tasks_of_an_agent_that_fenced_them_are_set_free(self):
        self.cluster.kill9_agent(NODE)
        self.cluster.agent_args = ()
        self.cluster.start_agent(NODE)
        job = self.run_job("greedy", GREEDY, self.cluster.dir / "never", 4, memory="64MiB")
        self.wait_counting(job)
        self.wait_limit(f"{job}.1.0", 64 << 20)
        self.cluster.agent_args = self.agent_args
        self.new_agent()
        self.wait_limit(f"{job}.1.0", None)
        self.cluster.ctl("kill", job)
        self.cluster.wait_state(job, "cancelled")


class Score(FenceCase):
    def test_tasks_begin_at_no_score_below_0_also_restored(self):
        job = self.run_job("greedy", GREEDY, self.cluster.dir / "never", 1)
        self.wait_counting(job)
        for incarnation in 1, 2:
            procs = cgroup_file(NODE, f"{job}.{incarnation}.0", "cgroup.procs")
            pids = procs.read_text().split()
            self.assertTrue(pids)
            for pid in pids:
                self.assertEqual(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text().strip(), "0")
            if incarnation == 1:
                self.cluster.ctl("vacate", job)
                wait_for("the job to be back",
                         lambda: self.cluster.job(job).get("incarnation") == 2 and self.cluster.state(job) == "running")
        self.cluster.ctl("kill", job)
        self.cluster.wait_state(job, "cancelled")


if __name__ == "__main__":
    os.umask(0o022)
    unittest.main(verbosity=2)

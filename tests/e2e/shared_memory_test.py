#!/usr/bin/python3
"""Programs whose processes share memory with a name, as Python's multiprocessing does: they are preempted and continue."""

import os
import unittest

from case import Cluster, ClusterCase, kill, wait_for

# Workers that were started in one of Python's ways: a lock, a queue each way, and a block of shared memory. Each step adds
# one to every number of the block, in turns. When its gate is open the numbers say whether all was done, and done once.
PROGRAM = """
import itertools, multiprocessing, os, sys
from multiprocessing import shared_memory

WORKERS, NUMBERS = 2, 1000

def work(name, lock, orders, answers):
    block = shared_memory.SharedMemory(name)
    for step in iter(orders.get, None):
        with lock:
            numbers = block.buf.cast("q")
            for i in range(NUMBERS):
                numbers[i] += 1
            numbers.release()
        answers.put(step)
    block.close()

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    lock, orders, answers = multiprocessing.Lock(), multiprocessing.Queue(), multiprocessing.Queue()
    block = shared_memory.SharedMemory(create=True, size=8 * NUMBERS)
    workers = [multiprocessing.Process(target=work, args=(block.name, lock, orders, answers)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for step in itertools.count():
        last = os.path.exists(sys.argv[2])
        for _ in workers:
            orders.put(step)
        for _ in workers:
            assert answers.get() == step
        print(step, flush=True)
        if last:
            break
        workers[0].join(0.02)
    for _ in workers:
        orders.put(None)
    for worker in workers:
        worker.join()
    assert list(block.buf.cast("q")[:NUMBERS]) == [(step + 1) * WORKERS] * NUMBERS
    print("right", flush=True)
    sys.stdout.flush()
    block.unlink()
"""
USER = 65534


class SharedMemoryCase(ClusterCase):
    def setUp(self):
        super().setUp()
        self.before = set(os.listdir("/dev/shm"))

    def submit(self, method, *extra):
        program = self.cluster.dir / "program.py"
        program.write_text(PROGRAM)
        gate = self.new_gate()
        return self.submit_gated(gate, "--name", method, "--slots", 1, "--preemptible=checkpoint", *extra, "--workdir",
                                 self.cluster.dir, "--output", f"{self.outputs()}/%j", "--", "/usr/bin/python3", program,
                                 method, gate, uid=USER)

    def lines(self, job):
        path = self.outputs() / str(job)
        return path.read_text().splitlines() if path.exists() else []

    def wait_steps(self, job, steps):
        wait_for(f"job {job} to have done {steps} steps", lambda: len(self.lines(job)) >= steps)

    def left(self):
        return set(os.listdir("/dev/shm")) - self.before


class SharedMemory(SharedMemoryCase):
    def move_to_the_other_node(self, job):
        node = self.cluster.job(job)["nodes"][0]
        self.cluster.ctl("cordon", node)
        self.cluster.ctl("vacate", job)
        self.cluster.wait_event(job, "restored")
        self.cluster.wait_state(job, "running")
        self.assertNotEqual(self.cluster.job(job)["nodes"][0], node)
        self.cluster.ctl("uncordon", node)

    def assert_right(self, job):
        self.end_job(job)
        lines = self.lines(job)
        self.assertEqual(lines, [*map(str, range(len(lines) - 1)), "right"])
        wait_for("nothing to be left in /dev/shm", lambda: not self.left())

    def preempted(self, method):
        job = self.submit(method)
        for steps in (20, 60, 100):
            self.wait_steps(job, steps)
            self.move_to_the_other_node(job)
        self.assert_right(job)

    def test_forkserver(self):
        self.preempted("forkserver")

    def test_spawn(self):
        self.preempted("spawn")

    def test_fork(self):
        self.preempted("fork")

    def test_memory_with_a_name_leaves_the_node_with_its_job(self):
        job = self.submit("spawn")
        self.wait_steps(job, 20)
        for node in self.nodes:
            self.cluster.ctl("cordon", node)
        self.assertTrue(self.left())
        self.cluster.ctl("vacate", job)
        self.cluster.wait_state(job, "parked")
        self.assertEqual(self.left(), set())
        for node in self.nodes:
            self.cluster.ctl("uncordon", node)
        self.assert_right(job)

    def test_an_earlier_checkpoint_has_the_memory_of_that_time(self):
        job = self.submit("spawn")
        self.wait_steps(job, 20)
        self.cluster.ctl("checkpoint", job)
        self.cluster.wait_event(job, "continued")
        self.wait_steps(job, len(self.lines(job)) + 50)
        kill(self.cluster.task_processes())  # as a node's fault would
        self.cluster.wait_event(job, "restored")
        self.assert_right(job)


class NoRestores(Cluster):
    """Each restore fails, after the memory of its job was put back."""

    def _spawn(self, name, argv):
        plain = self.env
        if name != "sidingd":
            self.env = {**plain, "SIDING_FAULT": "shim.files=error"}
        try:
            return super()._spawn(name, argv)
        finally:
            self.env = plain


class FailedRestore(SharedMemoryCase):
    def make_cluster(self):
        return NoRestores(self.nodes, self.slots, policy=self.policy)

    def test_memory_with_a_name_leaves_the_node_again(self):
        job = self.submit("spawn")
        self.wait_steps(job, 20)
        self.cluster.ctl("vacate", job)
        self.cluster.wait_event(job, "restore-failed")
        wait_for("nothing to be left in /dev/shm", lambda: not self.left())


if __name__ == "__main__":
    unittest.main()

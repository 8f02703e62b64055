#!/usr/bin/python3
"""Jobs with GPUs on a real Slurm, off their nodes and back: real processes and dumps, and a GPU driver without GPUs. A job's program
makes a step only while its state on the GPU is what it should be."""

from case import BIN, main, wait_for
from job_case import NOBODY, PreemptionCase

LIBRARY = BIN.parent / "agent" / "gpu" / "libfake_cuda.so"
GPUS = {node: [f"GPU-00000000-0000-0000-0000-0000000000{number}" for number in numbers]
        for node, numbers in {"node1": ["11", "12"], "node2": ["21", "22"]}.items()}
STEP = 65536  # the rank of a step's first task


class Gpus(PreemptionCase):
    def prepare(self):
        self.slurm.gpus = {node: range(len(uuids)) for node, uuids in GPUS.items()}
        super().prepare()

    def set_up_agents(self):
        """Each node has a driver, and GPUs, of its own."""
        self.drivers = {}
        for node, uuids in GPUS.items():
            self.drivers[node] = self.slurm.dir / "drivers" / node
            self.drivers[node].mkdir(parents=True)
            (self.drivers[node] / "gpus").write_text("".join(f"{uuid} 80000 200 0\n" for uuid in uuids))
            self.agents.args[node] = ["--cuda-library", LIBRARY, "--nvml-library", LIBRARY]
            self.agents.env[node] = {"FAKE_CUDA": str(self.drivers[node])}

    def gpu_counter(self, with_what="exec"):
        states = self.work / "states"
        states.mkdir(exist_ok=True)
        states.chmod(0o777)
        script = self.work / "gpu.sh"
        script.write_text(f"#!/bin/bash\nexport FAKE_GPU_STATES={states}\n{with_what} {BIN}/siding-test-job -g -e {self.gate} 0 8\n")
        return script

    def assert_goes_on(self, job):
        """From where it was, to its end; returns what Slurm says of it."""
        ended = self.end_job(job)
        numbers = [line for line in self.output(job).splitlines() if line.isdigit()]  # not what Slurm says of a step
        self.assertTrue(numbers)
        self.assertEqual(numbers, [str(i + 1) for i in range(len(numbers))])
        return ended

    def gpus_of(self, node, task):
        return self.agents.wait_phase(node, task, "RUNNING").get("gpus")

    def take_first_gpu_of(self, node):
        job = self.slurm.submit("-o", "/dev/null", "-w", node, "--gres=gpu:1", "--wrap", "sleep 1000")
        self.slurm.wait_state(job, "RUNNING")

    def test_a_job_goes_on_on_the_gpu_that_its_next_node_has_free(self):
        bystander = self.submit(self.counter())
        job = self.submit("--siding-preemptible", "--gres=gpu:1", self.gpu_counter(), uid=NOBODY)
        self.wait_counting(job)
        self.assertEqual(self.gpus_of("node1", f"{job}.1.0"), GPUS["node1"][:1])
        self.take_first_gpu_of("node2")
        self.vacate(job)
        self.assertEqual(self.gpus_of("node2", f"{job}.2.0"), GPUS["node2"][1:])
        ended = self.assert_goes_on(job)
        self.assertEqual((ended["BatchHost"], ended["Restarts"]), ("node2", "1"))
        self.assertEqual((self.drivers["node2"] / "moves").read_text().split("\n")[0], f"{0x11} to {0x22}")
        self.assertEqual(self.slurm.wait_state(bystander, "COMPLETED")["Restarts"], "0")
        self.assert_counted(bystander)

    def test_a_task_of_a_step_has_the_gpu_that_it_is_bound_to(self):
        script = self.gpu_counter(with_what="srun --siding-preemptible -n2 --gpus-per-task=1 --output=out.task%t")
        job = self.submit("-n2", "--gres=gpu:2", script, uid=NOBODY)
        held = [self.gpus_of("node1", f"{job}.1.{STEP + task}") for task in range(2)]
        self.assertEqual(sorted(held), [[uuid] for uuid in GPUS["node1"]])

    def test_a_step_goes_on_on_its_next_nodes_gpus(self):
        job = self.submit("--gres=gpu:2", self.gpu_counter(with_what="srun --siding-preemptible"), uid=NOBODY)
        self.wait_counting(job)
        self.agents.checkpoint({"node1": [f"{job}.1.{STEP}"]}, f"slurm-{job}.1")
        self.slurm.wait_state(job, "PENDING")
        self.slurm.run("scontrol", "update", f"JobId={job}", "ReqNodeList=node2")
        self.assertEqual(self.gpus_of("node2", f"{job}.2.{STEP}"), GPUS["node2"])
        self.assert_goes_on(job)

    def test_a_job_without_gpus_has_none_beside_one_that_has(self):
        job = self.submit("--siding-preemptible", self.counter(), uid=NOBODY)
        self.wait_counting(job)
        self.assertIsNone(self.gpus_of("node1", f"{job}.1.0"))
        self.assertNotIn("cannotDrain", self.agents.report("node1", f"{job}.1.0"))

    def test_a_restore_that_fails_on_the_gpu_is_tried_again(self):
        job = self.submit("--siding-preemptible", "--gres=gpu:1", self.gpu_counter(), uid=NOBODY)
        self.wait_counting(job)
        fault = self.drivers["node2"] / "fault"
        fault.write_text("restore 2")
        self.vacate(job)
        self.agents.wait_phase("node2", f"{job}.2.0", "RESTORE_FAILED")
        self.slurm.wait_state(job, "PENDING")
        fault.unlink()
        self.assertEqual(self.assert_goes_on(job)["Restarts"], "2")

    def test_a_job_that_the_driver_does_not_let_go_runs_on(self):
        job = self.submit("--siding-preemptible", "--gres=gpu:1", self.gpu_counter(), uid=NOBODY)
        task = f"{job}.1.0"
        self.wait_counting(job)
        (self.drivers["node1"] / "fault").write_text("checkpoint 801")
        op = self.agents.order("node1", task, dump={"checkpoint": f"slurm-{job}.1", "tier": "SHARED"})
        wait_for("the dump to fail", lambda: self.agents.report("node1", task).get("failedOp") == str(op))
        self.assertIn("CUDA_ERROR_NOT_SUPPORTED", self.agents.report("node1", task)["error"])
        self.assert_goes_on(job)


if __name__ == "__main__":
    main()

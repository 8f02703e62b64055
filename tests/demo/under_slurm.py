"""The play in which Slurm has the queue: a Slurm of four nodes started for it, jobs submitted by sbatch and looked at by
squeue, and siding's controller behind it."""

import shlex
import time

import slurm
from cluster import BIN, Cluster, find_criu
from slurm import Slurm
from stage import LiveTable, batch_jobs, reference, say, show, show_ctl, verdict

PLUGIN = BIN.parent / "lib" / "siding_spank.so"
CONFIG = "slurm:\n  mode: steering\n  ask_socket: {dir}/run/ask.sock\n"
COLUMNS = "%.9i %11j %10T %.5M %R"  # the last: its nodes, or why it has none


def full_nodes():
    """Six batch jobs that leave no CPU free. There is none for the gang whose connections are kept."""
    jobs = [job for job in batch_jobs() if not job.keeps_connections]
    jobs[-1].slots = 2
    return jobs


def missing():
    """What the play lacks here, in words; nothing: it can begin."""
    if programs := slurm.missing():
        return (f"the demo under Slurm needs {', '.join(programs)}, which are not here: run ./run setup as root "
                "(Debian's packages slurmctld, slurmd, slurm-client and munge)")
    if not PLUGIN.exists():
        return f"the demo under Slurm needs siding's plugin, and {PLUGIN} is not there: is libslurm-dev installed? Then ./run build"
    return "" if find_criu() else "the demo needs a criu that works here: run ./run setup as root and see what it says"


class Play:
    def __init__(self):
        self.slurm = Slurm(nodes=4, cpus=2)
        self.dir = self.slurm.dir
        self.slurm.plugstack = f"optional {PLUGIN} programs={BIN} controller={self.dir}/run/ask.sock"
        sockets = {node: ("--slurm-socket", self.slurm.agent_socket(node)) for node in self.slurm.nodes}
        self.siding = Cluster(self.slurm.nodes, slots=2, folder=self.dir / "siding", agent_args=sockets, env=self.slurm.env,
                              config=CONFIG.format(dir=self.dir), measure_disk=True)

    def stop(self):
        try:
            self.slurm.stop()
        finally:
            self.siding.stop()

    def perform(self):
        batch = full_nodes()
        expected = reference(batch, self.dir / "reference")
        say("A Slurm of four nodes, siding's controller behind it, six batch jobs")
        self.slurm.start()
        self.siding.start()
        for job in batch:
            job.id = self.sbatch(*self.flags(job), self.script(job))
        self.table = LiveTable(self.siding)
        self.table.until_run(batch)
        self.squeue()
        for name in ("steer", "surrogate"):
            self.write(name, [f"date +%s.%N > {name}.started", "srun sleep 4"])
        say("A request that cannot be served is refused, and Slurm has no job of it")
        self.show("sbatch --siding-start-by=+30s -N5 steer.sh", code=1)
        requests = [self.on_demand("steer", 2, 30), self.on_demand("surrogate", 4, 30)]
        say("Why, for the second:")
        show_ctl(self.siding, "explain", requests[1][0])
        say("The way back")
        self.squeue()
        self.table.until_ended("all batch jobs", [job.id for job in batch])
        early = {name: self.early(job, name, deadline) for job, name, deadline in requests}
        return verdict(self.siding.jobs(), early, batch, expected, self.dir / "work")

    # ---- what users do ----
    def show(self, line, code=0):
        """Runs a command line as if it were typed in the users' folder."""
        print("$ " + line, flush=True)
        return show("sh", "-c", line, code=code, env=self.slurm.env, cwd=self.dir / "work")

    def sbatch(self, *args):
        job = int(self.show(shlex.join(["sbatch", *args])).split()[-1])
        self.siding.submitted.append(job)
        return job

    def squeue(self):
        print()
        self.show(f"squeue --sort=i -o '{COLUMNS}'")
        print(flush=True)

    def comments(self):
        """What siding has written to Slurm's jobs about what it does to them."""
        self.show(r"scontrol -o show jobs | sed -nE 's/(.* JobName=\S*).*(AdminComment=[^]]*]).*/\1 \2/p'")

    @staticmethod
    def flags(job):
        signal = [f"--siding-checkpoint-signal={job.app_signal}"] if job.app_signal else []
        return [f"--siding-preemptible={job.preemptible}", *signal]

    def script(self, job):
        """Its batch script, in the users' folder."""
        place = job.make_place(self.dir / "work")
        command = shlex.join(job.resuming(place) if job.app_signal else job.argv(place))
        return self.write(job.name, [
            f"#SBATCH --job-name={job.name} --cpus-per-task={job.slots} --output={place}/log --chdir={place}",
            f"#SBATCH --nodes={job.nodes} --ntasks-per-node=1",
            "export OMP_NUM_THREADS=1", f"exec {command}" if job.nodes == 1 else self.as_step(command)])

    @staticmethod
    def as_step(command):
        """A gang is a step; its ranks find in the environment what siding tells its own gangs."""
        ranks = f"SIDING_JOB_ID=$SLURM_JOB_ID SIDING_RANK=$SLURM_PROCID SIDING_NODES=$SLURM_NTASKS exec {command}"
        return "srun sh -c " + shlex.quote(ranks)

    def write(self, name, lines):
        (self.dir / "work" / f"{name}.sh").write_text("\n".join(["#!/bin/bash", *lines, ""]))
        return f"{name}.sh"

    def on_demand(self, name, nodes, within):
        """Its number, its name, and until when it had to run: by this machine's clock, from before sbatch began."""
        say(f"{name}: {nodes} nodes within {within} s")
        deadline = time.time() + within
        job = self.sbatch(f"--siding-start-by=+{within}s", f"--job-name={name}", f"-N{nodes}", "--ntasks-per-node=1", "-c2", f"{name}.sh")
        self.table.until(f"{name} to be known", lambda jobs: job in jobs)
        self.squeue()
        self.table.until(f"{name} to run", lambda jobs: jobs[job]["state"] not in ("pending", "starting"))
        self.squeue()
        self.comments()
        self.table.until_ended(name, [job])
        return job, name, deadline

    def early(self, job, name, deadline):
        """By what the job itself wrote down when it began."""
        started = self.dir / "work" / f"{name}.started"
        if self.siding.state(job) != "done" or not started.exists():
            return None
        return deadline - float(started.read_text())

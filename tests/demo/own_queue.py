"""The play in which siding has the queue: one controller, four nodes, jobs submitted by sidingctl."""

import subprocess

from cluster import BIN, Cluster, find_criu
from own_page import OwnPage
from stage import LiveTable, batch_jobs, reference, say, show_ctl, verdict

PAGE = BIN.parent / "page/app/dist/index.html"  # where npm was there when it was built


def why_not_kept(folder):
    """Why this machine can keep no connections (its kernel has no VXLAN, say); empty: it can."""
    checked = subprocess.run([BIN / "siding-agent", "--check", "--node", "n1", "--state-dir", folder / "n1", "--shared-dir", folder / "shared"],
                             capture_output=True, text=True).stdout
    said = [line for line in checked.splitlines() if line.startswith("connections: ")]
    return said[0].removeprefix("connections: ") if said else ""


def full_nodes(keep_connections):
    """Batch jobs that leave no slot free, but where connections cannot be kept."""
    jobs = [job for job in batch_jobs() if keep_connections or not job.keeps_connections]
    for job in jobs:
        if job.name in ("heat-solo", "train-a", "train-b"):
            job.slots = 2
    return jobs


def missing():
    """What the play lacks here, in words; nothing: it can begin."""
    return "" if find_criu() else "the demo needs a criu that works here: run ./run setup as root and see what it says"


class Play:
    def __init__(self):
        self.cluster = Cluster(nodes=["n1", "n2", "n3", "n4"], slots=3, memory="2GiB", measure_disk=True)
        self.dir = self.cluster.dir
        self.page = None

    def stop(self):
        if self.page:
            self.page.end()
        self.cluster.stop()

    def open_page(self):
        self.page = OwnPage(self.cluster)
        print(f"In a browser, which it opens for once: {self.page.address}", flush=True)

    def linger(self):
        """Until Ctrl-C, with what has happened to look at."""
        say(f"The cluster stays up until Ctrl-C. Another address of its page:\n   {BIN / 'sidingctl'} --socket {self.cluster.socket} page")
        try:
            self.page.process.wait()
        except KeyboardInterrupt:
            print()

    def perform(self):
        why_not = why_not_kept(self.dir / "check")
        if why_not:
            print(f"heat-tcp is left out. Connections: {why_not}")
        batch = full_nodes(not why_not)
        expected = reference(batch, self.dir / "reference")
        say(f"One controller, four nodes, {'six' if why_not else 'seven'} batch jobs")
        self.cluster.start()
        if PAGE.exists():
            self.open_page()
        for job in batch:
            self.submit(job)
        self.table = LiveTable(self.cluster)
        self.table.until_run(batch)
        requests = [self.on_demand("steer", 2, 20), self.on_demand("surrogate", 4, 30)]
        say("Why, for the second:")
        show_ctl(self.cluster, "explain", requests[1])
        say("The way back")
        self.table.until_ended("all batch jobs", [job.id for job in batch])
        jobs = self.cluster.jobs()
        early = {jobs[request]["spec"]["name"]: self.early(jobs[request]) for request in requests}
        return verdict(jobs, early, batch, expected, self.dir / "work")

    def submit(self, job):
        place, more = job.make_place(self.dir / "work"), ["--connections=keep"] if job.keeps_connections else []
        if job.app_signal:
            more += ["--app-signal", job.app_signal, "--restart-command", " ".join(job.resuming(place))]
        job.id = self.cluster.submit("--name", job.name, "--nodes", job.nodes, "--slots", job.slots, f"--preemptible={job.preemptible}",
                                     *more, "--env", "OMP_NUM_THREADS=1", "--workdir", place, "--output", place / "log.%r",
                                     "--", *job.argv(place))

    def on_demand(self, name, nodes, within):
        argv = ["--name", name, "--nodes", nodes, "--slots", self.cluster.slots, "--start-by", f"+{within}s", "--output",
                self.dir / f"{name}-%r.out", "--", "/bin/sh", "-c", "date +%s.%N; sleep 4; date +%s.%N"]
        say(f"{name}: {nodes} nodes within {within} s. What would happen (dry run):")
        show_ctl(self.cluster, "plan", *argv)
        job = self.cluster.submit(*argv)
        print(f"submitted as job {job}")
        self.table.until_ended(name, [job])
        return job

    @staticmethod
    def early(job):
        if job["state"] != "done":
            return None
        return (int(job["spec"]["start_by_us"]) - int(job["first_started_us"])) / 1e6

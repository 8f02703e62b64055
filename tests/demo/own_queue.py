"""The play in which siding has the queue: one controller, four nodes, jobs submitted by sidingctl."""

from cluster import BIN, Cluster, find_criu
from own_page import OwnPage
from stage import LiveTable, batch_jobs, reference, say, show_ctl, verdict

PAGE = BIN.parent / "page/app/dist/index.html"  # where npm was there when it was built


def missing():
    """What the play lacks here, in words; nothing: it can begin."""
    return "" if find_criu() else "the demo needs a criu that works here: run ./run setup as root and see what it says"


class Play:
    def __init__(self):
        self.cluster = Cluster(nodes=["n1", "n2", "n3", "n4"], slots=2, memory="2GiB", measure_disk=True)
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
        batch = batch_jobs()
        expected = reference(batch, self.dir / "reference")
        say("One controller, four nodes, six batch jobs")
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
        place, more = job.make_place(self.dir / "work"), []
        if job.app_signal:
            more = ["--app-signal", job.app_signal, "--restart-command", " ".join(job.resuming(place))]
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

"""The plays in which faults are made to happen: a request with a deadline, its victims, and the way back of all of them."""

import hashlib
import pathlib

from cluster import BIN, CtlError, wait_for
from faulty import FaultyCluster
from vanishing import paths

WORKER = pathlib.Path(__file__).resolve().parent / "worker.py"
FAKE_DRIVER = BIN.parent / "agent" / "gpu" / "libfake_cuda.so"


def is_right(said):
    """What a worker says at its end: how many numbers it has written, and the digest of them."""
    count, digest = said.split()
    return hashlib.sha256("".join(f"{i}\n" for i in range(int(count))).encode()).hexdigest() == digest


class Play:
    """One cluster, one fault. perform() returns when everything has ended and is quiet."""

    nodes = 2

    def __init__(self, folder, tag, point, fault):
        # Cgroups are named after nodes, and other clusters run at the same time.
        names = [f"{tag}-{i + 1}" for i in range(self.nodes)]
        self.cluster = FaultyCluster(names, point, fault, folder=folder, **self.options(folder, names))
        self.work = self.cluster.dir / "work"
        self.work.mkdir()
        self.jobs = {}  # by name: number, ranks
        self.wrong_images = []  # seen while there were images

    def options(self, folder, names):
        return {}

    def perform(self):
        self.cluster.start()
        self.begin()
        self.preempt()
        self.look_at_images()
        self.end()

    # ---- what the plays are made of ----
    def gate(self, name):
        """Before it is there no worker comes to its end."""
        return self.work / f"{name}.gate"

    def worker(self, name, *args, steps=1):
        return [str(WORKER), str(self.gate(name)), str(steps), str(self.work / name), *args]

    def submit(self, name, *args, nodes=1, command=None):
        command = command or self.worker(name)
        number = self.cluster.submit_once(name, "--nodes", nodes, "--slots", 1, "--workdir", self.work, "--output",
                                          self.work / f"{name}.%r.out", *args, "--", *command)
        self.jobs[name] = (number, nodes)
        return number

    def request(self, nodes, *args):
        """A deadline job that writes down on each node that it ran. A controller that has just been started again refuses what
        needs a node that it has not heard of yet."""
        wait_for("all nodes to be up", lambda: self.cluster.patiently(self.cluster._measured))
        command = ["/bin/sh", "-c", f"echo ran >> {self.work}/express.$SIDING_RANK.ended; sleep 0.3"]
        self.submit("express", "--start-by", "+10m", *args, nodes=nodes, command=command)

    def views(self):
        """All jobs. One that has lost its task, has nothing to continue from and may not start over by itself starts from the beginning only
        on order: it is given here."""
        views = self.cluster.jobs()
        for number, view in views.items():
            if view["state"] == "parked" and "sidingctl restart" in view.get("reason", ""):
                try:
                    self.cluster.ctl("restart", "--no-wait", number)
                except CtlError:
                    pass  # the controller is away, or has heard it before it died
        return views

    def wait_for_work(self, *names):
        """Until every rank of these jobs has done a little."""
        def lines(name, rank):
            path = self.work / f"{name}.{rank}.log"
            return path.read_text().count("\n") if path.exists() else 0
        wait_for("the jobs to work", lambda: self.views() and all(lines(name, rank) >= 5 for name in names
                                                                  for rank in range(self.jobs[name][1])))

    def look_at_images(self):
        """While the victims wait for the end of the request: what the journal says of images is true."""
        number = self.jobs["express"][0]
        wait_for("the request to run", lambda: self.views()[number]["state"] in ("running", "done"))

        def listed():
            answer = self.cluster.patiently(lambda: self.cluster.ctl("checkpoints", "list"))
            return {c["id"]: c["state"] for c in answer.get("checkpoints", [])}

        def verified(checkpoint):
            try:
                return self.cluster.ctl("checkpoints", "verify", checkpoint)["good"]
            except CtlError:
                return listed().get(checkpoint) != "good"  # its job may have ended meanwhile
        for checkpoint, state in listed().items():
            if state == "good":
                try:
                    wait_for("an answer", lambda name=checkpoint: verified(name))
                except AssertionError:
                    self.wrong_images.append(f"checkpoint {checkpoint} is good in the journal and not in the store")
        found = [path for pattern in ("*/images/*", "*/store/images/*") for path in paths(self.cluster.dir, pattern)]
        known = listed()  # afterwards: what is not among them is deleted by now
        self.wrong_images += [f"image {f.name} is in no journal" for f in found if f.name not in known and f.exists()]

    def end(self):
        """Every job may end, and does."""
        for name in self.jobs:
            self.gate(name).touch()

        def over():
            views = self.views()
            for name, (number, _) in self.jobs.items():
                state = views[number]["state"]
                assert state not in ("failed", "cancelled"), f"{name} {state}: {views[number].get('reason')}"
            return all(views[number]["state"] == "done" for number, _ in self.jobs.values())
        wait_for("all jobs to end", over)

    # ---- what must be true of the results ----
    def wrong_results(self):
        wrong = list(self.wrong_images)
        for name, (number, ranks) in self.jobs.items():
            right = (lambda said: said == "ran") if name == "express" else is_right
            for rank in range(ranks):
                path = self.work / f"{name}.{rank}.ended"
                ended = path.read_text().splitlines() if path.exists() else []
                all_right = all(right(said) for said in ended)
                if not ended or not all_right or (len(ended) != 1 and not self.may_repeat(number)):
                    wrong.append(f"{name} rank {rank} ended {len(ended)} times" + ("" if all_right else ", with a wrong result"))
            wrong += self.wrong_starts(name, number)
        return wrong

    def may_repeat(self, number):
        """It was not seen how a task ended, or not all ranks could be started or restored, and those that could have run for
        a moment."""
        kinds = [event["kind"] for event in self.cluster.events(number)]
        began_again = "restart-needed" in kinds and "started" not in kinds[:kinds.index("restart-needed")]
        return began_again or "restore-failed" in kinds or "interrupted" in kinds or self.cluster.point.startswith("shim.")

    def wrong_starts(self, name, number):
        """Each start is of an incarnation of its own, and none was from the beginning but the first."""
        open_place = False
        events = self.cluster.events(number)
        ran = next((i for i, e in enumerate(events) if e["kind"] == "started"), len(events))
        again = next((e["text"] for e in events[ran:] if e["kind"] == "restart-needed"), None)
        if again and not self.may_repeat(number):
            return [f"{name}: {again}"]
        for event in events:
            if event["kind"] == "place":
                open_place = True
            elif event["kind"] in ("started", "restored"):
                if not open_place:
                    return [f"{name}: {event['kind']} twice in one incarnation"]
                open_place = False
        return []


class Main(Play):
    """A gang with connections makes way by checkpoint, another job by suspension; both come back."""

    nodes = 3

    def begin(self):
        self.submit("gang", "--preemptible=checkpoint", nodes=2, command=self.worker("gang", "--connection"))
        self.submit("solo", "--preemptible=suspend")
        self.wait_for_work("gang", "solo")

    def preempt(self):
        self.request(3)


class Restart(Main):
    """The same, but agents and controller are started again, with the fault, while the jobs run."""

    def perform(self):
        self.cluster.arming = False
        self.cluster.start()
        self.begin()
        self.cluster.arming = True
        self.cluster.kill9_controller()
        for node in self.cluster.nodes:
            self.cluster.kill9_agent(node)  # the caretaker starts them again
        wait_for("the cluster to be back", lambda: self.cluster.patiently(self.cluster._measured))
        self.preempt()
        self.look_at_images()
        self.end()


class Others(Play):
    """Victims that save themselves or are killed."""

    def begin(self):
        state = self.work / "saver.state"
        # Until it knows what to do with the signal, it does not end by it.
        saver = ["/usr/bin/env", "--ignore-signal=USR1", *self.worker("saver", str(state), steps=50)]
        self.submit("saver", "--preemptible=app", "--app-signal", "USR1@10s", "--restart-command", " ".join([*saver, "--resume"]),
                    command=saver)
        stubborn = self.worker("killed", "--stubborn")
        self.submit("killed", "--preemptible=kill", "--kill-grace", "200ms", command=stubborn)
        self.wait_for_work("saver", "killed")

    def preempt(self):
        self.request(2)
        if self.cluster.point == "agent.save":  # it fails: the saver can leave in no other way than by its end
            wait_for("the fault to happen", self.cluster.fired)
            self.gate("saver").touch()


class Gpu(Play):
    """Jobs on GPUs make way by checkpoint and by suspension; the driver is one that has no GPU."""

    def options(self, folder, names):
        self.states = folder / "states"
        self.states.mkdir()
        uuids = [f"GPU-00000000-0000-0000-0000-00000000000{i}" for i, _ in enumerate(names)]
        (folder / "gpus").write_text("".join(f"{uuid} 80000 200 0\n" for uuid in uuids))
        libraries = ["--cuda-library", FAKE_DRIVER, "--nvml-library", FAKE_DRIVER]
        return {"env": {"FAKE_CUDA": str(folder)},
                "agent_args": {name: ["--gpu", uuid, *libraries] for name, uuid in zip(names, uuids)}}

    def begin(self):
        for method in ("checkpoint", "suspend"):
            states = self.states / method
            states.mkdir()
            self.submit(method, f"--preemptible={method}", "--gpus", 1, "--env", f"FAKE_GPU_STATES={states}")
        self.wait_for_work("checkpoint", "suspend")

    def preempt(self):
        self.request(2, "--gpus", 1)


class Saved(Play):
    """A job gets an image and runs on while that is finished; then it makes way, and comes back."""

    nodes = 1

    def begin(self):
        number = self.submit("solo", "--preemptible=checkpoint")
        self.wait_for_work("solo")
        self.cluster.patiently(lambda: self.cluster.ctl("checkpoint", number))  # again, if the first has failed

    def preempt(self):
        self.request(1)


PLAYS = {"main": Main, "restart": Restart, "others": Others, "gpu": Gpu, "saved": Saved}

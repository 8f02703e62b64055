"""preemption: an on-demand job on a cluster that is full of victims with much memory.

Each way runs on a Slurm of its own. One victim on each node (victim.py: it counts, and its log says when it was where);
then an on-demand job that wants all nodes for a while. All times are of the machine's one clock."""

import pathlib
import shutil
import statistics
import time

from cluster import BIN, ROOT, Cluster, wait_for
from progress import cell, lost, written
from slurm import Slurm, SlurmError

PLUGIN = BIN.parent / "lib" / "siding_spank.so"
VICTIM = ROOT / "bench" / "victim.py"
# As soon as Slurm can: two partitions on the same nodes, one with a higher tier.
TIERS = "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nPartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=OFF State=UP"


def add_arguments(parser):
    parser.add_argument("--nodes", type=int, default=2, help="one victim on each (%(default)s)")
    parser.add_argument("--mib", type=int, default=1024, help="memory of a victim (%(default)s)")
    parser.add_argument("--age", type=float, default=20, help="seconds that a victim has worked when it must go (%(default)s)")
    parser.add_argument("--hold", type=float, default=10, help="seconds that the on-demand job takes (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="of each way (%(default)s)")


class Requeue:
    """Slurm ends the victims and starts them again."""

    name = "Slurm, PreemptMode=REQUEUE"
    extra, plugstack = TIERS, ""
    victim, on_demand = (), ("-p", "urgent")

    def __init__(self, args):
        self.slurm = Slurm(args.nodes, extra=self.extra, plugstack=self.plugstack, memory=4 * args.mib)

    def start(self):
        self.slurm.start()

    def ready(self, victims):
        """Returns when the preempting service knows the victims."""

    def make_room(self, victims):
        """What has to be done once the on-demand job is in the queue, if anything."""

    def stop(self):
        self.slurm.stop()
        self.slurm.remove()


class Grace(Requeue):
    """Slurm signals the victims, which save themselves and end with 99."""

    name = "Slurm, GraceTime and a program that saves itself"
    # Before the partitions: DEFAULT is for those that follow.
    extra = "PartitionName=DEFAULT GraceTime=60\nSlurmctldParameters=preempt_send_user_signal\n" + TIERS
    victim = ("--signal=B:USR1@60",)


class Siding(Requeue):
    """What the two ways with siding have in common: a controller, an agent on each node, the plugin."""

    victim = ("--siding-preemptible=checkpoint",)
    config = None  # of sidingd

    def __init__(self, args):
        super().__init__(args)
        sockets = {node: ("--slurm-socket", self.slurm.agent_socket(node)) for node in self.slurm.nodes}
        self.siding = Cluster(self.slurm.nodes, slots=self.slurm.cpus, memory="8GiB", folder=self.slurm.dir / "siding",
                              agent_args=sockets, config=self.config and self.config.format(dir=self.slurm.dir), env=self.slurm.env, measure_disk=True)
        self.slurm.plugstack = f"optional {PLUGIN} programs={BIN}{self.ask()}"

    def ask(self):
        return ""

    def start(self):
        self.slurm.start()
        self.siding.start()

    def ready(self, victims):
        for job in victims:
            wait_for(f"siding to know job {job}", lambda j=job: (found := self.siding.jobs().get(j)) and found["state"] == "running")

    def stop(self):
        self.slurm.stop()
        self.siding.stop()
        self.slurm.remove()


class ByHand(Siding):
    """The on-demand job is first in the queue; an operator sends the victims away."""

    name = "siding, victims sent away by sidingctl vacate"
    extra, on_demand = "PartitionName=urgent Nodes=ALL PriorityTier=10 State=UP", ("-p", "urgent")

    def make_room(self, victims):
        for job in victims:
            self.siding.ctl("vacate", job, "--no-wait")


class StartBy(Siding):
    """siding plans when the job is submitted, and makes room."""

    name = "siding, --siding-start-by, victims checkpointed"
    extra, on_demand = "", ("--siding-start-by=+30s",)
    config = "slurm: {{mode: steering, ask_socket: {dir}/ask.sock}}\n"

    def ask(self):
        return f" controller={self.slurm.dir}/ask.sock"


class Suspend(StartBy):
    """The same, and the policy prefers what loses least: victims stay in memory."""

    name = "siding, --siding-start-by, victims suspended"
    victim = ("--siding-preemptible=suspend",)


WAYS = (Requeue, Grace, ByHand, StartBy, Suspend)


def one_round(way, args):
    """Seconds: submission to the on-demand job's first instruction; its end to the victims' first step, the last one's; work
    that a victim lost, on average."""
    slurm = way.slurm
    work = slurm.dir / "work"
    work.mkdir()
    times = work / "on-demand"
    logs = [work / f"victim{i}" for i in range(args.nodes)]
    victims = [slurm.submit("--exclusive", "-o", "/dev/null", *way.victim, "--wrap",
                            f"exec /usr/bin/python3 {VICTIM} {log} {log}.state {args.mib}") for log in logs]
    wait_for("the victims to have worked", lambda: all((l := written(log)) and l[-1][0] - l[0][0] >= args.age for log in logs), 120 + args.age)
    way.ready(victims)

    submitted = time.time()
    job = slurm.submit("--exclusive", f"-N{args.nodes}", "-o", "/dev/null", *way.on_demand, "--wrap",
                       f"date +%s.%N > {times}; sleep {args.hold}; date +%s.%N >> {times}")
    way.make_room(victims)
    slurm.wait_state(job, "COMPLETED")
    started, ended = (float(line) for line in times.read_text().split())
    wait_for("the victims to be back", lambda: all(written(log)[-1][0] > ended for log in logs))
    back = max(next(second for second, _ in written(log) if second > ended) for log in logs)
    return started - submitted, back - ended, statistics.mean(lost(written(log), started) for log in logs)


def measure_way(kind, args):
    rounds = []
    for _ in range(args.rounds):
        way = kind(args)
        try:
            way.start()
            rounds.append(one_round(way, args))
        finally:
            way.stop()
    return [cell(column) for column in zip(*rounds)]


def measure(args):
    print(f"{args.nodes} victims of {args.mib} MiB, each {args.age:g} s at work, on {args.nodes} nodes; an on-demand job for all of them,"
          f" {args.hold:g} s; medians of {args.rounds}, lowest to highest")
    print(f"{'':48} {'on-demand job':>25} {'victims run':>25} {'work lost by':>25}")
    print(f"{'':48} {'runs after':>25} {'again after':>25} {'each victim':>25}", flush=True)
    complete = True
    for kind in WAYS:
        try:
            cells = " ".join(f"{cell:>25}" for cell in measure_way(kind, args))
        except (AssertionError, SlurmError) as error:
            cells, complete = "not measured: " + " ".join(str(error).split()), False
        print(f"{kind.name:48} {cells}", flush=True)
    return complete

"""outages: how soon a deadline job runs that is submitted as soon as slurmctld answers again.

Each time on a Slurm of its own, with a victim on each of two nodes that siding has Slurm suspend. After a restart slurmctld
does not know for some seconds which of its nodes are up."""

import time

from cluster import wait_for
from progress import cell, written
from slurm import SlurmError
from slurm_preemption import VICTIM, Suspend


def add_arguments(parser):
    parser.add_argument("--away", type=float, nargs="+", default=[0, 1, 10, 60], help="seconds without slurmctld; 0: it is not restarted")
    parser.add_argument("--outages", type=int, default=3, help="of each length (%(default)s)")


def one_outage(way, away):
    """Seconds: slurmctld's start to its first answer; the on-demand job's submission to its first instruction."""
    slurm = way.slurm
    work = slurm.dir / "work"
    work.mkdir()
    log, times = [work / f"victim{i}" for i in range(len(slurm.nodes))], work / "on-demand"
    victims = [slurm.submit("--exclusive", "-o", "/dev/null", *way.victim, "--wrap", f"exec /usr/bin/python3 {VICTIM} {path} {path}.state 16")
               for path in log]
    wait_for("the victims to work", lambda: all(written(path) for path in log))
    way.ready(victims)
    answers = 0.0
    if away:
        slurm.stop_controller()
        time.sleep(away)
        started = time.time()
        slurm.start_controller()
        slurm.wait_answer()
        answers = time.time() - started
    submitted = time.time()
    job = slurm.submit("--exclusive", "-N1", "-o", "/dev/null", *way.on_demand, "--wrap", f"date +%s.%N > {times}")
    slurm.wait_state(job, "COMPLETED")
    return answers, float(times.read_text()) - submitted


def measure_outage(away, args):
    rounds = []
    for _ in range(args.outages):
        way = Suspend(args)
        try:
            way.start()
            rounds.append(one_outage(way, away))
        finally:
            way.stop()
    return [cell(column) for column in zip(*rounds)]


def measure(args):
    print(f"a victim on each of {args.nodes} nodes, an on-demand job for one of them; medians of {args.outages}, lowest to highest")
    print(f"{'':28} {'slurmctld answers':>25} {'on-demand job':>25}")
    print(f"{'':28} {'after its start':>25} {'runs after':>25}", flush=True)
    complete = True
    for away in args.away:
        try:
            answers, runs = measure_outage(away, args)
        except (AssertionError, SlurmError) as error:
            answers, runs, complete = "", "not measured: " + " ".join(str(error).split()), False
        name = f"slurmctld away for {away:g} s" if away else "slurmctld not restarted"
        print(f"{name:28} {answers if away else '':>25} {runs:>25}", flush=True)
    return complete

"""Which fault is tried in which play."""

import collections
import os
import zlib

from faulty import points

DELAY = "2s"
# Longer than the patience with a small dump (kDumpPatience in controller/engine/act/job_orders.cc, and thrice the predicted time).
LATE = "75s"

# Inherited by the processes that perform one combination each: two matrices on one machine do not meet.
RUN = os.environ.setdefault("SIDING_MATRIX_RUN", str(os.getpid()))

# Points that only another play comes to.
PLAY_OF = {
    "agent.found": "restart", "agent.adopt": "restart", "agent.kill": "others", "agent.killed": "others", "agent.save": "others",
    "agent.saved": "others", "agent.gpu.drain": "gpu", "agent.gpu.drained": "gpu", "agent.gpu.refill": "gpu",
    "agent.gpu.refilled": "gpu", "agent.dump.behind": "saved",
}
# Points that need what a small cluster has not; what tries them.
ELSEWHERE = {"store.set-aside": "directory_store_test", "kubernetes.request.accepted": "kubernetes_request_test",
             "kubernetes.request.made": "kubernetes_request_test", "agent.dump.rehearse": "agent_node_rehearsal_test",
             "shim.rehearse": "agent_node_rehearsal_test", "agent.dump.sharing": "increments_test", "agent.dump.compacting": "increments_test", "agent.dump.barrier": "dumped_together_test", "agent.dump.leaving": "slurm_gang_fault_test", "agent.network.held": "gang_test", "agent.network.join": "gang_test",
             "agent.network.joined": "gang_test", "shim.network": "gang_test",
             "agent.dump.round": "increments_test", "agent.dump.precopied": "increments_test", "agent.dump.captured": "increments_test", "agent.dump.tracked": "increments_test", "agent.restore.united": "increments_test",
             "store.copying": "copied_images_test", "store.copied": "copied_images_test", "agent.copied": "copied_images_test",
             "notify.told": "events_out_test"}
ELSEWHERE |= {f"agent.pod.{point}": "agent_node_pod_test" for point in (
    "adopt", "committed", "decided", "draft", "dump", "dumped", "end", "leaves", "remembered", "restore", "resume", "sealed", "suspend",
    "suspended", "thawed")}
# Steps that are delayed beyond the dump's deadline as well: those up to the decision that the image counts.
LATE_AT = ("agent.dump", "agent.dump.draft", "agent.dump.ready", "criu.dump", "criu.dump.step", "agent.dump.frozen",
           "agent.dump.behind", "agent.dump.sealed", "agent.dump.prepared")
# Steps that criu is not waited for in where the job runs on beside them: tried in that play as well.
BEHIND = ("store.hashed", "store.sealed", "agent.dump.sealed", "agent.dump.prepared", "agent.dump.waiting", "agent.dump.decided",
          "agent.dump.committing", "agent.dump.remembered", "agent.dump.committed", "store.commit", "store.moved")
# How many of the first times that a point is reached are tried, where it is reached often. Else the first.
TIMES = {
    "engine.decided": 18, "engine.recorded": 18, "engine.order": 12, "agent.order": 4, "agent.record": 8, "agent.recorded": 8,
    "agent.report": 8, "criu.dump.step": 3, "criu.restore.step": 4, "file.written": 10, "gateway.report": 6,
}
# Those of the full matrix that a test runs each time.
SELECTION = ("engine.recorded=kill@4", "journal.committed=kill", "journal.commit=error", "engine.order=kill@3", "engine.grant=kill",
             "agent.start.shim=kill", "shim.running=kill", "agent.dump.sealed=kill", "agent.dump.frozen=kill-criu", "agent.dump.behind=kill",
             "agent.dump.prepared=kill-criu", "agent.dump.remembered=kill", "agent.dump.committed=kill", "store.moved=error",
             "agent.suspend.frozen=kill", "agent.resume.thawed=error", "criu.dump.step=kill-criu@2", "criu.restore.step=kill-criu", "agent.restore.verified=kill",
             "agent.adopt=kill", "agent.forget=kill", "agent.tmpdir=kill", "store.trashed=kill", "shim.ended=kill", "agent.record=error@3",
             "agent.gpu.drained=kill", "agent.dump.remembered=kill+saved", "agent.dump.committed=kill+saved", "store.moved=error+saved")

Combination = collections.namedtuple("Combination", "name point fault play tag what")


def make(point, kind, nth, what, play=None):
    name = f"{point}={kind}" + (f"@{nth}" if nth > 1 else "") + (f"+{play}" if play else "")
    fault = {"delay": f"{point}=delay={DELAY}", "late": f"{point}=delay={LATE}"}.get(kind, f"{point}={kind}") + f"@{nth}"
    tag = f"m{zlib.crc32((RUN + name).encode()):08x}"
    return Combination(name, point, fault, play or PLAY_OF.get(point, "main"), tag, what)


def all_of_them(selection=False):
    known = points()
    made = [make(point, kind, nth, what) for point, (kinds, what) in sorted(known.items()) if point not in ELSEWHERE
            for kind in kinds for nth in range(1, TIMES.get(point, 1) + 1)]
    made += [make(point, kind, 1, known[point][1], "saved") for point in BEHIND for kind in known[point][0] if kind != "kill-criu"]
    made += [make(point, "late", 1, known[point][1]) for point in LATE_AT]
    return [c for c in made if c.name in SELECTION] if selection else made


def named(name):
    return next(c for c in all_of_them() if c.name == name)

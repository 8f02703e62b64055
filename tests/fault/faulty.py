"""A cluster in which one fault is armed, and which is looked after as an administrator's service manager would: what has
died is started again, without the fault."""

import os
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from cluster import BIN, PATIENCE, Cluster, CtlError, wait_for  # noqa: E402

CONTROLLER = ("engine", "api", "gateway", "journal")  # first parts of the names of its points
POLICY = "min_runtime: 0s\ncooldown: 0s\nmargin: 200ms\n"


def is_controllers(point):
    return point.split(".")[0] in CONTROLLER


class FaultyCluster(Cluster):
    def __init__(self, nodes, point, fault, **more):
        super().__init__(nodes, 1, policy=POLICY, **more)
        self.point = point
        self.once = self.dir / "fired"
        self.armed = {"SIDING_FAULT": fault, "SIDING_FAULT_ONCE": str(self.once)}
        self.arming = True  # what is started from now on has the fault
        self.deaths = []
        self.over = threading.Event()
        self.caretaker = threading.Thread(target=self._care, daemon=True)

    def fired(self):
        return self.once.exists()

    def _spawn(self, name, argv):
        mine = is_controllers(self.point) == (name == "sidingd")
        plain = self.env
        if self.arming and mine and not self.fired():
            self.env = {**plain, **self.armed}
        try:
            return super()._spawn(name, argv)
        finally:
            self.env = plain

    def start(self):
        self.caretaker.start()
        try:
            return super().start()
        except (AssertionError, CtlError):
            if not self.fired():
                raise
            wait_for("all nodes to be up and measured after all", lambda: self.patiently(self._measured))
            return self

    def _answers(self):
        try:
            return super()._answers()
        except AssertionError:  # it has ended: it is started again
            return False

    # ---- what a service manager does ----
    def _care(self):
        while not self.over.wait(0.05):
            if self.controller and self.controller.poll() is not None:
                self._restart_controller()
            for node, agent in list(self.agents.items()):
                if agent.poll() is not None and not self.over.is_set():
                    self.deaths.append(node)
                    self.start_agent(node)

    def _restart_controller(self):
        self.deaths.append("sidingd")
        self.kill9_controller()
        try:
            self.start_controller()
        except AssertionError:
            pass  # it is looked at again

    def stop(self):
        self.over.set()
        if self.caretaker.is_alive():
            self.caretaker.join(PATIENCE)
        super().stop()

    # ---- what a user does who tries again ----
    def patiently(self, call):
        """Its result, as soon as the controller is there to give one."""
        def result():
            try:
                return (call(),)
            except CtlError:
                return None
            except AssertionError:
                return None
        return wait_for("the controller to answer", result)[0]

    def jobs(self):
        return self.patiently(super().jobs)

    def events(self, job=None):
        events = super().events
        return self.patiently(lambda: events(job))

    def submit_once(self, name, *args):
        """The number of the job of that name, which is submitted unless an earlier attempt got through."""
        def known():
            return next((j for j, view in self.jobs().items() if view["spec"]["name"] == name), None)

        def attempt():
            try:
                return super(FaultyCluster, self).submit("--name", name, *args)
            except CtlError as error:
                if "is refused" in str(error):
                    raise AssertionError(str(error)) from error
                return known()
        return wait_for(f"{name} to be submitted", attempt)


def points():
    """Every fault point: its name -> (kinds, what it is)."""
    found = {}
    for program in ("sidingd", "siding-agent", "siding-shim"):
        done = subprocess.run([BIN / program, "--fault-points"], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            name, kinds, what = line.split("\t")
            found[name] = (kinds.split(","), what)
    return found

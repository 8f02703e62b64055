#!/usr/bin/python3
"""Pods that are frozen, put into images and taken out of them again, on a real node."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess

from agent_case import NODE, REDIS, TIMER, TOOLS, AgentCase, lines_of
from case import MERGE_PATCH, PODS, main, paths, wait_for
from kubernetes_image import write_redis_image

FILES = ("/count", "/scratch/count", "/dev/shm/count")  # in the container's own layer, in a volume, in shared memory
# Each line follows from the one before it: what is lost, doubled or begun again shows.
COUNT = f"""
import hashlib, itertools, time
files = [open(name, "a") for name in {FILES}]
word = ""
for number in itertools.count():
    word = hashlib.sha256(f"{{word}}{{number}}".encode()).hexdigest()
    for file in [None, *files]:
        print(f"{{number}} {{word}}\\n", end="", file=file, flush=True)  # in one write: a line is in one pod's log
    time.sleep(0.02)
"""
# Ends when it is told to, and says what it has come to.
NUMPY = """
import hashlib, os, sys, time
import numpy
random = numpy.random.default_rng(42)
matrix = random.random((200, 200))
for step in range(400):
    matrix = numpy.tanh(matrix @ random.random((200, 200)) / 100)
    print(f"{step}\\n", end="", flush=True)
    while step == 200 and not os.path.exists("/go"):
        time.sleep(0.01)
print("result", hashlib.sha256(matrix.tobytes()).hexdigest())
"""
# Sends itself each number before it says it.
LOOPBACK = """
import itertools, socket, time
server = socket.create_server(("127.0.0.1", 7000))
one = socket.create_connection(server.getsockname())
other, _ = server.accept()
for number in itertools.count():
    one.sendall(f"{number}\\n".encode())
    print(other.recv(100).decode(), end="", flush=True)
    time.sleep(0.02)
"""
# A shell and what it has started: pipes, and processes that wait for each other.
PIPELINE = r"""
exec 3>/count
for ((number = 0; ; ++number)); do echo $number; sleep 0.02; done | while read number; do
  word=$(echo "$word$number" | cat)
  echo "$number ${#word}"; echo "$number ${#word}" >&3
done
"""


# A shell reads on in its file whenever it has done a command.
SCRIPT = """
number=0
while sleep 0.02; do
  echo $((number++))
done
"""
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def tracer_of(pid):
    """Which process traces it; 0: none does."""
    [line] = [line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("TracerPid:")]
    return int(line.split()[1])


class Checkpoint(AgentCase):
    number = 0

    def new(self):
        """A job of siding's: its number."""
        Checkpoint.number += 1
        return Checkpoint.number

    def name(self):
        return self.id().rsplit(".", 1)[1].removeprefix("test_").replace("_", "-")[:50].strip("-")

    def start(self, program=COUNT, **spec):
        """Returns (task, pod) of a Job that has begun to count."""
        task, pod = f"{self.new()}.1.0", self.job(self.name(), program, **spec)
        self.launch(task, pod)
        self.wait_lines(pod, 10)
        return task, pod

    def next_pod(self, *before):
        return self.wait_pod_of(self.name(), but=before)

    def wait_lines(self, pod, count):
        wait_for(f"{count} lines of {pod['metadata']['name']}", lambda: self.log(pod).count("\n") >= count)

    def assert_log_begins(self, pod, lines):
        """These are the first that the pod writes, by the time that it has written so many."""
        def first():
            # runc writes there as well if it could not restore it.
            log = [line for line in self.log(pod).splitlines(keepends=True) if line.endswith("\n") and not line.startswith("CRIU ")]
            return log[:len(lines)] if len(log) >= len(lines) else None
        self.assertEqual(wait_for(f"{len(lines)} lines of {pod['metadata']['name']}", first), lines)

    def lines_in_files(self, pod):
        """How many lines each of the files has; all of them as they are to be."""
        counts = []
        for name in FILES:
            lines = self.file(pod, name).splitlines(keepends=True)
            lines = [line for line in lines if line.endswith("\n")]  # it may be writing
            self.assertEqual(lines, lines_of(len(lines)), name)
            counts.append(len(lines))
        return counts

    def stands_at(self, pod):
        """The number of the next line of a pod that stands still. Its files lack the one before, if it stopped between the log and them."""
        def count():
            number = int(self.log(pod).splitlines()[-1].split()[0]) + 1
            return number if {number - 1, number} >= set(self.lines_in_files(pod)) else None
        return wait_for("the log to have what the files have", count)

    def assert_goes_on(self, count, pod):
        """The pod has come in the place of one that had written so many lines, and does what that would have done."""
        self.assert_log_begins(pod, lines_of(count + 20)[count:])
        wait_for("the files to grow", lambda: min(self.lines_in_files(pod)) >= count + 20)

    def is_paused(self, container):
        return (self.runc_state(container) or {}).get("status") == "paused"

    def assert_blameless(self):
        status = self.job_status(self.name())
        self.assertEqual((status.get("active"), status.get("failed"), status.get("conditions")), (1, None, None))

    def dump_of(self, task, checkpoint):
        """Of one that stands still: nothing tells that it has been dumped but its phase."""
        return self.dump(task, checkpoint)

    def images(self):
        """The names of the files of this test's image."""
        return self.image_files(self.name(), "*")

    def image_files(self, checkpoint, pattern):
        return [file for file in paths(self.agents.shared, f"images/**/{pattern}") if checkpoint in file.parts]

    # ---- out, and in again ----
    def test_a_job_goes_on_in_its_replacement_and_counts_no_failure(self):
        task, first = self.start()
        self.commit(task, self.dump(task, self.name()))
        self.wait_leaving(task)
        count = self.stands_at(first)
        self.remove(first)
        self.order(task, podGone={})
        image = self.wait_phase(task, "CHECKPOINTED")
        second = self.next_pod(first)
        self.restore(task.replace(".1.", ".2."), second, image)
        self.assert_goes_on(count, second)
        self.assert_blameless()

    def test_nothing_of_a_container_runs_behind_its_image(self):
        task, pod = self.start()
        self.commit(task, self.dump(task, self.name()))
        self.wait_leaving(task)
        container = self.container(pod)
        with open(self.path(pod, "/scratch/count")) as file:  # stays readable when the volume is gone
            file.seek(0, os.SEEK_END)
            self.remove(pod)
            # It is the kubelet that ends it.
            wait_for("the container to be gone", lambda: self.runc_state(container) is None)
            self.assertEqual(file.read(), "")
        self.order(task, podGone={})
        self.wait_phase(task, "CHECKPOINTED")

    def test_a_restored_job_completes(self):
        task, first = f"{self.new()}.1.0", self.job(self.name(), NUMPY)
        self.launch(task, first)
        wait_for("step 200", lambda: "\n200\n" in self.log(first))
        image = self.vacate(task, first, self.name())
        second = self.next_pod(first)
        self.restore(task.replace(".1.", ".2."), second, image)
        self.path(second, "/go").touch()
        wait_for("the job to complete", lambda: self.job_status(self.name()).get("succeeded"))
        alone = subprocess.run(["/usr/bin/python3", "-c", NUMPY.replace('"/go"', '"/"')], check=True, capture_output=True, text=True)
        self.assertEqual(self.log(second), alone.stdout.partition("\n200\n")[2])
        self.assertNotIn("failed", self.job_status(self.name()))

    def test_a_shell_goes_on_with_its_children_and_pipes(self):
        task, first = f"{self.new()}.1.0", self.job(self.name(), "", container={"command": ["bash", "-c", PIPELINE], "args": []})
        self.launch(task, first)
        self.wait_lines(first, 10)
        self.commit(task, self.dump(task, self.name()))
        self.wait_leaving(task)
        before = self.file(first, "/count")
        self.remove(first)
        self.order(task, podGone={})
        image = self.wait_phase(task, "CHECKPOINTED")
        second = self.next_pod(first)
        self.restore(task.replace(".1.", ".2."), second, image)
        more = before.count("\n") + 10
        wait_for("it to go on", lambda: self.file(second, "/count").count("\n") > more)
        width, lines = 0, []
        for number in range(more):
            width += len(str(number))
            lines.append(f"{number} {width}\n")
        self.assertEqual(self.file(second, "/count").splitlines(keepends=True)[:more], lines)

    def test_a_job_goes_on_on_another_node(self):
        other = self.add_node()
        task, first = self.start()
        self.commit(task, self.dump(task, self.name()))
        self.wait_leaving(task)
        count = self.stands_at(first)
        self.open(self.bed.node, False)
        self.addCleanup(self.open, self.bed.node)
        self.open(other)
        self.addCleanup(self.open, other, False)
        self.remove(first)
        self.order(task, podGone={})
        image = self.wait_phase(task, "CHECKPOINTED")
        second = self.next_pod(first)
        self.assertEqual(second["spec"]["nodeName"], other.name)
        self.restore(task.replace(".1.", ".2."), second, image)
        self.assert_goes_on(count, second)
        self.assert_blameless()

    def test_a_claim_is_mounted_again_and_written_further(self):
        folder = self.bed.dir / "claimed"
        folder.mkdir()
        size = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        self.made("/api/v1/persistentvolumes", {"metadata": {"name": "claimed"}, "spec": {
            **size, "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(folder)}}})
        self.made("/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": "claimed"}, "spec": {
            **size, "volumeName": "claimed", "resources": {"requests": {"storage": "1Gi"}}}})
        volumes = [{"name": "claimed", "persistentVolumeClaim": {"claimName": "claimed"}}]
        task, first = self.start(COUNT.replace("/scratch/", "/claimed/"), volumes=volumes,
                                 container={"volumeMounts": [{"name": "claimed", "mountPath": "/claimed"}]})
        image = self.vacate(task, first, self.name())
        self.assertEqual([file.name for file in self.images() if file.name.startswith("volume.")], [])
        count = (folder / "count").read_text().count("\n")
        second = self.next_pod(first)
        self.restore(task.replace(".1.", ".2."), second, image)
        wait_for("the file to grow", lambda: (folder / "count").read_text().count("\n") >= count + 20)
        text = (folder / "count").read_text()
        lines = text[:text.rindex("\n") + 1].splitlines(keepends=True)
        self.assertEqual(lines, lines_of(len(lines)))

    def test_connections_inside_of_a_pod_go_on(self):
        task, first = self.start(LOOPBACK)
        self.commit(task, self.dump(task, self.name()))
        self.wait_leaving(task)
        count = self.log(first).count("\n")
        self.remove(first)
        self.order(task, podGone={})
        image = self.wait_phase(task, "CHECKPOINTED")
        second = self.next_pod(first)
        self.restore(task.replace(".1.", ".2."), second, image)
        self.assert_log_begins(second, [f"{number}\n" for number in range(count, count + 20)])

    def test_init_containers_run_again_before_it_goes_on(self):
        init = {"name": "first", "image": TOOLS, "imagePullPolicy": "Never", "args": ["-c", "open('/scratch/ran', 'a').write('.')"],
                "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}
        task, first = self.start(initContainers=[init])
        self.commit(task, self.dump(task, self.name()))
        self.wait_leaving(task)
        count = self.stands_at(first)
        self.remove(first)
        self.order(task, podGone={})
        image = self.wait_phase(task, "CHECKPOINTED")
        second = self.next_pod(first)
        self.restore(task.replace(".1.", ".2."), second, image)
        self.assert_goes_on(count, second)
        # What it has left is that of the image.
        self.assertEqual(self.file(second, "/scratch/ran"), ".")
        self.assertEqual(self.now(second)["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"], 0)

    def test_a_script_from_a_config_map_goes_on(self):
        self.made(CONFIG_MAPS, {"metadata": {"name": self.name()}, "data": {"run.sh": SCRIPT}})
        self.addCleanup(self.bed.call, "DELETE", f"{CONFIG_MAPS}/{self.name()}")
        volumes = [{"name": "scratch", "emptyDir": {}}, {"name": "script", "configMap": {"name": self.name()}}]
        task, first = f"{self.new()}.1.0", self.job(self.name(), "", volumes=volumes, container={
            "command": ["bash", "/script/run.sh"], "args": [], "volumeMounts": [{"name": "script", "mountPath": "/script"}]})
        self.launch(task, first)
        self.wait_lines(first, 10)
        self.commit(task, self.dump(task, self.name()))
        self.wait_leaving(task)
        count = self.log(first).count("\n")
        self.remove(first)
        self.order(task, podGone={})
        image = self.wait_phase(task, "CHECKPOINTED")
        second = self.next_pod(first)
        self.restore(task.replace(".1.", ".2."), second, image)
        self.assert_log_begins(second, [f"{number}\n" for number in range(count, count + 20)])

    def test_redis_goes_on_with_its_data_at_another_address(self):
        self.bed.node.add_image(REDIS, write_redis_image, self.bed.programs / "redis")
        task, first = f"{self.new()}.1.0", self.job(self.name(), "", container={
            "image": REDIS, "args": ["--protected-mode", "no", "--appendonly", "yes", "--dir", "/scratch"]})
        self.launch(task, first)
        wait_for("redis to be ready", lambda: "Ready to accept connections" in self.log(first))
        self.assertEqual(self.ask(first, *(f"SET key{number} {number}" for number in range(1000))), ["+OK"] * 1000)
        image = self.vacate(task, first, self.name())
        second = self.next_pod(first)
        self.restore(task.replace(".1.", ".2."), second, image)
        self.assertEqual(self.ask(second, "DBSIZE", "INCR key41"), [":1000", ":42"])
        self.assertIn("INCR", self.file(second, "/scratch/appendonlydir/appendonly.aof.1.incr.aof"))
        self.assertEqual(self.log(second), "")

    def test_a_job_comes_back_three_times(self):
        task, pod = self.start()
        seen = [pod]
        for incarnation in (2, 3, 4):
            self.commit(task, self.dump(task, f"{self.name()}-{incarnation}"))
            self.wait_leaving(task)
            count = self.stands_at(pod)
            self.remove(pod)
            self.order(task, podGone={})
            image = self.wait_phase(task, "CHECKPOINTED")
            pod = self.next_pod(*seen)
            seen.append(pod)
            task = f"{task.split('.')[0]}.{incarnation}.0"
            self.restore(task, pod, image)
            self.assert_goes_on(count, pod)
        self.assert_blameless()

    # ---- while it stays ----
    def test_a_checkpoint_on_schedule_leaves_it_running(self):
        task, pod = self.start()
        container = self.container(pod)
        op = self.dump(task, self.name(), keep_running=True)
        count = self.stands_at(pod)
        self.commit(task, op)
        report = self.wait_phase(task, "RUNNING")
        self.assertEqual((report["committedOp"], report.get("leaves")), (str(op), None))
        self.assert_log_begins(pod, lines_of(count + 20))
        self.assertEqual(self.container(pod), container)
        self.assertGreaterEqual(min(self.lines_in_files(pod)), count)

    def test_what_was_written_after_a_checkpoint_on_schedule_is_written_again(self):
        task, first = self.start()
        op = self.dump(task, self.name(), keep_running=True)
        count = self.stands_at(first)
        self.commit(task, op)
        image = self.wait_phase(task, "RUNNING")
        self.wait_lines(first, count + 20)
        self.remove(first)
        self.order(task, podGone={"exitCode": 137})
        self.wait_phase(task, "EXITED")
        second = self.next_pod(first)
        self.restore(task.replace(".1.", ".2."), second, {**image, "checkpoint": self.name()})
        self.assert_goes_on(count, second)

    def test_a_dump_that_is_called_off_leaves_it_running(self):
        task, pod = self.start()
        op = self.dump(task, self.name())
        count = self.log(pod).count("\n")
        self.order(task, op=op, abort={})
        self.wait_phase(task, "RUNNING")
        self.wait_lines(pod, count + 20)
        self.assertEqual(self.images(), [])

    def writes_memory(self, criu):
        with contextlib.suppress(FileNotFoundError):
            return any("/pages-" in os.readlink(fd) for fd in pathlib.Path(f"/proc/{criu}/fd").iterdir())

    def test_a_dump_in_which_criu_hangs_is_undone_when_it_is_called_off(self):
        task, pod = self.start("ballast = bytes(range(256)) * (1 << 20)\n" + COUNT)
        init = self.runc_state(self.container(pod))["pid"]
        op = self.order(task, dump={"checkpoint": self.name(), "tier": "SHARED"})
        # Where it is killed as it puts its code into a process, that process dies.
        criu = wait_for("criu to write the pod's memory", lambda: (tracer := tracer_of(init)) and self.writes_memory(tracer) and tracer)
        os.kill(criu, signal.SIGSTOP)
        self.assertTrue(self.writes_memory(criu))
        self.order(task, op=op, abort={})
        report = wait_for("the dump to fail", lambda: (r := self.report(task)).get("failedOp") == str(op) and r)
        self.assertIn("called off", report["error"])
        self.assertEqual((report["phase"], tracer_of(init), self.images()), ("RUNNING", 0, []))
        self.wait_lines(pod, self.log(pod).count("\n") + 10)
        count = self.log(pod).count("\n")
        image = self.vacate(task, pod, self.name())  # as if nothing had been
        second = self.next_pod(pod)
        self.restore(task.replace(".1.", ".2."), second, image)
        wait_for("the files to grow", lambda: min(self.lines_in_files(second)) >= count + 20)
        self.assert_blameless()

    def test_a_suspended_pod_stands_still_until_it_is_resumed(self):
        task, pod = self.start()
        self.order(task, suspend={})
        self.wait_phase(task, "SUSPENDED")
        count, container = self.stands_at(pod), self.container(pod)
        self.assertTrue(self.is_paused(container))
        self.order(task, resume={})
        self.wait_phase(task, "RUNNING")
        self.assertFalse(self.is_paused(container))
        self.wait_lines(pod, count + 20)
        self.assertEqual(self.container(pod), container)
        self.assert_blameless()

    def test_a_pod_that_is_deleted_before_the_commit_leaves_no_image(self):
        task, pod = self.start()
        self.dump(task, self.name())
        self.remove(pod)
        self.order(task, podGone={"exitCode": 137})
        self.wait_phase(task, "EXITED")
        self.assertEqual(self.images(), [])

    def test_a_suspended_pod_that_is_killed_hears_of_it(self):
        task, pod = self.start(f"import signal\nsignal.signal(15, lambda *_: exit(open('/scratch/said', 'a').write('bye')))\n{COUNT}")
        self.order(task, suspend={})
        self.wait_phase(task, "SUSPENDED")
        self.path(pod, "/scratch/said").touch()
        with open(self.path(pod, "/scratch/said")) as said:  # stays readable when the volume is gone
            self.order(task, kill={"graceUs": "10000000"})
            wait_for("the pod to be thawed", lambda: not self.is_paused(self.container(pod)))
            self.bed.call("DELETE", f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 10})
            wait_for("the pod to be gone", lambda: self.now(pod) is None)
            self.assertEqual(said.read(), "bye")
        self.order(task, podGone={"exitCode": 3})
        self.assertEqual(self.wait_phase(task, "EXITED")["exitCode"], 3)

    def test_a_suspended_pod_is_put_into_an_image(self):
        task, first = self.start()
        self.order(task, suspend={})
        self.wait_phase(task, "SUSPENDED")
        count = self.stands_at(first)
        self.commit(task, self.dump(task, self.name()))
        self.wait_leaving(task)
        self.remove(first)
        self.order(task, podGone={})
        image = self.wait_phase(task, "CHECKPOINTED")
        second = self.next_pod(first)
        self.restore(task.replace(".1.", ".2."), second, image)
        self.assert_goes_on(count, second)

    def test_of_a_suspended_pod_what_it_has_not_read_is_not_lost(self):
        queue = "import socket\nours = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\nours.bind('/scratch/datagrams')\nours.sendto(b'x', '/scratch/datagrams')\n"
        task, pod = self.start(queue + COUNT)
        self.order(task, suspend={})
        self.wait_phase(task, "SUSPENDED")
        op = self.order(task, dump={"checkpoint": self.name(), "tier": "SHARED"})
        report = wait_for("the dump to fail", lambda: (r := self.report(task)).get("failedOp") == str(op) and r)
        self.assertIn("has not read the datagrams", report["error"])
        self.assertIn("resume it for a moment", report["error"])
        self.assertEqual(report["phase"], "SUSPENDED")
        self.assertTrue(self.is_paused(self.container(pod)))
        self.assertEqual(self.images(), [])

    # ---- agents that die ----
    def test_a_pod_that_leaves_does_so_under_the_next_agent(self):
        task, first = self.start()
        self.commit(task, self.dump(task, self.name()))
        self.wait_leaving(task)
        count = self.stands_at(first)
        self.agents.kill9_agent(NODE)
        self.agents.last.clear()
        self.agents.start_agent(NODE)
        self.wait_leaving(task)
        self.assertTrue(self.is_paused(self.container(first)))
        self.remove(first)
        self.order(task, podGone={})
        image = self.wait_phase(task, "CHECKPOINTED")
        second = self.next_pod(first)
        self.restore(task.replace(".1.", ".2."), second, image)
        self.assert_goes_on(count, second)

    def test_a_pod_whose_image_was_not_committed_runs_on_under_the_next_agent(self):
        task, pod = self.start()
        self.dump(task, self.name())
        count = self.log(pod).count("\n")
        self.agents.kill9_agent(NODE)
        self.assertTrue(self.is_paused(self.container(pod)))
        self.agents.last.clear()
        self.agents.start_agent(NODE)
        self.wait_phase(task, "RUNNING")
        self.wait_lines(pod, count + 20)
        self.assertEqual(self.images(), [])
        self.assert_blameless()

    def test_a_pod_that_starts_while_the_agent_is_restarted_waits_for_it(self):
        self.agents.kill9_agent(NODE)
        pod = self.job(self.name(), COUNT)
        wait_for("siding-runc to be called", lambda: self.siding_runcs())
        self.agents.start_agent(NODE)
        self.launch(f"{self.new()}.1.0", pod)
        self.wait_lines(pod, 10)
        self.assert_blameless()

    def test_a_pod_that_is_deleted_before_it_is_a_task_is_not_waited_for(self):
        pod = self.job(self.name(), COUNT)
        wait_for("siding-runc to wait for the agent's word", lambda: self.is_being_made(pod))
        self.bed.call("DELETE", f"{PODS}/{pod['metadata']['name']}", {})
        task, uid = f"{self.new()}.1.0", pod["metadata"]["uid"]

        def is_gone():
            self.order(task, pod, refuseStart={})  # again and again, as the controller does: it may not have asked yet
            return self.now(pod) is None
        wait_for("the pod to be gone", is_gone)
        # Which it says at the end of its patience. The kubelet may have called it off before it was refused, and says so or not.
        self.assertNotIn("has not said what this pod is to it", self.bed.kubectl("get", "events", "--field-selector", f"involvedObject.uid={uid}").stdout)

    # ---- what cannot be ----
    def assert_cannot_dump(self, task, pod, why):
        """The pod runs on as if nothing had been."""
        op = self.order(task, dump={"checkpoint": self.name(), "tier": "SHARED"})
        report = wait_for("the dump to fail", lambda: (r := self.report(task)).get("failedOp") == str(op) and r)
        self.assertIn(why, report["error"])
        self.assertEqual(report["phase"], "RUNNING")
        self.wait_lines(pod, self.log(pod).count("\n") + 10)
        self.assertEqual(self.images(), [])
        self.assert_blameless()

    def start_connected(self, server):
        """Returns (task, pod) of a Job that is connected to the server, and the server's end."""
        host, port = "10.98.7.1", server.getsockname()[1]  # the node's end of the pod's network
        started = self.start(f"import socket\noutside = socket.create_connection(('{host}', {port}))\n{COUNT}")
        return started, server.accept()[0]

    def test_a_pod_with_a_connection_to_outside_is_not_put_into_an_image(self):
        with socket.create_server(("0.0.0.0", 0)) as server:
            started, end = self.start_connected(server)
            with end:
                self.assert_cannot_dump(*started, "a TCP connection that leads out of the job")

    def test_a_pod_with_a_connection_that_outside_has_closed_is_not_put_into_an_image(self):
        with socket.create_server(("0.0.0.0", 0)) as server:
            started, end = self.start_connected(server)
            end.close()
            self.assert_cannot_dump(*started, "a TCP connection that leads out of the job")

    def test_a_pod_with_a_terminal_is_not_put_into_an_image(self):
        self.assert_cannot_dump(*self.start(container={"tty": True}), "terminal")

    def test_a_pod_that_listens_at_its_own_address_is_not_put_into_an_image(self):
        listen = "import socket\nserver = socket.create_server((socket.gethostbyname(socket.gethostname()), 7000))\n"
        self.assert_cannot_dump(*self.start(listen + COUNT), "a socket has the pod's own address (tcp 10.98.7.")

    def test_a_pod_that_has_the_message_of_its_end_open_is_not_put_into_an_image(self):
        message = "message = open('/dev/termination-log', 'w')\nprint('so far', file=message, flush=True)\n"
        self.assert_cannot_dump(*self.start(message + COUNT), "has /dev/termination-log open")

    def test_a_pod_whose_config_map_was_replaced_while_a_file_of_it_is_open_is_not_put_into_an_image(self):
        self.made(CONFIG_MAPS, {"metadata": {"name": self.name()}, "data": {"key": "first"}})
        self.addCleanup(self.bed.call, "DELETE", f"{CONFIG_MAPS}/{self.name()}")
        volumes = [{"name": "scratch", "emptyDir": {}}, {"name": "settings", "configMap": {"name": self.name()}}]
        mounts = [{"name": "scratch", "mountPath": "/scratch"}, {"name": "settings", "mountPath": "/settings"}]
        started = self.start(f"key = open('/settings/key')\n{COUNT}", volumes=volumes, container={"volumeMounts": mounts})
        self.bed.call("PATCH", f"{CONFIG_MAPS}/{self.name()}", {"data": {"key": "second"}}, content=MERGE_PATCH)
        pod = started[1]["metadata"]["name"]
        # Else the kubelet looks a minute later.
        self.bed.call("PATCH", f"{PODS}/{pod}", {"metadata": {"annotations": {"look": "again"}}}, content=MERGE_PATCH)
        wait_for("the second version", lambda: self.file(started[1], "/settings/key") == "second")
        self.assert_cannot_dump(*started, "which has been written anew since")

    def test_a_pod_with_a_process_that_was_stopped_is_not_put_into_an_image(self):
        child = "import os, signal\nchild = os.fork() or signal.pause()\nos.kill(child, signal.SIGSTOP)\nos.waitpid(child, os.WUNTRACED)\n"
        self.assert_cannot_dump(*self.start(child + COUNT), "has been stopped (SIGSTOP)")

    def test_a_pod_with_a_timer_that_repeats_is_not_put_into_an_image(self):
        self.assert_cannot_dump(*self.start(TIMER + COUNT), "has a timer that repeats (timerfd)")

    def damage(self, checkpoint):
        [pages] = self.image_files(checkpoint, "pages-1.img")
        with open(pages, "r+b") as file:
            file.seek(4096)
            byte = file.read(1)
            file.seek(4096)
            file.write(bytes([byte[0] ^ 1]))

    def test_a_damaged_image_is_not_begun_from_and_not_begun_anew(self):
        with self.settings(patience=5):
            task, first = self.start()
            image = self.vacate(task, first, self.name())
            self.damage(self.name())
            second = self.next_pod(first)
            again = task.replace(".1.", ".2.")
            self.order_restore(again, second, image)
            self.assertTrue(self.wait_phase(again, "RESTORE_FAILED")["imageDamaged"])
            wait_for("the reason", lambda: "pages-1.img" in self.described(second))
            self.assertEqual(self.log(second), "")

    def test_a_pod_whose_image_is_damaged_is_restored_from_an_older_one(self):
        task, first = self.start()
        older = f"{self.name()}-older"
        op = self.dump(task, older, keep_running=True)
        count = self.stands_at(first)
        self.commit(task, op)
        older_image = {**self.wait_phase(task, "RUNNING"), "checkpoint": older}
        image = self.vacate(task, first, self.name())
        self.damage(self.name())
        second = self.next_pod(first)
        self.order_restore(task.replace(".1.", ".2."), second, image)
        self.wait_phase(task.replace(".1.", ".2."), "RESTORE_FAILED")
        self.restore(task.replace(".1.", ".3."), second, older_image)
        self.assert_goes_on(count, second)
        self.assert_blameless()

    def fail_restore(self):
        """Returns (task, pods, image, lines before it, a file): no restore succeeds while the file is there."""
        folder = self.bed.dir / self.name()
        folder.mkdir()
        fails = folder / "fails"
        fails.touch()
        (folder / "criu").write_text(f"#!/bin/sh\n[ -e {fails} ] && exit 1\nexec {self.agents.criu} \"$@\"\n")
        (folder / "criu").chmod(0o755)
        with self.settings(criu=folder):
            task, first = self.start()
            self.commit(task, self.dump(task, self.name()))
            self.wait_leaving(task)
            count = self.stands_at(first)
            self.remove(first)
            self.order(task, podGone={})
            image = self.wait_phase(task, "CHECKPOINTED")
            second = self.next_pod(first)
            again = task.replace(".1.", ".2.")
            self.order_restore(again, second, image)
            self.assertIn("could not be restored", self.wait_phase(again, "RESTORE_FAILED")["error"])
        self.assertEqual(self.log(second), "")
        return task, (first, second), image, count, fails

    def test_a_restore_that_failed_is_tried_again_in_the_same_pod(self):
        task, (_, second), image, count, fails = self.fail_restore()
        fails.unlink()
        self.restore(task.replace(".1.", ".3."), second, image)
        self.assert_goes_on(count, second)
        self.assert_blameless()

    def test_a_restore_that_failed_is_tried_again_in_another_pod(self):
        task, (first, second), image, count, _ = self.fail_restore()
        self.remove(second)
        third = self.next_pod(first, second)
        self.restore(task.replace(".1.", ".3."), third, image)
        self.assert_goes_on(count, third)
        self.assert_blameless()

    def test_a_pod_that_the_agent_is_not_told_of_does_not_start_and_says_why(self):
        with self.settings(patience=1):
            self.agents.kill9_agent(NODE)
            try:
                pod = self.job(self.name(), COUNT)
                wait_for("the reason", lambda: "this node's siding-agent cannot be reached" in self.described(pod))
                self.assertEqual(self.log(pod), "")
            finally:
                self.agents.start_agent(NODE)

    def test_a_pod_without_the_class_needs_no_agent(self):
        self.agents.kill9_agent(NODE)
        try:
            pod = self.job(self.name(), COUNT, runtimeClassName=None)
            self.wait_lines(pod, 10)
        finally:
            self.agents.start_agent(NODE)


if __name__ == "__main__":
    main(root=True)

#!/usr/bin/python3
"""Programs that map another file where one was mapped when their memory was looked at before. The kernel keeps the mode of the link in
/proc/PID/map_files from that first look, and it says nothing about the file that is mapped there now."""

import unittest

from case import ClusterCase, wait_for

# Maps the first file for reading and, when the file `go` is there, the second at the same range. Each line of files: a path, whether it
# is mapped to be written to. Writes into what it may write to until the file `end` is there.
PROGRAM = """
import ctypes, os, sys, time
folder, *files = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
READ, WRITE, SHARED, PRIVATE, FIXED = 1, 2, 1, 2, 0x10

def mapped(path, shared, at=None):
    file = os.open(path, os.O_RDWR if shared else os.O_RDONLY)
    address = libc.mmap(at, 4096, READ | WRITE if shared else READ, (SHARED if shared else PRIVATE) | (FIXED if at else 0), file, 0)
    assert address not in (None, 2 ** 64 - 1), os.strerror(ctypes.get_errno())
    os.close(file)
    return address

def until(name):
    while not os.path.exists(f"{folder}/{name}"):
        time.sleep(0.02)

first, second = [(path, path.startswith(folder)) for path in files]
address = mapped(*first)
print("first", flush=True)
until("go")
assert mapped(*second, at=address) == address
whole = open(second[0], "rb").read(4096)
print("second", flush=True)
until("end")
assert ctypes.string_at(address, 4096) == whole
if second[1]:
    ctypes.memset(address, ord("x"), 4096)
    assert open(second[0], "rb").read(4096) == b"x" * 4096
print("right", flush=True)
"""
USER = 65534
FOREIGN = "/usr/bin/python3"  # which the user may only read


class Mapping(ClusterCase):
    def setUp(self):
        super().setUp()
        self.dir = self.outputs()
        self.own = self.dir / "own"
        self.own.write_bytes(bytes(4096))
        self.own.chmod(0o666)

    def wait_said(self, job, word):
        wait_for(f"job {job} to say {word}", lambda: word in (self.dir / f"{job}").read_text().splitlines())

    def run_with(self, first, second):
        program = self.cluster.dir / "program.py"
        program.write_text(PROGRAM)
        job = self.cluster.submit("--name", "maps", "--slots", 1, "--preemptible=checkpoint", "--workdir", self.dir, "--output",
                                  f"{self.dir}/%j", "--", "/usr/bin/python3", program, self.dir, first, second, uid=USER)
        self.cluster.wait_state(job, "running")
        self.wait_said(job, "first")
        self.cluster.ctl("checkpoint", job)
        self.cluster.wait_event(job, "continued")
        (self.dir / "go").touch()
        self.wait_said(job, "second")
        self.cluster.ctl("vacate", job)
        ended = wait_for("its restore to end", lambda: [e for e in self.cluster.events(job) if e["kind"] in ("restored", "restore-failed")])
        self.assertEqual(ended[0]["kind"], "restored", ended)
        (self.dir / "end").touch()
        self.cluster.wait_state(job, "done")
        self.assertEqual((self.dir / f"{job}").read_text().splitlines(), ["first", "second", "right"])

    def test_memory_that_is_shared_where_a_foreign_file_was(self):
        self.run_with(FOREIGN, self.own)

    def test_a_foreign_file_where_memory_was_shared(self):
        self.run_with(self.own, FOREIGN)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/python3
"""A job whose result shows whether anything of it was lost, repeated or changed.

usage: worker.py GATE STEPS OUT [STATE | --stubborn] [--connection]
Works until there is a file GATE, and STEPS more. Writes a number a step into OUT.RANK.log and, at its end, a line with how many there
are and the digest of that file into OUT.RANK.ended. With STATE it saves itself there at SIGUSR1 and ends; --resume continues from it.
--stubborn: it does not end at a SIGTERM. --connection: it sends each number to itself over TCP. With $FAKE_GPU_STATES it uses the GPU of a driver that has none: a step is done only while its
state there is "running"."""

import hashlib
import mmap
import os
import signal
import socket
import struct
import sys
import time

RUNNING = "0"

arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
gate, steps, out = arguments[0], int(arguments[1]), f"{arguments[2]}.{os.environ['SIDING_RANK']}"
state = arguments[3] if len(arguments) > 3 else None
resume = "--resume" in sys.argv
at = int(open(state).read()) if resume else 0
# From the beginning: what an earlier start has written does not count.
log = open(out + ".log", "r+" if resume else "w+")
if resume:
    lines = log.read().splitlines(keepends=True)[:at]
    log.seek(0)
    log.truncate()
    log.write("".join(lines))
    log.flush()
# Memory with a name, which belongs to the checkpoint: the number of steps is in it, too.
name = f"/dev/shm/{os.path.basename(out)}"
with open(name, "wb+") as file:
    file.truncate(mmap.PAGESIZE)
    shared = mmap.mmap(file.fileno(), mmap.PAGESIZE)
struct.pack_into("q", shared, 0, at)
ballast = bytearray(os.urandom(1 << 20) * 4)
before = hashlib.sha256(ballast).hexdigest()


def save(*_):
    with open(state + ".new", "w") as f:
        f.write(str(at))
    os.rename(state + ".new", state)
    sys.exit(0)


class Connection:
    """To itself. What comes out of it is what went in, in order."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.near = socket.create_connection(listener.getsockname())
            self.far = listener.accept()[0]

    def carry(self, number):
        self.near.sendall(struct.pack("q", number))
        came = b""
        while len(came) < 8:
            part = self.far.recv(8 - len(came))
            assert part, "the connection was closed"
            came += part
        assert struct.unpack("q", came)[0] == number, "the connection lost something"


connection = Connection() if "--connection" in sys.argv else None
if "--stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if state:
    signal.signal(signal.SIGUSR1, save)
gpu = os.environ.get("FAKE_GPU_STATES") and f"{os.environ['FAKE_GPU_STATES']}/{os.getpid()}"
if gpu:
    open(gpu, "w").write(RUNNING)
left = None  # until the gate is there
while left != 0:
    if left is None and os.path.exists(gate):
        left = steps
    while gpu and open(gpu).read(1) != RUNNING:
        time.sleep(0.001)
    log.write(f"{at}\n")
    log.flush()
    if connection:
        connection.carry(at)
    at += 1
    left = left and left - 1
    struct.pack_into("q", shared, 0, struct.unpack_from("q", shared, 0)[0] + 1)
    time.sleep(0.02)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
assert hashlib.sha256(ballast).hexdigest() == before, "memory changed"
assert struct.unpack_from("q", shared, 0)[0] == at, "shared memory changed"
os.unlink(name)
log.seek(0)
with open(out + ".ended", "a") as f:
    f.write(f"{at} {hashlib.sha256(log.read().encode()).hexdigest()}\n")

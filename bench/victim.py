#!/usr/bin/python3
"""A program with MIB of memory that counts, 50 steps a second: victim.py LOG STATE MIB.

Appends "SECONDS STEP" to LOG at every tenth step, SECONDS since the epoch. On SIGUSR1 it saves its memory to STATE as
programs do that save themselves (written beside, synced, renamed) and ends with 99, which Slurm is told to requeue; at its
start it continues from STATE if there is one."""

import os
import signal
import sys
import time

log, state, mib = sys.argv[1], sys.argv[2], int(sys.argv[3])
told = False


def tell(*_):
    global told
    told = True


def save(step, memory):
    with open(state + ".tmp", "wb") as file:
        file.write(step.to_bytes(8, "little"))
        file.write(memory)
        file.flush()
        os.fsync(file.fileno())
    os.rename(state + ".tmp", state)


def load():
    with open(state, "rb") as file:
        return int.from_bytes(file.read(8), "little"), bytearray(file.read())


signal.signal(signal.SIGUSR1, tell)
signal.signal(signal.SIGTERM, lambda *_: os._exit(143))  # a container's first process is not ended by it otherwise
# Every page differs from every other one, as a program's do.
step, memory = load() if os.path.exists(state) else (0, bytearray(os.urandom(mib << 20)))
with open(log, "a", buffering=1) as out:
    while True:
        if step % 10 == 0:
            out.write(f"{time.time():.3f} {step}\n")
        if told:
            save(step, memory)
            sys.exit(99)
        memory[step % len(memory)] ^= 1
        step += 1
        time.sleep(0.02)

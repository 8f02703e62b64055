"""A redis server that holds 400,000 values, and a client that writes and reads them. Argument: where to note what it has done, as lines of time
and calls."""
import random
import socket
import subprocess
import sys
import time

path = sys.argv[1] + ".socket"
server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL)
client = socket.socket(socket.AF_UNIX)
while client.connect_ex(path) != 0:
    time.sleep(0.05)
answers = client.makefile("rb")
draw = random.Random(1)


def call(lines):
    client.sendall("".join(lines).encode())
    for _ in lines:
        answer = answers.readline()
        if answer.startswith(b"$") and answer != b"$-1\r\n":
            answers.readline()


def put(key):
    return f"SET {key} {draw.getrandbits(256):x}\r\n"


for begin in range(0, 400_000, 1000):
    call([put(key) for key in range(begin, begin + 1000)])
with open(sys.argv[1], "w", buffering=1) as notes:
    done, noted = 0, 0.0
    while True:
        # Most calls are about few of them, as of a cache.
        keys = [int(400_000 * draw.random() ** 8) for _ in range(100)]
        call([put(key) if draw.random() < 0.2 else f"GET {key}\r\n" for key in keys])
        done += len(keys)
        if time.time() - noted > 0.1:
            noted = time.time()
            notes.write(f"{noted} {done}\n")

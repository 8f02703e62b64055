"""Small programs that the end-to-end tests run as jobs. Each writes numbered lines, so that a lost, repeated or
changed piece of work shows in its output."""

# Counts to N and writes every number once; holds MIB of memory whose content it checks at the end. With the name of a file, it waits
# for that file before the last number, so that it does not end before a test has done what it is to live through.
COUNTER = r"""
import hashlib, os, sys, time
n, mib, gate = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "/"
ballast = bytearray(os.urandom(1 << 20) * mib)
before = hashlib.sha256(ballast).hexdigest()
for i in range(n):
    while i == n - 1 and not os.path.exists(gate):
        time.sleep(0.02)
    print(i, flush=True)
    time.sleep(0.02)
assert hashlib.sha256(ballast).hexdigest() == before, "memory changed"
print("done", flush=True)
"""

# Holds an io_uring, which no checkpoint can save.
URING = r"""
import ctypes, time
libc = ctypes.CDLL(None, use_errno=True)
params = (ctypes.c_char * 120)()
fd = libc.syscall(425, 4, params)
assert fd >= 0, ctypes.get_errno()
print("ready", flush=True)
while True:
    print("alive", flush=True)
    time.sleep(0.05)
"""

# Saves itself when told to, and continues from there: at once with --go-on, else when started with --resume.
SAVER = r"""
import os, signal, sys, time
state, n = sys.argv[1], int(sys.argv[2])
i = int(open(state).read()) if "--resume" in sys.argv else 0
told = False
def tell(*_):
    global told
    told = True
signal.signal(signal.SIGUSR1, tell)
while i < n:
    print(i, flush=True)
    i += 1
    time.sleep(0.02)
    if told:  # between two steps: what was printed and what is saved agree
        told = False
        with open(state + ".tmp", "w") as f:
            f.write(str(i))
        os.rename(state + ".tmp", state)
        if "--go-on" not in sys.argv:
            sys.exit(0)
print("done", flush=True)
"""


def command(folder, name, source, *args):
    """Writes the program below `folder` and returns the command that runs it."""
    path = folder / f"{name}.py"
    path.write_text(source)
    path.chmod(0o755)
    return ["/usr/bin/python3", str(path), *map(str, args)]


def counted(path, n):
    """None if the output is 0..n-1 and "done", each line once; else what is wrong with it."""
    lines = path.read_text().splitlines()
    want = [str(i) for i in range(n)] + ["done"]
    if lines == want:
        return None
    for at, (got, expected) in enumerate(zip(lines, want)):
        if got != expected:
            return f"{path} line {at + 1}: {got!r}, expected {expected!r}"
    return f"{path}: {len(lines)} lines, expected {len(want)}"

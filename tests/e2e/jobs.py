"""Small programs that the end-to-end tests run as jobs. Each writes numbered lines, so that a lost, repeated or
changed piece of work shows in its output."""

# Counts until there is a file GATE, writes one number more and "done"; holds MIB of memory whose content it checks at the end. The last
# number shows what a job remembers that is restored only when its gate is open.
COUNTER = r"""
import hashlib, os, sys, time
gate, mib = sys.argv[1], int(sys.argv[2])
ballast = bytearray(os.urandom(1 << 20) * mib)
before = hashlib.sha256(ballast).hexdigest()
i, last = 0, False
while not last:
    last = os.path.exists(gate)
    print(f"{i}\n", end="", flush=True)  # in one write: what others say on the way never stands within a line
    i += 1
    time.sleep(0.02)
assert hashlib.sha256(ballast).hexdigest() == before, "memory changed"
print("done", flush=True)
"""

# A counter that with each number changes one page of a table of MIB, or many of a quarter of it, of shared memory if told so, and keeps an account of
# which number is in which page. Of two ranks that are to go in step none is more than a number ahead. At the end all pages are what the account says: a page of another moment would not be.
TABLE = r"""
import mmap, os, sys, time
gate, mib = sys.argv[1], int(sys.argv[2])
pages = mib << 8
table = mmap.mmap(-1, mib << 20) if "--shared" in sys.argv else bytearray(mib << 20)
account = [0] * pages
each, of = (32, pages // 4) if "--busy" in sys.argv else (1, pages)
def page_of(number):
    return number.to_bytes(8, "little") * 512
for page in range(pages):  # one that is zero has no place in an image
    account[page] = page + 1
    table[page << 12:(page + 1) << 12] = page_of(page + 1)
rank = int(os.environ.get("SIDING_RANK", 0))
other = os.path.join(os.path.dirname(os.readlink("/proc/self/fd/1")), f"{os.environ['SIDING_JOB_ID']}.{1 - rank}") if "--in-step" in sys.argv else None
def is_behind(path, size):
    return not os.path.exists(path) or os.stat(path).st_size < size
i, written, last = 0, 0, False
while not last:
    while other and is_behind(other, written):
        time.sleep(0.002)
    last = os.path.exists(gate)
    for page in ((i * each + k) * 7919 % of for k in range(each)):
        account[page] = pages + i
        table[page << 12:(page + 1) << 12] = page_of(pages + i)
    print(f"{i}\n", end="", flush=True)
    written += len(f"{i}\n")
    i += 1
    time.sleep(0.02)
for page in range(pages):
    assert table[page << 12:(page + 1) << 12] == page_of(account[page]), f"page {page} is not of {account[page]}"
print("done", flush=True)
"""

# Does to its memory what programs do, and knows at each moment what must be in it; each child finds it so, too.
# Arguments: GATE.
CHURN = r"""
import hashlib, mmap, os, random, sys, threading, time
gate, random, size = sys.argv[1], random.Random(7), mmap.PAGESIZE
still = bytearray(random.randbytes(24 << 20))  # most of it, so that the rest is worth being tracked
digest = hashlib.sha256(still).digest()
areas = []  # of each: the memory, and by page the number of which it is full
def page_of(number):
    return number.to_bytes(8, "little") * (size // 8)
def fill(memory, account, page):
    account[page] = random.getrandbits(60) + 1
    memory[page * size:(page + 1) * size] = page_of(account[page])
def add(pages):
    areas.append((mmap.mmap(-1, pages * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), {}))
    for page in range(0, pages, 3):
        fill(*areas[-1], page)
def forget(account, gone):
    for page in [p for p in account if p in gone]:
        del account[page]
def check():
    for memory, account in areas:
        for page in range(len(memory) // size):
            assert memory[page * size:(page + 1) * size] == page_of(account.get(page, 0)), f"page {page} of {len(memory) // size}"
def deep(levels):
    return levels and 1 + deep(levels - 1)
def churn():
    what, (memory, account) = random.randrange(8), random.choice(areas)
    pages = len(memory) // size
    if what == 0 and len(areas) < 30:
        add(random.randrange(1, 300))
    elif what == 1 and len(areas) > 10:
        areas.remove((memory, account))
        memory.close()
    elif what == 2:
        memory.resize(random.randrange(1, 400) * size)  # moves it, as often as not
        forget(account, range(len(memory) // size, 1000))
    elif what == 3:
        first = random.randrange(pages)
        memory.madvise(mmap.MADV_DONTNEED, first * size, (pages - first) * size)
        forget(account, range(first, pages))
    elif what == 4:
        child = os.fork()
        if child == 0:
            fill(memory, account, 0)
            check()
            os._exit(17)
        assert os.waitpid(child, 0)[1] == 17 << 8
    elif what == 5:
        deep(random.randrange(900))
        assert os.spawnv(os.P_WAIT, "/bin/true", ["true"]) == 0
    else:
        for _ in range(20):
            fill(memory, account, random.randrange(pages))
ticks = bytearray(1 << 20)
def tick():
    while True:
        for i in range(0, len(ticks), size):
            ticks[i] = (ticks[i] + 1) & 255
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()
for _ in range(15):
    add(300)
i, last = 0, False
while not last:
    last = os.path.exists(gate)
    churn()
    print(f"{i}\n", end="", flush=True)
    i += 1
    time.sleep(0.01)
check()
assert hashlib.sha256(still).digest() == digest
print("done", flush=True)
"""

# Does nothing until there is a file GATE.
STAY = r"""
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
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

# The same without memory, which saves itself when told to, and continues from there: at once with --go-on, else when started with --resume.
SAVER = r"""
import os, signal, sys, time
gate, state = sys.argv[1], sys.argv[2]
i = int(open(state).read()) if "--resume" in sys.argv else 0
told = last = False
def tell(*_):
    global told
    told = True
signal.signal(signal.SIGUSR1, tell)
while not last:
    last = os.path.exists(gate)
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
    if not path.exists():  # else a job may be about to read it
        path.write_text(source)
        path.chmod(0o755)
    return ["/usr/bin/python3", str(path), *map(str, args)]


def miscounted(lines):
    """None if these are a counter's, from its begin to its end: numbers from 0 on, each once, and "done". Else what is wrong."""
    want = [*map(str, range(max(1, len(lines) - 1))), "done"]
    if lines == want:
        return None
    at = next((i for i, (got, expected) in enumerate(zip(lines, want)) if got != expected), len(lines))
    return f"line {at + 1} of {len(lines)}: {lines[at:at + 1]}, expected {want[at]!r}"


def counted(path):
    """The same of what a counter has written into this file."""
    problem = miscounted(path.read_text().splitlines())
    return problem and f"{path}: {problem}"


def began_anew(lines):
    """Whether these are of a counter that was interrupted, and of another start of it that came to its end."""
    again = max((i for i, line in enumerate(lines) if line == "0"), default=0)
    return again > 0 and lines[:again] == [*map(str, range(again))] and miscounted(lines[again:]) is None

# Ranks with a TCP connection between any two of them, over which all send at once: each line is a round in which every rank has sent
# SIZE random bytes to each other one. At the end each tells the others what it has sent, and compares what has come: a rank of another
# moment than its peers would know of other bytes. Rank 0 sees its gate first, and says so in its next round. Arguments: GATE, SIZE, and FILE, where it notes how long each round took that took longer than 5 ms, and when it was over.
MESH = r"""
import hashlib, os, selectors, socket, sys, time
gate, size, gaps = sys.argv[1], int(sys.argv[2]), None
rank, addresses = int(os.environ["SIDING_RANK"]), os.environ["SIDING_GANG_ADDRS"].split(",")
def connected(address):
    while True:
        try:
            return socket.create_connection((address, 7000))
        except ConnectionRefusedError:
            time.sleep(0.02)
listener = socket.create_server((addresses[rank], 7000), backlog=len(addresses))
peers = {other: connected(addresses[other]) for other in range(rank)}
for peer in peers.values():
    peer.sendall(bytes([rank]))
while len(peers) < len(addresses) - 1:
    peer, _ = listener.accept()
    peers[peer.recv(1)[0]] = peer
if len(sys.argv) > 3:
    gaps = open(f"{sys.argv[3]}.{rank}", "w", buffering=1)
sums = {other: (hashlib.sha256(), hashlib.sha256()) for other in peers}
i, last, before = 0, False, time.time()
while not last:
    ending = rank == 0 and os.path.exists(gate)
    mine = bytes([ending]) + os.urandom(size)
    sent, got = dict.fromkeys(peers, 0), {other: b"" for other in peers}
    busy = selectors.DefaultSelector()
    for other, peer in peers.items():
        peer.setblocking(False)
        busy.register(peer, selectors.EVENT_READ | selectors.EVENT_WRITE, other)
    while any(sent[o] < len(mine) or len(got[o]) < len(mine) for o in peers):
        for key, events in busy.select():
            other, peer = key.data, key.fileobj
            if events & selectors.EVENT_WRITE and sent[other] < len(mine):
                sent[other] += peer.send(mine[sent[other]:])
                if sent[other] == len(mine):
                    busy.modify(peer, selectors.EVENT_READ, other)
            if events & selectors.EVENT_READ and len(got[other]) < len(mine):
                came = peer.recv(len(mine) - len(got[other]))
                assert came, f"rank {other} has hung up"
                got[other] += came
                if len(got[other]) == len(mine) and sent[other] == len(mine):
                    busy.unregister(peer)
                elif len(got[other]) == len(mine):
                    busy.modify(peer, selectors.EVENT_WRITE, other)
    busy.close()
    for other, came in got.items():
        sums[other][0].update(mine)
        sums[other][1].update(came)
    last = ending or (rank != 0 and got[0][0] == 1)
    now = time.time()
    if gaps and now - before > 0.005:
        gaps.write(f"{now} {now - before}\n")
    before = now
    print(f"{i}\n", end="", flush=True)
    i += 1
for other, peer in peers.items():
    peer.setblocking(True)
    peer.sendall(sums[other][0].digest())
for other, peer in peers.items():
    theirs = peer.recv(32, socket.MSG_WAITALL)
    assert theirs == sums[other][1].digest(), f"what came from rank {other} is not what it sent"
print("done", flush=True)
"""

# Rank 0 sends rank 1 MIB, says what, hangs up and ends; rank 1 reads it when there is a file GATE. Both write what it was.
PARTING = r"""
import hashlib, os, socket, sys, time
gate, mib = sys.argv[1], int(sys.argv[2])
addresses = os.environ["SIDING_GANG_ADDRS"].split(",")
if os.environ["SIDING_RANK"] == "0":
    bytes_ = os.urandom(mib << 20)
    while True:
        try:
            peer = socket.create_connection((addresses[1], 7000))
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * len(bytes_))
    peer.sendall(bytes_)
    peer.close()
else:
    peer, _ = socket.create_server((addresses[1], 7000)).accept()
    while not os.path.exists(gate):
        time.sleep(0.02)
    bytes_ = b""
    while came := peer.recv(1 << 20):
        bytes_ += came
print(hashlib.sha256(bytes_).hexdigest(), flush=True)
"""

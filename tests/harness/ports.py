"""Ports for servers that a test starts a moment later."""

import random
import socket

# Below those that the kernel hands out to connections: no other connection gets one meanwhile.
FIRST, LAST = 10_000, 32_000

# A port that was handed out is this process's until it ends, though nobody listens on it yet: tests that start servers at the same
# moment had been given the same one. An abstract name belongs to one process, and the kernel frees it however that process ends.
_kept = []


def free_ports(count):
    """Different ports on which nobody on this machine listens, and which no other test has been given."""
    ports = []
    while len(ports) < count:
        port = random.randint(FIRST, LAST)
        if _keep(port):
            ports.append(port)
    return ports


def free_row(count):
    """The same of ports that follow each other; the first of them."""
    while True:
        first, before = random.randint(FIRST, LAST - count + 1), len(_kept)
        if all(_keep(port) for port in range(first, first + count)):
            return first
        for name in _kept[before:]:
            name.close()
        del _kept[before:]


def _keep(port):
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0siding-test-port-{port}")
        with socket.socket() as probe:
            probe.bind(("0.0.0.0", port))
    except OSError:
        name.close()
        return False
    _kept.append(name)
    return True

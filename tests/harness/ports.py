"""Ports for servers that a test starts a moment later."""

import random
import socket

# Below those that the kernel hands out to connections: no other connection gets one meanwhile.
FIRST, LAST = 10_000, 32_000


def free_ports(count):
    """Different ports of the loopback device that are free now, at random, as other tests look for some at the same time."""
    ports = []
    while len(ports) < count:
        port = random.randint(FIRST, LAST)
        if port in ports:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
    return ports

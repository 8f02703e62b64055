#!/usr/bin/python3
"""A job that makes the kernel block readers of its memory. In namespaces of its own it mounts a FUSE file system
whose server, a child of it, never answers a write; it dirties a page of a file there and unmaps it. The kernel then holds the
process's map of memory for as long as the server lives.

    fuse_job.py DEVICE MARKER    DEVICE: as /dev/fuse, and open to its user. MARKER is made when it is about to hang.
"""

import ctypes
import mmap
import os
import struct
import sys
import tempfile
import threading
import time

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
LOOKUP, FORGET, GETATTR, OPEN, READ, WRITE, FLUSH, INIT = 1, 2, 3, 14, 15, 16, 25, 26
ROOT, FILE, SIZE = 1, 2, 4096
libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def attributes(inode):
    mode = 0o040755 if inode == ROOT else 0o100666
    return struct.pack("<QQQQQQIIIIIIIIII", inode, SIZE, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def serve(device):
    while True:
        request = os.read(device, 1 << 20)
        _, opcode, unique, inode = struct.unpack_from("<IIQQ", request)
        error, answer = 0, b""
        if opcode == INIT:
            major, _ = struct.unpack_from("<II", request, 40)
            answer = struct.pack("<IIIIHHIIHHI28x", major, 31, 65536, 0, 16, 16, 65536, 1, 1, 0, 0)
        elif opcode == LOOKUP:
            answer = struct.pack("<QQQQII", FILE, 0, 3600, 3600, 0, 0) + attributes(FILE)
        elif opcode == GETATTR:
            answer = struct.pack("<QII", 3600, 0, 0) + attributes(inode)
        elif opcode == OPEN:
            answer = struct.pack("<QII", 1, 0, 0)
        elif opcode == READ:
            answer = bytes(SIZE)
        elif opcode in (WRITE, FORGET):
            continue  # never
        elif opcode != FLUSH:
            error = -38  # ENOSYS
        os.write(device, struct.pack("<IiQ", 16 + len(answer), error, unique) + answer)


def main():
    device_path, marker = sys.argv[1:]
    uid, gid = os.getuid(), os.getgid()
    check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    device = os.open(device_path, os.O_RDWR)
    folder = tempfile.mkdtemp()
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
    check(libc.mount(b"fuse", folder.encode(), b"fuse", 0, options.encode()), "mount")
    if os.fork() == 0:
        serve(device)
    os.close(device)
    file = os.open(f"{folder}/file", os.O_RDWR)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    page = libc.mmap(None, SIZE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file, 0)
    ctypes.memset(page, 1, SIZE)
    open(marker, "w").close()
    threading.Thread(target=lambda: libc.munmap(page, SIZE)).start()
    while True:  # who wants to change the map waits for the other, and keeps all that come behind waiting
        libc.munmap(libc.mmap(None, SIZE, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0), SIZE)
        time.sleep(0.001)


if __name__ == "__main__":
    main()

"""A mount and a network namespace of this process's own: whatever lies in /tmp, /dev/shm or in nftables afterwards was left
there by what ran in it."""

import ctypes
import os
import pathlib
import subprocess

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
# Slurm's daemons ask for addresses of the families that the machine has, loopback not counted: without another device there are none.
NETWORK = ("ip link set lo up", "ip link add machine0 type veth peer name machine1", "ip address add 192.0.2.1/24 dev machine0",
           "ip link set machine0 up", "ip link set machine1 up")


def enter_mounts(also=0):
    """Mounts that only this process and its children see, for the rest of the process: one in the namespace of all processes would
    become a part of each task that is started meanwhile, which could not be restored once the mount is gone."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | also) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def make_network():
    """In a network namespace that has none yet; it leads nowhere."""
    for command in NETWORK:
        subprocess.run(command.split(), check=True)


def hides(path):
    """Whether enter() lays its empty /tmp over the path."""
    return pathlib.Path(path).resolve().is_relative_to("/tmp")


def enter(kept):
    """An empty /tmp and /dev/shm, and a loopback device, for the rest of the process. Returns another path of the folder `kept`."""
    fd = os.open(kept, os.O_RDONLY | os.O_DIRECTORY)
    enter_mounts(CLONE_NEWNET)
    # What others have mounted there would be a part of every task's mounts, and nowhere to be found.
    points = [line.split()[4] for line in open("/proc/self/mountinfo")]
    for point in sorted((p for p in points if p.startswith("/tmp/")), reverse=True):
        subprocess.run(["umount", "-l", point], stderr=subprocess.DEVNULL, check=False)  # or it has gone
    for command in ("mount -t tmpfs -o mode=1777 tmpfs /tmp", "mount -t tmpfs -o mode=1777 tmpfs /dev/shm", "ip link set lo up"):
        subprocess.run(command.split(), check=True)
    return f"/proc/self/fd/{fd}"


def packet_rules():
    """The tables of nftables, where CRIU locks connections."""
    nft = ctypes.CDLL("libnftables.so.1")
    nft.nft_ctx_new.restype = ctypes.c_void_p
    nft.nft_ctx_get_output_buffer.restype = ctypes.c_char_p
    context = ctypes.c_void_p(nft.nft_ctx_new(0))
    nft.nft_ctx_buffer_output(context)
    nft.nft_ctx_buffer_error(context)
    nft.nft_run_cmd_from_buffer(context, b"list ruleset")
    rules = nft.nft_ctx_get_output_buffer(context).decode()
    nft.nft_ctx_free(context)
    return rules.strip()

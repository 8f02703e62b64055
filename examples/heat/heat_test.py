#!/usr/bin/python3
"""The heat solver: one result, however it is cut, threaded, stopped or put back."""

import os
import pathlib
import signal
import socket
import struct
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[up] / folder) for up, folder in ((1, "."), (2, "tests/harness"))]
from example_case import ExampleCase  # noqa: E402
from ports import free_row  # noqa: E402

HEAT = os.environ["HEAT"]


class HeatCase(ExampleCase):
    def command(self, out, size=128, steps=400, **options):
        more = [text for name, value in options.items() for text in (f"--{name}", value)]
        return [HEAT, "--size", size, "--steps", steps, "--out", out, *more]

    def one(self, threads="1", **options):
        out = self.new_out()
        self.finish(self.start(self.command(out, **options), OMP_NUM_THREADS=threads))
        return self.digest(out)

    def start_rank(self, out, rank, ranks, addresses=None, **options):
        options.setdefault("exchange", self.folder / "halo")
        return self.start(self.command(out, **options), OMP_NUM_THREADS="1", SIDING_RANK=str(rank), SIDING_NODES=str(ranks),
                          SIDING_JOB_ID="7", SIDING_GANG_ADDRS=addresses or ",".join(["127.0.0.1"] * ranks))

    def gang(self, ranks, **options):
        out = self.new_out()
        for process in [self.start_rank(out, rank, ranks, **options) for rank in range(ranks)]:
            self.finish(process)
        return self.digest(out)

    def stop(self, process):
        os.kill(process.pid, signal.SIGSTOP)
        self.until(lambda: pathlib.Path(f"/proc/{process.pid}/stat").read_text().split()[2] == "T", "the stop")


class OneRank(HeatCase):
    def test_two_runs_agree(self):
        self.assertEqual(self.one(), self.one())

    def test_more_steps_give_another_result(self):
        self.assertNotEqual(self.one(steps=400), self.one(steps=401))

    def test_threads_do_not_matter(self):
        self.assertEqual(self.one(threads="1"), self.one(threads="3"))

    def test_ballast_does_not_matter(self):
        self.assertEqual(self.one(), self.one(memory=8))

    def test_wrong_option_is_named(self):
        process = self.start([HEAT, "--out", "x", "--size", "many"])
        self.finish(process, expected=2)
        self.assertIn('--size: expected a number of at least 3, got "many"', self.log(process))


class AnyGang:
    """However its ranks talk to each other."""

    def test_two_ranks_agree_with_one(self):
        self.assertEqual(self.one(), self.gang(2))

    def test_three_ranks_and_a_broken_last_exchange_agree_with_one(self):
        self.assertEqual(self.one(steps=397), self.gang(3, steps=397, every=5))


class OverFiles(AnyGang, HeatCase):
    def test_frozen_rank_does_not_matter(self):
        out, halo = self.new_out(), self.folder / "halo"
        frozen = self.start_rank(out, 1, 2)
        self.until((halo / "7.1.up.0").exists, "its first halo")
        self.stop(frozen)
        other = self.start_rank(out, 0, 2)
        self.until((halo / "7.0.down.1").exists, "the other to wait for the frozen one's second halo")
        os.kill(frozen.pid, signal.SIGCONT)
        for process in (frozen, other):
            self.finish(process)
        self.assertEqual(self.digest(out), self.one())

    def test_removed_halo_is_written_again(self):
        # As a rank finds it that was put back to a moment before its neighbour's clean-up.
        out = self.new_out()
        first = self.start_rank(out, 0, 2)
        halo = self.folder / "halo" / "7.0.down.0"
        self.until(halo.exists, "the first halo")
        halo.unlink()
        second = self.start_rank(out, 1, 2)
        self.finish(first)
        self.finish(second)
        self.assertEqual(self.digest(out), self.one())

    def test_foreign_halo_is_refused(self):
        (self.folder / "halo").mkdir()
        (self.folder / "halo" / "7.1.up.0").write_bytes(b"of another program")
        process = self.start_rank(self.new_out(), 0, 2)
        self.finish(process, expected=1)
        self.assertIn("7.1.up.0 is not of this run", self.log(process))

    def test_port_without_connections_is_refused(self):
        process = self.start_rank(self.new_out(), 0, 2, port=7100)
        self.finish(process, expected=2)
        self.assertIn("--port: expected --exchange tcp with it", self.log(process))


# Of a message: the header's form, and what it says it is.
HEADER, HELLO, UP = "=4sIqQQ", 1, 2


def message(what, number, values, checksum=None):
    """As the ranks send them."""
    content = struct.pack(f"={len(values)}d", *values)
    if checksum is None:
        checksum = 14695981039346656037
        for byte in content:
            checksum = (checksum ^ byte) * 1099511628211 % 2**64
    return struct.pack(HEADER, b"HEAT", what, number, len(values), checksum) + content


class OverTcp(AnyGang, HeatCase):
    def start_rank(self, out, rank, ranks, **options):
        return super().start_rank(out, rank, ranks, **{"exchange": "tcp", "port": self.port, **options})

    def setUp(self):
        super().setUp()
        self.port = free_row(4)

    def peer(self, *messages):
        """Rank 0 of two, and a connection that says to it what rank 1 might."""
        process = self.start_rank(self.new_out(), 0, 2)
        connection = socket.socket()
        self.addCleanup(connection.close)
        self.until(lambda: connection.connect_ex(("127.0.0.1", self.port)) == 0, "rank 0 to listen")
        for each in messages:
            connection.sendall(each)
        return process, connection

    def take(self, connection, size):
        """What has so many bytes."""
        connection.settimeout(60)
        self.assertEqual(len(connection.recv(size, socket.MSG_WAITALL)), size)

    def assert_refused(self, why, *messages):
        process, _ = self.peer(*messages)
        self.finish(process, expected=1)
        self.assertIn(why, self.log(process))

    def test_four_ranks_agree_with_one(self):
        self.assertEqual(self.one(), self.gang(4))

    def test_rows_that_no_kernel_holds_do_not_matter(self):
        self.assertEqual(self.one(size=2048, steps=1), self.gang(2, size=2048, steps=1, every=1000))

    def test_others_are_waited_for(self):
        out = self.new_out()
        second = self.start_rank(out, 1, 2)
        self.until(lambda: f"waits for rank 0 at 127.0.0.1:{self.port}" in self.log(second), "it to wait")
        first = self.start_rank(out, 0, 2)
        for process in (first, second):
            self.finish(process)
        self.assertEqual(self.digest(out), self.one())

    def test_a_stop_does_not_matter(self):
        rows = message(UP, 0, [0.0] * 1024)
        process, connection = self.peer(message(HELLO, 0, [1.0]), rows[:100])
        self.take(connection, len(rows))  # it waits for the rest
        self.stop(process)
        os.kill(process.pid, signal.SIGCONT)
        connection.sendall(rows[100:])
        self.take(connection, len(rows))

    def test_a_peer_that_hangs_up_is_named(self):
        process, connection = self.peer(message(HELLO, 0, [1.0]))
        connection.close()
        self.finish(process, expected=1)
        self.assertIn("heat: rank 1 has hung up", self.log(process))

    def test_one_that_hangs_up_within_a_message_is_named(self):
        process, connection = self.peer(message(HELLO, 0, [1.0]), message(UP, 0, [0.0] * 1024)[:-1])
        connection.shutdown(socket.SHUT_WR)
        self.finish(process, expected=1)
        self.assertIn("heat: rank 1 has hung up", self.log(process))

    def test_a_doubled_byte_is_seen(self):
        self.assert_refused("rank 1 sent something that is no message, expected rows upwards (number 0, 1024 values): bytes were lost or",
                            message(HELLO, 0, [1.0]), b"H" + message(UP, 0, [0.0] * 1024))

    def test_a_message_of_another_moment_is_seen(self):
        self.assert_refused("rank 1 sent rows upwards (number 1, 1024 values), expected rows upwards (number 0, 1024 values)",
                            message(HELLO, 0, [1.0]), message(UP, 1, [0.0] * 1024))

    def test_other_values_are_seen(self):
        self.assert_refused("rank 1 sent rows upwards (number 0, 1024 values) with a wrong checksum",
                            message(HELLO, 0, [1.0]), message(UP, 0, [0.0] * 1024, checksum=1))

    def test_a_connection_of_another_program_is_refused(self):
        self.assert_refused("who has connected sent something that is no message, expected hello", b"GET / HTTP/1.1\r\nHost: rank.0\r\n\r\n")

    def test_a_rank_that_nobody_waits_for_is_refused(self):
        self.assert_refused("a connection says that it is of rank 2, expected one that rank 0 waits for", message(HELLO, 0, [2.0]))

    def test_addresses_are_checked(self):
        for addresses, why in (("127.0.0.1", 'expected the addresses of 2 ranks with commas, got "127.0.0.1"'),
                               ("127.0.0.1,node2", 'expected IPv4 addresses with commas, got "node2" in "127.0.0.1,node2"')):
            process = self.start_rank(self.new_out(), 0, 2, addresses=addresses)
            self.finish(process, expected=2)
            self.assertIn(f"heat: SIDING_GANG_ADDRS: {why}", self.log(process))

    def test_an_address_that_is_not_here_is_named(self):
        process = self.start_rank(self.new_out(), 0, 2, addresses="192.0.2.1,192.0.2.2")
        self.finish(process, expected=1)
        self.assertIn(f"heat: cannot listen on 192.0.2.1:{self.port}: ", self.log(process))

    def test_ports_are_checked(self):
        process = self.start_rank(self.new_out(), 0, 2, port=65535)
        self.finish(process, expected=2)
        self.assertIn("--port: expected at most 65534 for 2 ranks, got 65535", self.log(process))


if __name__ == "__main__":
    unittest.main()

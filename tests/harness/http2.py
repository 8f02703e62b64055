"""HTTP/2 by hand, for callers who do what no gRPC client does: announce a message and never finish it."""

import select
import socket
import ssl
import struct
import subprocess

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 3, 4
END_STREAM, END_HEADERS, ACK = 1, 4, 1
FRAME = 16384  # the longest that every peer must accept
WINDOW = 65535  # until the other end says otherwise


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def text(value):
    """Of HPACK: a length of up to 16 bits, no Huffman code."""
    value = value.encode()
    if len(value) < 127:
        return bytes([len(value)]) + value
    rest, length = len(value) - 127, b"\x7f"
    while rest >= 128:
        length += bytes([rest % 128 + 128])
        rest //= 128
    return length + bytes([rest]) + value


def header_block(method, **more):
    fields = {":method": "POST", ":scheme": "http", ":path": f"/siding.v1.{method}", ":authority": "localhost", "te": "trailers",
              "content-type": "application/grpc", **{name.replace("_", "-"): value for name, value in more.items()}}
    return b"".join(b"\x00" + text(name) + text(value) for name, value in fields.items())


def connect_unix(path, user=None):
    """As `user`: the kernel tells the listener who connected."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if user is None:
        s.connect(str(path))
        return s
    # By a process of its own: this one's other threads must not become that user for a moment.
    connect = "import socket, sys; socket.socket(fileno=int(sys.argv[1])).connect(sys.argv[2])"
    done = subprocess.run(["/usr/bin/python3", "-c", connect, str(s.fileno()), str(path)], pass_fds=[s.fileno()], user=user,
                          capture_output=True, text=True)
    if done.returncode != 0:
        s.close()
        raise OSError(done.stderr.strip().splitlines()[-1])
    return s


def connect_tls(port, ca, *identity):
    """`identity`: certificate and key. Without, as a client that shows none."""
    context = ssl.create_default_context(cafile=str(ca))
    if identity:
        context.load_cert_chain(*map(str, identity))
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost")


class Connection:
    """Sends as much as the windows let it. Not thread-safe."""

    def __init__(self, s, takes=WINDOW):
        """`takes`: so many bytes of each answer, and then no more of it."""
        self.socket = s
        self.window = WINDOW
        self.first_window = WINDOW  # of a stream
        self.most_streams = 2**31
        self.windows = {}
        self.ended = set()
        self.next = 1
        self.unread = b""
        self.open = True
        self.send(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, takes)))

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            self.open = False

    def call(self, method, **more):
        """A new stream, with headers only."""
        stream, self.next = self.next, self.next + 2
        self.windows[stream] = self.first_window
        self.send(frame(HEADERS, END_HEADERS, stream, header_block(method, **more)))
        return stream

    def ask(self, method, request=b""):
        """A new stream, with the whole of a short request."""
        stream = self.call(method)
        self.send(frame(DATA, END_STREAM, stream, b"\0" + struct.pack(">I", len(request)) + request))
        return stream

    def put(self, stream, data):
        """How much of it could be sent."""
        if stream in self.ended or not self.open:
            return 0
        piece = data[:max(0, min(self.window, self.windows[stream], FRAME))]
        if piece:
            self.window -= len(piece)
            self.windows[stream] -= len(piece)
            self.send(frame(DATA, 0, stream, bytes(piece)))
        return len(piece)

    def read(self, patience=0.0):
        """Takes in what has come."""
        while self.open and (getattr(self.socket, "pending", int)() or select.select([self.socket], [], [], patience)[0]):
            patience = 0
            try:
                data = self.socket.recv(1 << 20)
            except OSError:
                data = b""
            if not data:
                self.open = False
                return
            self.unread += data
            self._frames()

    def _frames(self):
        while len(self.unread) >= 9:
            length = int.from_bytes(self.unread[:3], "big")
            if len(self.unread) < 9 + length:
                return
            kind, flags, stream = struct.unpack(">BBI", self.unread[3:9])
            payload, self.unread = self.unread[9:9 + length], self.unread[9 + length:]
            self._take(kind, flags, stream, payload)

    def _take(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            for i in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[i:i + 6])
                if name == MAX_CONCURRENT_STREAMS:
                    self.most_streams = value
                if name == INITIAL_WINDOW_SIZE:
                    for other in self.windows:
                        self.windows[other] += value - self.first_window
                    self.first_window = value
            self.send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if stream == 0:
                self.window += more
            elif stream in self.windows:
                self.windows[stream] += more
        elif kind == GOAWAY:
            self.open = False
        if kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
            self.ended.add(stream)

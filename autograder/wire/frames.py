"""Frames on a socket: a small msgpack structure and, behind it, the bytes of arrays.

A frame can be read from a process that nobody trusts: lengths are checked before memory is taken, and
msgpack's extensions and maps are not read.
"""

import select
import socket
import struct
import time

import msgpack

STRUCTURE_LIMIT = 4 << 20  # bytes of msgpack in a frame
BULK_LIMIT = 128 << 20  # bytes of arrays and tensors in a frame, and of msgpack in one from the side that is trusted
_HEADER = struct.Struct("<II")


class WireError(Exception):
    """A frame that is no frame, or that is larger or deeper than what is taken."""


class Late(Exception):
    """The other side did not answer in time."""


class Closed(Exception):
    """The other side is gone."""


def send(sock: socket.socket, structure, bulk: list, deadline: float | None = None, most: int = STRUCTURE_LIMIT) -> None:
    """Write one frame.

    Args:
        structure: what msgpack takes.
        bulk: the bytes of its arrays, each a multiple of the alignment long.
        deadline: of `time.monotonic`; without one the other side is waited for.
        most: bytes of the structure.

    Raises:
        WireError: if the frame is too large; nothing is written then.
        Late, Closed: if it cannot be written.
    """
    packed = msgpack.packb(structure, use_bin_type=True)
    size = sum(map(len, bulk))
    if len(packed) > most or size > BULK_LIMIT:
        raise WireError(f"it takes more than {(most if len(packed) > most else BULK_LIMIT) >> 20} MB")
    try:
        _timeout(sock, deadline)
        sock.sendall(b"".join([_HEADER.pack(len(packed), size), packed, *bulk]))
    except TimeoutError:
        raise Late from None
    except OSError:
        raise Closed from None


def receive(sock: socket.socket, deadline: float | None = None, most: int = STRUCTURE_LIMIT):
    """Read one frame: its structure and a bytearray of its arrays.

    Raises:
        WireError: if it is no frame or too large.
        Late, Closed: if it does not come.
    """
    head = _read(sock, _HEADER.size, deadline)
    length, size = _HEADER.unpack(head)
    if length > most or size > BULK_LIMIT:
        raise WireError(f"a frame of {length + size:,} bytes")
    packed, bulk = _read(sock, length, deadline), _read(sock, size, deadline)
    try:
        structure = msgpack.unpackb(packed, raw=False, use_list=True, ext_hook=_no_extension, max_map_len=0)
    except Exception as error:
        raise WireError(f"no msgpack ({type(error).__name__})") from None
    return structure, bulk


def ready(sock: socket.socket, until: float) -> bool:
    """Wait until there is something to read, or the other side is gone; False if that is not so at `until`."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(1000 * max(until - time.monotonic(), 0)))


def _no_extension(code, data):
    raise ValueError("no extension types")


def _read(sock: socket.socket, size: int, deadline: float | None) -> bytearray:
    data = bytearray(size)
    view, done = memoryview(data), 0
    try:
        while done < size:
            _timeout(sock, deadline)
            got = sock.recv_into(view[done:])
            if not got:
                raise Closed
            done += got
    except TimeoutError:
        raise Late from None
    except OSError:
        raise Closed from None
    return data


def _timeout(sock: socket.socket, deadline: float | None) -> None:
    if deadline is None:
        sock.settimeout(None)
        return
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    sock.settimeout(left)

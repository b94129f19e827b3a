# SPDX-License-Identifier: LGPL-2.1-or-later
# artifacts.py - scenarios of files that are made to hurt who reads them
#
# doc/FORMAT.md has the format.  Whatever is in a file, the report refuses it with one line,
# or shows what comes before the damage and says that there is some; it does not crash, hang,
# or take memory that a length asks for.

import json
import os
import socket
import struct
import subprocess

import tracked

SECONDS = 20
MEMORY_KIB = 512 * 1024
FRAME_BYTES = 64 << 20


def text(word):
    word = word.encode()
    return bytes([0xda, len(word) >> 8, len(word) & 255]) + word


def number(value):
    return b"\xcf" + struct.pack(">Q", value)


def array(*elements):
    return bytes([0x90 + len(elements)]) + b"".join(elements)


def block(kind, first, rows, *columns):
    return array(text(kind), number(first), number(rows), array(*columns))


def column(name, encoding, data):
    return array(text(name), text(encoding), b"\xc6" + struct.pack(">I", len(data)) + data)


SIGNATURE = array(text("memtrack artifact"), number(1))
HEADER = array(text("header"), number(1), number(1), number(1), number(8192), text("x86_64"),
               text("made by hand"), array())
PROCESS = array(text("process"), number(1), number(0), number(7), number(1), number(5),
                text("/bin/x"), text("x"))
NODE_COLUMNS = ("parent", "module", "offset", "exact")

# Bytes after a good start.
BAD_CONTENT = {
    "an array of 2^32 - 1": b"\xdd\xff\xff\xff\xff",
    "a map of 2^32 - 1": b"\xdf\xff\xff\xff\xff",
    "a string of 2^32 - 1": b"\xdb\xff\xff\xff\xff",
    "bytes of 2^32 - 1": b"\xc6\xff\xff\xff\xff",
    "an extension of 2^32 - 1": b"\xc9\xff\xff\xff\xff\x01",
    "an array of 2^31 with a few elements": b"\xdd\x80\x00\x00\x00" + b"\xc0" * 9999,
    "a million arrays in each other": b"\x91" * 1000000,
    "maps in each other": b"\x81\x01" * 500000,
    "the type that there is not": b"\xc1",
    "no record": b"\x07" * 1000,
    "a record without a kind": array(),
    "a kind that is no text": array(number(1), number(2)),
    "a process before its parent": array(text("process"), number(1), number(9), number(7),
                                         number(1), number(5), text("/x"), text("x")),
    "a process with 2^64 - 1 for a number": array(text("process"), number(2**64 - 1), number(0),
                                                  number(7), number(1), number(5), text("/x"),
                                                  text("x")),
    "a thread of no process": PROCESS + array(text("thread"), number(1), number(2), number(7),
                                              number(5), text("x")),
    "a text for a number": array(text("process"), text("1"), number(0), number(7), number(1),
                                 number(5), text("/x"), text("x")),
    "a NaN for a number": array(text("process-end"), b"\xcb\x7f\xf8" + bytes(6), number(1),
                                number(0)),
    "a second header": HEADER,
    "a block of 2^64 - 1 rows": block("nodes", 0, 2**64 - 1),
    "a block with no columns": block("nodes", 0, 65536),
    "a block whose runs are longer than it": block(
        "nodes", 0, 1, *(column(name, "runs", b"\x00" + b"\xff" * 9 + b"\x01")
                         for name in NODE_COLUMNS)),
    "a block whose number does not end": block(
        "nodes", 0, 1, *(column(name, "varint", b"\xff" * 99) for name in NODE_COLUMNS)),
    "an encoding that nobody knows": block(
        "nodes", 0, 1, *(column(name, "magic", b"\x00") for name in NODE_COLUMNS)),
    "a column twice": block(
        "nodes", 0, 1, *(column("parent", "varint", b"\x01") for _ in NODE_COLUMNS)),
    "a node that is its own parent": block(
        "nodes", 0, 1, *(column(name, "varint", b"\x10") for name in NODE_COLUMNS)),
}


def packed(content, *options):
    return subprocess.run(["zstd", "-q", "-c", *options], input=content, check=True,
                          stdout=subprocess.PIPE).stdout


def packed_output(script):
    return subprocess.run(["sh", "-c", script], check=True, stdout=subprocess.PIPE).stdout


def skippable(length):
    return struct.pack("<II", 0x184D2A50, length)


def read(path):
    """(status, standard output, messages, memory in KiB) of a report."""
    with open("out", "wb") as out, open("err", "wb") as err:
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["timeout", "-k", "1", str(SECONDS), tracked.REPORT, "--json", path],
            stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    with open("out", "rb") as out, open("err", "rb") as err:
        return process.returncode, out.read(), err.read(), usage.ru_maxrss


def refusal_problems(title, path):
    """A report, or none, and one line that says what is wrong."""
    status, out, said, kib = read(path)
    if status not in (1, tracked.STATUS_INCOMPLETE) or said.count(b"\n") != 1:
        yield f"{title}: exit status {status}, says {said!r}"
    elif status != 1 and json.loads(out)["complete"]:
        yield f"{title}: taken for a complete artifact"
    if kib > MEMORY_KIB:
        yield f"{title}: {kib} KiB of memory"


def content_problems(title, content):
    with open("made.mtk", "wb") as file:
        file.write(content)
    yield from refusal_problems(title, "made.mtk")


def hostile_lengths(_):
    """Lengths, numbers and nesting that promise more than there is."""
    start = SIGNATURE + HEADER
    for title, content in BAD_CONTENT.items():
        yield from content_problems(title, packed(start + content))
        yield from content_problems(f"{title}, a frame of its own",
                                    packed(start) + packed(content))
        yield from content_problems(f"{title}, at the start", packed(content))
    yield from content_problems("a signature alone", packed(SIGNATURE))
    yield from content_problems("no signature", packed(HEADER))
    yield from content_problems("a frame that says it has 2^62 bytes",
                                b"\x28\xb5\x2f\xfd\xc0\x40" + struct.pack("<Q", 1 << 62))


def bombs(_):
    """Small files that unpack to large ones."""
    start = packed(SIGNATURE + HEADER)
    size = 20 * FRAME_BYTES
    zeros = packed_output(f"head -c {size} /dev/zero | zstd -q -c")
    nils = packed_output(f"head -c {size} /dev/zero | tr '\\000' '\\300' | zstd -q -c")
    window = packed_output(f"head -c {3 * FRAME_BYTES} /dev/zero | zstd -q -c --ultra --long=31")
    for title, content in (("zeros", zeros), ("nils", nils), ("a window of 2 GiB", window),
                           ("empty frames", packed(b"") * 100000),
                           ("skippable frames", skippable(0) * 100000),
                           ("a skippable frame of 4 GiB", skippable(2**32 - 1))):
        yield from content_problems(title, content)
        yield from content_problems(f"{title}, after a good start", start + content)


def no_files(_):
    """What is there under the name is no file, or has no end."""
    os.symlink("loop", "loop")
    os.mkdir("folder")
    for path in ("loop", "folder", "/dev/zero", "/dev/null", "/dev/full", "/proc/self/mem",
                 "/proc/self/maps", "no-such", ""):
        yield from refusal_problems(path, path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        yield from refusal_problems("a socket", "socket")

# SPDX-License-Identifier: LGPL-2.1-or-later
# arguments.py - values of options that are looked at before hours of work, not after them

import argparse


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def writable(path):
    """A file that can be written, which comes to be with that."""
    try:
        with open(path, "a", encoding="utf-8"):
            return path
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot write '{path}': {error.strerror}") from None

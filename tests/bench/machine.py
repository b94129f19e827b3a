# SPDX-License-Identifier: LGPL-2.1-or-later
# machine.py - where figures come from

import os
import platform


def _first_line(path, start=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return next((line.strip() for line in file if line.startswith(start)), None)
    except OSError:
        return None


def describe():
    system = _first_line("/etc/os-release", "PRETTY_NAME=")
    model = _first_line("/proc/cpuinfo", "model name")
    return {
        "cpu": model.split(":", 1)[1].strip() if model else platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory": _first_line("/proc/meminfo", "MemTotal").split(":")[1].strip(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "system": system.split("=", 1)[1].strip('"') if system else platform.system(),
        "load": os.getloadavg(),
        "root": os.geteuid() == 0,
    }

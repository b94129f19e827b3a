# SPDX-License-Identifier: LGPL-2.1-or-later
# keep.py - kept stacks hash and unwind again to what they were when they were recorded;
# artifacts that were changed, and sealed again, do not
#
# What is changed is the text that dump_artifact makes of an artifact; make_artifact makes
# one of it again, with good checksums.

import os
import re
import shutil
import sys

import tap
import tracked

FIXTURES = (["stack_churn", "20"], ["cxx_exceptions"], ["dlopen_dlclose"], ["signal_handler"],
            ["fork"], ["threads", "8"], ["coroutines"], ["big_alloca"])
PYTHON = [sys.executable, "-c", "import json\nfor i in range(200): json.dumps({'a': [i]})"]
BUDGETS = ("8K", "64K")


def verify(artifact):
    """(exit status, {count: number}, output)"""
    result = tracked.run([tracked.REPORT, "--verify-stacks", artifact])
    out = result.out.decode()
    counts = {name: int(number) for name, number
              in re.findall(r"^([a-z ]+[a-z])  +(\d+)$", out, re.MULTILINE)}
    return result.status, counts, out + result.err.decode()


def wrong_counts(found, **expected):
    """All stacks agree, but for what is expected otherwise."""
    stacks = found.get("stacks")
    wanted = {"stacks": stacks, "hashes right": stacks, "hashes wrong": 0,
              "chains equal": stacks, "chains different": 0, "not checkable": 0}
    for name, number in expected.items():
        wanted[name.replace("_", " ")] = number
    yield from tracked.differences("count", wanted, found)


def records_of(summary):
    found = re.search(r"stack records: (\d+)[ ,]", summary)
    return int(found[1]) if found else None


def check(command, capture, budget, *options):
    artifact = "checked.mtk"
    environment = {**os.environ, "PYTHONMALLOC": "malloc"}
    result = tracked.track(command, capture, artifact,
                           [f"--stack-size={budget}", "--keep-stacks", "-v", *options],
                           env=environment)
    if result.status:
        yield f"exit status {result.status}, says {result.err!r}"
    status, found, said = verify(artifact)
    if status:
        yield f"exit status {status}, says {said}"
    yield from wrong_counts(found)
    # A record that no event asked for is not decoded.
    kept, sent = found.get("stacks", 0), records_of(result.err.decode())
    if not sent or not 0.9 * sent <= kept <= sent:
        yield f"{kept} stacks of {sent} records"
    print(f"# {kept} stacks, {os.path.getsize(artifact)} bytes")
    yield from tracked.losses(artifact)


def by_environment(value, keeps):
    artifact = f"environment.{value}.mtk"
    tracked.track([f"{tracked.BUILD}/fixtures/malloc_free"], "inline", artifact,
                  env={**os.environ, "MEMTRACK_KEEP_STACKS": value})
    status, found, said = verify(artifact)
    if keeps:
        if status or not found.get("stacks"):
            yield f"exit status {status}, says {said}"
    elif status != 1 or found or said.count("\n") != 1 or "--keep-stacks" not in said:
        yield f"exit status {status}, not 1 and a line of advice: {said!r}"


def dump(artifact):
    with open(artifact, "rb") as file:
        result = tracked.run([f"{tracked.BUILD}/tests/dump_artifact"], file.read())
    if result.status:
        raise RuntimeError(f"dump_artifact: {result.err!r}")
    return result.out.decode().splitlines()


def make(artifact, lines):
    result = tracked.run([f"{tracked.BUILD}/tests/make_artifact"],
                         ("\n".join(lines) + "\n").encode())
    if result.status:
        raise RuntimeError(f"make_artifact: {result.err!r}")
    with open(artifact, "wb") as file:
        file.write(result.out)


def kept_lines(lines):
    return [number for number, line in enumerate(lines) if line.startswith("kept-stack ")]


def flip_word(line, which):
    """One bit of one of its words, that is no part of the chain: its hash only."""
    head, words = line.split(" words=")
    words = words.split(",")
    words[which] = hex(int(words[which], 16) ^ 1 << 40)
    return f"{head} words={','.join(words)}"


def flipped_words(lines):
    """rbx is the first word, and no function of the fixture is unwound by it."""
    changed = list(lines)
    kept = kept_lines(lines)
    for number in kept[::len(kept) // 15]:
        changed[number] = flip_word(lines[number], 0)
    make("flipped.mtk", changed)
    n = sum(one != other for one, other in zip(lines, changed))
    status, found, said = verify("flipped.mtk")
    if status != 1:
        yield f"exit status {status}, not 1"
    yield from wrong_counts(found, hashes_right=len(kept) - n, hashes_wrong=n)
    named = re.findall(r"^stack (\d+), thread 1 \(tid \d+\): the \d+ bytes at 0x\w+ hash to "
                       r"\w+, recorded was \w+$", said, re.MULTILINE)
    first = [str(kept.index(number) + 1) for number in kept[::len(kept) // 15]][:10]
    if named != first or f"\nand {n - 10} more\n" not in said:
        yield f"does not name the first ten of {n}: {said}"


def set_field(line, key, value):
    return re.sub(rf" {key}=\S+", f" {key}={value}", line)


def other_value(lines, key, right, wrong):
    """One stack with the value of another one: a count of the right less, of the wrong more."""
    changed = list(lines)
    last = kept_lines(lines)[-1]
    own = re.search(rf" {key}=(\S+)", lines[last])[1]
    values = [re.search(rf" {key}=(\S+)", lines[number])[1] for number in kept_lines(lines)]
    other = next((value for value in values if value != own), int(own, 0) ^ 1)
    changed[last] = set_field(lines[last], key, other)
    make("other.mtk", changed)
    status, found, said = verify("other.mtk")
    if status != 1:
        yield f"exit status {status}, not 1"
    yield from wrong_counts(found, **{right: found["stacks"] - 1, wrong: 1})
    if len(re.findall(r"^stack \d+, thread", said, re.MULTILINE)) != 1:
        yield f"does not name one stack: {said}"


def return_address(lines):
    """The word that the chain begins with."""
    changed = list(lines)
    number = kept_lines(lines)[-1]
    changed[number] = flip_word(lines[number], 6)
    make("return.mtk", changed)
    status, found, said = verify("return.mtk")
    if status != 1:
        yield f"exit status {status}, not 1"
    stacks = found["stacks"]
    yield from wrong_counts(found, hashes_right=stacks - 1, hashes_wrong=1,
                            chains_equal=stacks - 1, chains_different=1)
    if not re.search(r": frame 1 is 0x\w+, recorded was /\S*malloc_free\+0x\w+$", said,
                     re.MULTILINE):
        yield f"does not say what frame differs: {said}"


def no_file(program, words):
    """Its file is not what it was: chains through it are not compared, all others are."""
    status, found, said = verify("moved.mtk")
    if status:
        yield f"exit status {status}, says {said}"
    missed = found.get("not checkable", 0)
    if not 0 < missed <= found.get("stacks", 0):
        yield f"{missed} stacks not checkable: {said}"
    yield from wrong_counts(found, chains_equal=found.get("stacks", 0) - missed,
                            not_checkable=missed)
    if f"\n  through {program}, which {words}\n" not in said:
        yield f"does not name the file: {said}"


def a_file_that_is_gone():
    program = os.path.abspath("moved")
    shutil.copy(f"{tracked.BUILD}/fixtures/malloc_free", program)
    result = tracked.track([program], "inline", "moved.mtk", ["--keep-stacks"])
    if result.status:
        yield f"exit status {result.status}, says {result.err!r}"
    os.unlink(program)
    yield from no_file(program, "is not there any more")
    shutil.copy(f"{tracked.BUILD}/fixtures/realloc", program)
    yield from no_file(program, "is not the file that was recorded (other build-id)")
    os.unlink(program)
    os.mkdir(program)
    yield from no_file(program, "is not a file")


def cut(artifact):
    """Before its footer's end, or only in its seal."""
    with open(artifact, "rb") as file:
        content = file.read()
    for less, words in ((40, "is incomplete"), (10, "is damaged")):
        with open("cut.mtk", "wb") as file:
            file.write(content[:-less])
        status, found, said = verify("cut.mtk")
        if status != 1 or words not in said:
            yield f"{less} bytes less: exit status {status}, says {said}"
        yield from wrong_counts(found)


def cut_early(artifact):
    """Nobody knows whether it had stacks: it is not said that it had none."""
    with open(artifact, "rb") as file:
        content = file.read()
    with open("early.mtk", "wb") as file:
        file.write(content[:len(content) // 4])
    status, _, said = verify("early.mtk")
    if status != 1 or "is incomplete" not in said or "has none" in said:
        yield f"exit status {status}, says {said}"


def longer_than_the_budget(lines):
    """A window that the header's budget does not allow has no digest."""
    make("budget.mtk", [set_field(line, "budget", 4097) if line.startswith("header ") else line
                        for line in lines])
    status, _, said = verify("budget.mtk")
    if status != 1 or "contradict" not in said:
        yield f"exit status {status}, says {said}"


def check_changed(results):
    artifact = "good.mtk"
    result = tracked.track([f"{tracked.BUILD}/fixtures/malloc_free"], "inline", artifact,
                           ["--keep-stacks"])
    lines = dump(artifact)
    make("again.mtk", lines)
    results.case("an artifact made again",
                 [] if result.status == 0 and verify("again.mtk") == verify(artifact)
                 and verify(artifact)[0] == 0 else [result.err, verify("again.mtk")])
    results.attempt("flipped words", flipped_words, lines)
    for key in ("epoch", "digest"):
        results.attempt(f"another {key}", other_value, lines, key, "hashes_right",
                        "hashes_wrong")
    results.attempt("another node", other_value, lines, "node", "chains_equal",
                    "chains_different")
    results.attempt("another return address", return_address, lines)
    results.attempt("a window longer than the budget", longer_than_the_budget, lines)
    results.attempt("a file that is gone, or another", a_file_that_is_gone)
    results.attempt("an artifact that is cut", cut, artifact)
    results.attempt("an artifact that is cut before its stacks", cut_early, artifact)


def main():
    results = tap.Tap()
    for capture in tracked.CAPTURES:
        reason = tracked.missing(capture)
        commands = [[f"{tracked.BUILD}/fixtures/{name}", *rest] for name, *rest in FIXTURES]
        cases = [[command, capture, budget] for command in [*commands, PYTHON]
                 for budget in BUDGETS]
        cases += [[commands[0], capture, budget, "--no-stack-compression"] for budget in BUDGETS]
        for case in cases:
            title = " ".join([os.path.basename(case[0][0]), *case[1:]])
            if reason:
                results.skip(title, reason)
            else:
                results.attempt(title, check, *case)
    for value, keeps in (("1", True), ("0", False), ("", False)):
        results.attempt(f"MEMTRACK_KEEP_STACKS={value}", by_environment, value, keeps)
    check_changed(results)
    results.plan()


main()

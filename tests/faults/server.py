"""Runs `dsc` commands, each in a process of its own that is forked from one that has imported all.

A line of JSON on stdin is a list of commands: their words, the files for their output, and maybe a
fault at the n-th file event (a file opened for writing, renamed, removed, a folder made): "kill"
ends the process there as SIGKILL does, "full", "inodes" and "denied" let that event and all later
ones fail as a full disk, one without inodes and one without rights do; "stop" sends SIGTERM, "gone"
removes a folder.
The answer is a line with the exit codes.
"""

import concurrent.futures.thread
import errno
import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
MOVES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link")
FAILURES = {
    "full": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "inodes": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "denied": OSError(errno.EROFS, os.strerror(errno.EROFS)),
}


def hook(below, fault, at, counter, gone):
    """Count the file events below a folder; at one of them, let something happen.

    The lock that it returns is held while a folder is removed.
    """
    guard = threading.Lock()
    removing = threading.Lock()

    def listen(event, args):
        if event == "open":
            path, _, flags = args
            if not isinstance(flags, int) or not flags & WRITING:
                return
        elif event in MOVES:
            path = args[0]
        else:
            return
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if isinstance(path, int) or not os.path.abspath(path).startswith(below):  # noqa: PTH100
            return
        with guard:
            number = int.from_bytes(os.pread(counter, 8, 0), "little") + 1
            os.pwrite(counter, number.to_bytes(8, "little"), 0)
        if at is None or number < at:
            return
        if fault == "kill" and number == at:
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == "stop" and number == at:
            os.kill(os.getpid(), signal.SIGTERM)
        elif fault == "gone" and number == at and not str(path).endswith(".lock"):
            with removing:  # but not when the command has let go of it
                shutil.rmtree(gone, ignore_errors=True)
        elif fault in FAILURES and event not in ("os.remove", "os.rmdir"):
            problem = FAILURES[fault]
            if fault == "inodes" and event == "open" and os.path.exists(path):  # noqa: PTH110
                return  # what is there already needs no inode
            raise OSError(problem.errno, problem.strerror, path)

    sys.addaudithook(listen)
    return removing


def child(order):
    for name, number in (("stdout", 1), ("stderr", 2)):
        place = os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(place, number)
    os.chdir(order["folder"])
    counter = os.open(order["counter"], os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.pwrite(counter, bytes(8), 0)
    fault = (order.get("fault"), order.get("at"))
    removing = hook(order["folder"], *fault, counter, order.get("gone"))
    from dsc.cli.main import main

    code = 0
    try:
        main(order["words"], prog_name="dsc")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    concurrent.futures.thread._python_exit()  # which waits for threads that still write
    with removing:  # another thread may still be at it, as another process would
        pass
    os._exit(code)


def wait(pid, seconds=60):
    """The exit code of a process; None for one that had to be ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def prepare():
    """Import everything; no thread may be started here, since forks do not have it."""
    import importlib

    import numpy as np

    import dsc
    from dsc.cli.main import COMMANDS

    for module, _ in COMMANDS.values():
        importlib.import_module(f"dsc.cli.{module}")
    for name in ("dsc.report", "matplotlib.pyplot", "dask.threaded", "zarr", "psutil", "PIL.Image"):
        importlib.import_module(name)
    for name in dsc.__all__:
        getattr(dsc, name)
    patches = np.random.default_rng(0).random((60, 7, 7))
    dsc.learn(
        patches, n_atoms=3, sparsity=2, n_iterations=1, scheduler="synchronous", progress=False
    )


def main():
    prepare()
    answers = os.fdopen(os.dup(1), "w")
    print("ready", threading.active_count(), file=answers, flush=True)
    for line in sys.stdin:
        orders = json.loads(line)
        started = []
        for order in orders:
            if (pid := os.fork()) == 0:
                child(order)
            started.append(pid)
        codes = [wait(pid) for pid in started]
        print(json.dumps(codes), file=answers, flush=True)


if __name__ == "__main__":
    main()

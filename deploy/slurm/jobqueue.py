"""Learn a dictionary on SLURM with workers that dask-jobqueue submits as jobs of their own.

    export DASK_CONFIG=$PWD/dsc-config && deploy/config.sh "$DASK_CONFIG"
    python deploy/slurm/jobqueue.py learn patches.zarr --out run --jobs 8 --n-atoms 20 --resume

Run it where it may stay: on a login node that allows it, or in a small job (there by `exec python`
and with `#SBATCH --signal=B:TERM@60`, so that the signal comes here). SIGTERM ends the command,
which can be resumed, and cancels the jobs of workers. `dask.yaml` says what a job of workers asks
for (jobqueue.slurm). All paths are on a file system that the nodes share.
"""

import argparse
import signal
import subprocess
import sys
from pathlib import Path

from dask_jobqueue import SLURMCluster
from distributed import Security


def main() -> int:
    """Run one dsc command while the workers are there."""
    parser = argparse.ArgumentParser(description="Run a dsc command on SLURM.")
    parser.add_argument("--jobs", type=int, default=4, help="jobs of workers")
    parser.add_argument("--interface", help="network that the nodes share, such as ib0")
    own, words = parser.parse_known_args()
    signal.signal(signal.SIGTERM, leave)
    options = {"dashboard_address": "127.0.0.1:8787"}
    with SLURMCluster(
        security=Security(),  # the certificate that DASK_CONFIG names
        interface=own.interface,
        scheduler_options=options,
    ) as cluster:
        cluster.adapt(minimum_jobs=own.jobs, maximum_jobs=own.jobs)  # one that ends is replaced
        dsc = Path(sys.executable).parent / "dsc"
        with subprocess.Popen([dsc, *words, "--scheduler", cluster.scheduler_address]) as command:
            try:
                return command.wait()
            except SystemExit:  # it ends first, and then the cluster with its jobs
                command.terminate()
                raise


def leave(*_: object) -> None:
    """End at a signal as if at the end of `main`."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(128 + signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env bash
# Run one dsc command on a Dask cluster that lives as long as the command.
#
# Under SLURM, one worker per task of the job (the folder must be on a shared file system):
#   sbatch --ntasks 16 --cpus-per-task 4 --requeue deploy/cluster-job.sh \
#       learn patches.zarr --out run --resume
# Elsewhere, N_WORKERS processes on this machine:
#   N_WORKERS=2 deploy/cluster-job.sh learn patches.zarr --out run --resume
#
# With --resume a job that was killed and queued again continues from its last complete iteration.
set -euo pipefail

folder=$(mktemp -d "${DSC_CLUSTER_DIR:-$PWD}/.dsc-cluster-XXXXXX")
file=$folder/scheduler.json
started=()
finish() {
    for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

options=(--scheduler-file "$file" --local-directory "$folder")
if [ -n "${SLURM_JOB_ID:-}" ]; then
    dask scheduler --scheduler-file "$file" --no-dashboard >"$folder/scheduler.log" 2>&1 &
    started+=($!)
    threads=${SLURM_CPUS_PER_TASK:-1}
    srun dask worker "${options[@]}" --nthreads "$threads" --no-dashboard >"$folder/workers.log" 2>&1 &
    started+=($!)
else
    dask scheduler --scheduler-file "$file" --host 127.0.0.1 --port 0 --no-dashboard \
        >"$folder/scheduler.log" 2>&1 &
    started+=($!)
    for _ in $(seq "${N_WORKERS:-2}"); do
        dask worker "${options[@]}" --host 127.0.0.1 --nthreads 1 --no-dashboard \
            >>"$folder/workers.log" 2>&1 &
        started+=($!)
    done
fi
for _ in $(seq 300); do
    [ -s "$file" ] && break
    sleep 0.1
done
case "${1:-} ${2:-}" in
    learn*|encode*|"texture fit"|"texture predict"|"texture evaluate"|"texture sweep")
        dsc "$@" --scheduler "$file" ;;
    *)
        dsc "$@" ;; # it runs in one process
esac

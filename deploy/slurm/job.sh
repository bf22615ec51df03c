#!/usr/bin/env bash
#SBATCH --job-name=dsc
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=2G
#SBATCH --time=02:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@60
#SBATCH --output=dsc-%j.log
#SBATCH --open-mode=append
#
# Run one dsc command on a Dask cluster inside of a SLURM job, one worker per task:
#
#   sbatch --ntasks=16 deploy/slurm/job.sh learn patches.zarr --out run --resume
#
# Submit it from the folder of this repository, or set DSC_DEPLOY to its folder deploy; that, and the
# folder it is submitted from, are on a file system that all nodes see. With --resume a job that was
# killed or out of time continues from its last complete iteration when it is queued again.
# Nodes talk over all their networks, or over the one that DSC_INTERFACE names, such as ib0; a worker
# may use the memory that was asked for (--mem, --mem-per-cpu), or DSC_MEMORY.
# Logs are kept in dsc-logs-JOB. The dashboard listens on loopback of the job's first node:
#   ssh -L 8787:127.0.0.1:8787 -J LOGIN NODE
set -euo pipefail

# Your environment, as your site has it:
# module load python/3.11
# source "$HOME/dsc/.venv/bin/activate"

deploy=${DSC_DEPLOY:-${SLURM_SUBMIT_DIR:-$PWD}/deploy} # sbatch runs a copy of this file
[ -x "$deploy/local/job.sh" ] || { echo "job.sh: $deploy is not the folder deploy: set DSC_DEPLOY" >&2; exit 2; }
export DSC_LOGS=${DSC_LOGS:-$PWD/dsc-logs-${SLURM_JOB_ID:?"submit it with sbatch"}}
export N_THREADS=${SLURM_CPUS_PER_TASK:-1}
# MiB of a worker: of its CPUs (--mem-per-cpu), or its share of the fullest node (--mem)
memory=$((${SLURM_MEM_PER_CPU:-0} * N_THREADS))
if [ "$memory" = 0 ]; then
    tasks=$(tr '(,' ' \n' <<<"${SLURM_TASKS_PER_NODE:-1}" | sort -n | tail -n 1) # as 4(x2),1
    memory=$((${SLURM_MEM_PER_NODE:-0} / ${tasks%% *}))
fi
[ "$memory" = 0 ] || export DSC_MEMORY=${DSC_MEMORY:-${memory}MiB}
# several nodes listen on their networks, with TLS; one node keeps to itself
[ "${SLURM_JOB_NUM_NODES:-1}" = 1 ] || export DSC_HOST=${DSC_HOST-}
export DSC_LAUNCH="srun --cpus-per-task=$N_THREADS --output=$DSC_LOGS/worker-%t.log"
exec "$deploy/local/job.sh" "$@"

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
#
# Everybody in the cluster needs the certificate that is made here for this job, by openssl, in a
# folder that only its owner can read; others are refused. HTTP servers listen on loopback only.
set -euo pipefail
umask 077

command -v openssl >/dev/null || { echo "cluster-job.sh: openssl is needed, install it" >&2; exit 2; }
folder=$(mktemp -d "${DSC_CLUSTER_DIR:-$PWD}/.dsc-cluster-XXXXXX") # mode 0700
file=$folder/scheduler.json
started=()
finish() {
    for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

# one certificate, signed by itself: whoever holds its key belongs to the job
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
    -subj "/CN=dsc-job" -keyout "$folder/key.pem" -out "$folder/cert.pem" 2>"$folder/openssl.log" ||
    { cat "$folder/openssl.log" >&2; exit 2; }
tls=(--tls-ca-file "$folder/cert.pem" --tls-cert "$folder/cert.pem" --tls-key "$folder/key.pem")
quiet=(--no-dashboard --dashboard-address 127.0.0.1:0)
export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true

scheduler=(dask scheduler --protocol tls --port 0 --scheduler-file "$file" "${tls[@]}" "${quiet[@]}")
worker=(dask worker --protocol tls --scheduler-file "$file" --local-directory "$folder" "${tls[@]}" "${quiet[@]}")
if [ -n "${SLURM_JOB_ID:-}" ]; then
    "${scheduler[@]}" >"$folder/scheduler.log" 2>&1 &
    started+=($!)
    srun "${worker[@]}" --nthreads "${SLURM_CPUS_PER_TASK:-1}" >"$folder/workers.log" 2>&1 &
    started+=($!)
else
    "${scheduler[@]}" --host 127.0.0.1 >"$folder/scheduler.log" 2>&1 &
    started+=($!)
    for _ in $(seq "${N_WORKERS:-2}"); do
        "${worker[@]}" --host 127.0.0.1 --nthreads 1 >>"$folder/workers.log" 2>&1 &
        started+=($!)
    done
fi
for _ in $(seq 300); do
    [ -s "$file" ] && break
    sleep 0.1
done
case "${1:-} ${2:-}" in
    learn*|encode*|"texture fit"|"texture predict"|"texture evaluate"|"texture sweep")
        dsc "$@" --scheduler "$file" --tls-ca "$folder/cert.pem" \
            --tls-cert "$folder/cert.pem" --tls-key "$folder/key.pem" ;;
    *)
        dsc "$@" ;; # it runs in one process
esac

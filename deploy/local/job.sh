#!/usr/bin/env bash
# Run one dsc command on a Dask cluster of this machine, which lives as long as the command.
#
#   N_WORKERS=2 deploy/local/job.sh learn patches.zarr --out run --resume
#
# With --resume, what was killed continues from its last complete iteration. The dashboard is at
# http://127.0.0.1:8787, or where scheduler.log says if that port is taken. Variables:
#   N_WORKERS, N_THREADS  worker processes (2), and threads of each (1)
#   DSC_MEMORY            memory of a worker, such as 4GB (auto: its share of the machine)
#   DSC_LOGS              a folder to keep logs in; without one they go with the cluster
#   DSC_CLUSTER_DIR       where the cluster's folder is made, which all its machines see (here)
#   DSC_LAUNCH            words that start the workers, such as srun; then N_WORKERS is not used
#   DSC_HOST              the address to listen at (127.0.0.1); empty: all, for several machines
#   DSC_INTERFACE         instead of that, the network to listen on, such as ib0
set -euo pipefail
umask 077

deploy=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(mktemp -d "${DSC_CLUSTER_DIR:-$PWD}/.dsc-cluster-XXXXXX") # mode 0700
logs=${DSC_LOGS:-$folder}
started=()
# shellcheck disable=SC2329  # the trap calls it
finish() {
    for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

mkdir -p "$logs"
"$deploy/config.sh" "$folder/config"
export DASK_CONFIG=$folder/config
file=$folder/scheduler.json
host=(--host "${DSC_HOST-127.0.0.1}")
[ -n "${host[1]}" ] || host=()
[ -z "${DSC_INTERFACE:-}" ] || host=(--interface "$DSC_INTERFACE")

dask scheduler --protocol tls --port 0 --scheduler-file "$file" "${host[@]}" \
    --dashboard-address 127.0.0.1:8787 >"$logs/scheduler.log" 2>&1 &
started+=($!)
worker=(dask worker --protocol tls --scheduler-file "$file" "${host[@]}" --no-dashboard
    --dashboard-address 127.0.0.1:0 --local-directory "$folder" --nthreads "${N_THREADS:-1}"
    --memory-limit "${DSC_MEMORY:-auto}")
if [ -n "${DSC_LAUNCH:-}" ]; then
    read -ra launch <<<"$DSC_LAUNCH"
    "${launch[@]}" "${worker[@]}" >"$logs/workers.log" 2>&1 &
    started+=($!)
else
    for ((i = 0; i < ${N_WORKERS:-2}; i++)); do
        "${worker[@]}" >"$logs/worker-$i.log" 2>&1 &
        started+=($!)
    done
fi
for _ in {1..300}; do
    [ -s "$file" ] && break
    kill -0 "${started[0]}" 2>/dev/null || { tail "$logs/scheduler.log" >&2; exit 2; }
    sleep 0.1
done

where=(--scheduler "$file")
case "${1:-} ${2:-}" in
    "denoise "* | "encode "* | "features "* | "inpaint "* | "learn "* | "orientation "* | "patches "* | "reconstruct "*) ;;
    "texture evaluate" | "texture fit" | "texture map" | "texture predict" | "texture sweep") ;;
    *) where=() ;; # it runs in one process
esac
dsc "$@" "${where[@]}" &
command=$!
trap 'kill -TERM "$command" 2>/dev/null' TERM INT
code=0
wait "$command" || code=$?
if kill -0 "$command" 2>/dev/null; then # a signal ended the wait, not the command
    code=0
    wait "$command" || code=$?
fi
exit "$code"

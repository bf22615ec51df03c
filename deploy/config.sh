#!/usr/bin/env bash
# Make the folder that DASK_CONFIG names in one cluster: the settings of dask.yaml, and a
# certificate. Whoever can read it belongs to the cluster, so only you can.
#
#   deploy/config.sh FOLDER [PATH]     PATH: where the cluster sees FOLDER, if somewhere else
set -euo pipefail
umask 077

folder=${1:?"config.sh: say which folder to make"}
seen=${2:-$(realpath -m "$folder")}
command -v openssl >/dev/null || { echo "config.sh: openssl is needed, install it" >&2; exit 2; }
mkdir -p "$folder"
if [ -e "$folder/key.pem" ]; then
    echo "config.sh: $folder has a certificate: remove the folder to make another one" >&2
    exit 2
fi
cp "$(dirname "${BASH_SOURCE[0]}")/dask.yaml" "$folder/dask.yaml"
cat >"$folder/tls.yaml" <<EOF
distributed:
  comm:
    tls:
      ca-file: $seen/cert.pem
      scheduler: {cert: $seen/cert.pem, key: $seen/key.pem}
      worker: {cert: $seen/cert.pem, key: $seen/key.pem}
      client: {cert: $seen/cert.pem, key: $seen/key.pem}
EOF
# one certificate, signed by itself: whoever holds its key belongs to the cluster
said=$(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
    -subj "/CN=dsc" -keyout "$folder/key.pem" -out "$folder/cert.pem" 2>&1) ||
    { echo "$said" >&2; exit 2; }

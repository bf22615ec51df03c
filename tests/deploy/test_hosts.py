"""Two hosts: network namespaces joined by a cable, where the machine allows them."""

import json
import re
import stat
import subprocess

import pytest

# the first host runs the script of SLURM, whose `srun` starts a worker on the second
HOSTS = """#!/bin/bash
set -e
ip link set lo up
unshare -n sleep 300 &
export SECOND=$!
trap 'kill $SECOND' EXIT
until [ "$(readlink /proc/$SECOND/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link add first type veth peer name second netns $SECOND
ip address add 10.77.0.1/24 dev first
ip link set first up
ip route add default via 10.77.0.2
on="nsenter --target $SECOND --net"
$on ip link set lo up
$on ip address add 10.77.0.2/24 dev second
$on ip link set second up
$on ip route add default via 10.77.0.1
"$@"
"""
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do [[ $1 == --output=* ]] && logs=${1#*=}; shift; done
exec nsenter --target $SECOND --net "$@" >"${logs/\\%t/0}" 2>&1
"""


@pytest.fixture
def hosts(tmp_path, environment):
    """hosts(words, variables): a command on the first of two hosts."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, program in (("hosts", HOSTS), ("srun", SRUN)):
        (folder / name).write_text(program)
        (folder / name).chmod(stat.S_IRWXU)

    def run(words, **variables):
        return subprocess.run(
            ["unshare", "--map-root-user", "--net", folder / "hosts", *words],
            env={**environment, "PATH": f"{folder}:{environment['PATH']}", **variables},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )

    try:
        tried = run(["ping", "-c", "1", "-W", "2", "10.77.0.2"])
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if tried.returncode and "ping" not in tried.stderr:
        pytest.skip(f"no network namespaces here: {tried.stderr.strip()[:200]}")
    return run


@pytest.mark.soak
def test_slurm_job__spans_two_hosts_with_tls(hosts, made, deploy, small_words, tmp_path):
    words = ["learn", made[0] / "patches.zarr", "--out", tmp_path / "run", *small_words, "--json"]
    done = hosts(
        [deploy / "slurm/job.sh", *words],
        SLURM_JOB_ID="8",
        SLURM_JOB_NUM_NODES="2",
        SLURM_SUBMIT_DIR=str(deploy.parent),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["atoms_sha256"] == made[1]
    logs = tmp_path / "dsc-logs-8"
    worker = (logs / "worker-0.log").read_text()
    assert re.search(r"Start worker at: +tls://10\.77\.0\.2:", worker)
    assert re.search(r"Registered to: +tls://10\.77\.0\.1:", worker)

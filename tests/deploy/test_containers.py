"""What compose and Kubernetes run in containers, run here as processes on loopback.

The command lines are read out of the files. What stands for the network and the file systems of
containers is said in `Here` and nowhere else.
"""

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dsc.dictionary import load_dictionary
from dsc.store import open_store

WORKERS = ("worker-1", "worker-2")


@dataclass
class Here:
    """Names, ports and folders of the containers of one cluster, on this machine."""

    folder: Path
    images: Path
    deploy: Path
    find_port: object
    ports: dict = field(default_factory=dict)

    def word(self, word, container):
        """A word of a command line as it is here."""
        for pattern, here in (
            (r"\$\{[A-Z_]+:-([^}]*)\}", r"\1"),  # compose: what it is if it is not set
            (r"\$\(DASK_WORKER_NAME\)", container),  # set by the operator
            (r"(?<!\S)/(config|data|tmp)\b", rf"{self.folder}/\1"),
            (r"/opt/deploy/", f"{self.deploy}/"),
            (r"(?<!\S)/images\b", str(self.images)),
            (r"\b(dsc-scheduler|scheduler|store):(?=\d)", "127.0.0.1:"),
            (r"(?<!\S)(0\.0\.0\.0)?:(?=\d)", "127.0.0.1:"),
            (r"(?<!\S)0\.0\.0\.0(?!\S)", "127.0.0.1"),
        ):
            word = re.sub(pattern, here, word)
        return re.sub(r"\b(5000|8786|8787)\b", lambda m: self.port(m[1], container), word)

    def words(self, command, container):
        return [self.word(one, container) for one in command]

    def port(self, number, container):
        """Every container has a port 8787 of its own; of the others there is one."""
        key = number, container if number == "8787" else ""
        return self.ports.setdefault(key, str(self.find_port()))


@pytest.fixture(scope="module")
def here(made, deploy, free_port, tmp_path_factory):
    """here(**ports): another cluster on this machine, with the same folders."""
    folder = tmp_path_factory.mktemp("here")
    for name in ("config", "data", "tmp"):
        (folder / name).mkdir()
    return lambda ports: Here(folder, made[0] / "images", deploy, free_port, ports)


@pytest.fixture(scope="module")
def services(documents):
    return documents("docker/compose.yaml")[0]["services"]


@pytest.fixture(scope="module")
def health(deploy):
    """The health check of the image."""
    text = (deploy / "docker" / "Dockerfile").read_text().replace("\\\n", " ")
    return json.loads(re.search(r"HEALTHCHECK.*?CMD (\[.*\])", text)[1])


@pytest.fixture(scope="module")
def image_env(deploy):
    """The variables of the image."""
    text = (deploy / "docker" / "Dockerfile").read_text()
    (line,) = re.findall(r"^ENV (.*)$", text, re.M)
    return dict(pair.split("=", 1) for pair in line.split())


@pytest.fixture(scope="module")
def composed(services, environment, here, health, image_env, processes):
    """The services of compose but the job: (where, their environment)."""
    one = here({})
    given = {n: one.word(v, "store") for n, v in services["job"]["environment"].items()}
    env = {**environment, **given, "DASK_CONFIG": one.word(image_env["DASK_CONFIG"], "")}

    def words(service, container=None):
        return one.words(services[service]["command"], container or service)

    processes.run(words("config"), env)
    processes.start(["python", "-m", "moto.server", *words("store")], env)
    processes.start(words("scheduler"), env)
    for worker in WORKERS:
        processes.start(words("worker", worker), env)
    checks = {"store": services["store"]["healthcheck"]["test"][1:]}
    checks |= dict.fromkeys(("scheduler", *WORKERS), health)
    for container, check in checks.items():
        processes.wait_for(re.search(r"http://[^']+", one.word(check[-1], container))[0])
    processes.run(words("patches"), env)
    return one, env


def test_compose__starts_in_an_order_that_exists(services):
    def before(name):
        for other, how in services[name].get("depends_on", {}).items():
            ends = other in ("config", "patches")
            wanted = "service_completed_successfully" if ends else "service_healthy"
            assert how["condition"] == wanted
            yield other
            yield from before(other)

    assert set(before("job")) == services.keys() - {"job"}


def test_compose__has_no_rights_and_is_open_to_this_machine_only(services):
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    for name in services.keys() - {"store"}:
        assert services[name]["cap_drop"] == ["ALL"]
        assert services[name]["read_only"]


def test_image__health_check_fails_where_nothing_answers(composed, health, processes):
    one, env = composed
    assert processes.start(one.words(health, "scheduler"), env).wait(30) == 0
    assert processes.start(one.words(health, "nobody"), env).wait(30) != 0
    processes.started.pop()


def test_store__health_check_fails_where_nothing_answers(composed, services, here, processes):
    one, env = composed
    check = services["store"]["healthcheck"]["test"]
    assert check[0] == "CMD"
    assert processes.start(one.words(check[1:], "store"), env).wait(30) == 0
    assert processes.start(here({}).words(check[1:], "store"), env).wait(30) != 0
    processes.started.pop()


def test_image__has_a_command_that_helps_with_its_variables(
    deploy, services, here, image_env, environment
):
    text = (deploy / "docker" / "Dockerfile").read_text()
    command = json.loads(re.search(r"^CMD (\[.*\])", text, re.M)[1])
    assert image_env["PATH"] == "/opt/dsc/bin:$PATH"
    assert f"COPY --from=build /opt/dsc {image_env['PATH'].split('/bin:')[0]}" in text
    one = here({})
    own = {name: one.word(value, "") for name, value in image_env.items() if name != "PATH"}
    done = subprocess.run(command, env={**environment, **own}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: dsc")
    program = "import numba, dask; print(numba.config.CACHE_DIR, dask.config.PATH, sep='\\n')"
    words = [sys.executable, "-c", program]
    seen = subprocess.check_output(words, env={**environment, **own}, text=True).splitlines()
    assert seen == [own["NUMBA_CACHE_DIR"], own["DASK_CONFIG"]]
    # the rest of a container is read-only
    mounted = [
        *services["job"]["tmpfs"],
        *(v.split(":")[1] for v in services["job"]["volumes"][:2]),
    ]
    for name in ("NUMBA_CACHE_DIR", "DASK_CONFIG"):
        assert any(Path(image_env[name]).is_relative_to(place) for place in mounted)


def test_compose__learns_with_the_same_bits(composed, services, processes, made, small_words):
    one, env = composed
    words = one.words(services["job"]["command"], "job")
    processes.run([*words, *small_words], env)
    run = Path(words[words.index("--out") + 1])
    assert load_dictionary(str(run)).sha256 == made[1]
    assert_place(run, words[-1], n_threads=len(WORKERS))


def assert_place(run, address, n_threads):
    """The run was learned at a scheduler, with so many threads."""
    lines = map(json.loads, (run / "events.jsonl").read_text(encoding="utf-8").splitlines())
    (start,) = [line for line in lines if "place" in line]
    assert address.startswith("tls://127.0.0.1:")
    assert address in start["place"]
    assert f"({n_threads} threads)" in start["place"]


def test_compose__has_the_patches_in_the_store(composed, monkeypatch, made, forget_s3):
    forget_s3()
    for name, value in composed[1].items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    there = open_store("s3://dsc/patches.zarr")
    assert there.attributes == open_store(str(made[0] / "patches.zarr")).attributes
    forget_s3()


def probes(one, container, name):
    """Where Kubernetes asks whether a container is ready, and whether it lives."""
    ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
    for kind in ("readinessProbe", "livenessProbe"):
        if kind in container:
            probe = container[kind]["httpGet"]
            yield f"http://127.0.0.1:{one.port(ports[probe['port']], name)}{probe['path']}"


@pytest.fixture(scope="module")
def kubernetes(documents, composed, here, processes):
    """The cluster of the manifest, at the store of compose: (where, environment, dashboard)."""
    spec = documents("kubernetes/cluster.yaml")[0]["spec"]
    one = here({("5000", ""): composed[0].port("5000", "")})
    roles = {name: spec[name]["spec"]["containers"][0] for name in ("scheduler", "worker")}
    given = {entry["name"]: entry["value"] for entry in roles["scheduler"]["env"]}
    processes.start(one.words(roles["scheduler"]["args"], "scheduler"), composed[1] | given)
    processes.start(one.words(roles["worker"]["args"], "worker-1"), composed[1])
    for name, container in roles.items():
        for address in probes(one, container, "worker-1" if name == "worker" else name):
            processes.wait_for(address)
    return one, composed[1], f"http://127.0.0.1:{one.port('8787', 'scheduler')}"


def test_kubernetes__asks_the_scheduler_whether_it_lives(kubernetes, documents):
    scheduler = documents("kubernetes/cluster.yaml")[0]["spec"]["scheduler"]["spec"]
    addresses = list(probes(kubernetes[0], scheduler["containers"][0], "scheduler"))
    assert len(addresses) == 2
    for address in addresses:
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert answer.read() == b"ok"
        nobody = address.replace(kubernetes[0].port("8787", "scheduler"), "1")
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(nobody, timeout=10)


def test_kubernetes__cuts_the_patches_with_the_same_bits(kubernetes, documents, processes, made):
    one, env, _ = kubernetes
    spec = documents("kubernetes/patches.yaml")[1]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    words = one.words(container["args"], "patches")
    place = str(one.folder / "again.zarr")  # the compose file has cut those of the store
    words[-1] = words[-1].replace("s3://dsc/patches.zarr", place)
    for _ in range(2):  # a pod that is started again finds them
        processes.run(words, env)
    assert open_store(place).attributes == open_store(str(made[0] / "patches.zarr")).attributes


def test_kubernetes__learns_with_the_same_bits(
    kubernetes, documents, processes, made, small_words, tmp_path
):
    one, env, _ = kubernetes
    job = documents("kubernetes/job.yaml")[1]["spec"]["template"]["spec"]["containers"][0]
    words = one.words(job["args"], "job")
    words[words.index("--out") + 1] = str(tmp_path / "run")  # compose has one there already
    processes.run([*words, *small_words], env)
    assert load_dictionary(str(tmp_path / "run")).sha256 == made[1]
    assert_place(tmp_path / "run", words[-1], n_threads=2)


def test_kubernetes__answers_what_the_operator_asks_without_a_certificate(kubernetes):
    """As `get_desired_workers` and `retire_workers` of its controller do."""
    dashboard = kubernetes[2]
    with urllib.request.urlopen(f"{dashboard}/api/v1/adaptive_target", timeout=10) as answer:
        assert json.load(answer)["workers"] >= 0
    with urllib.request.urlopen(f"{dashboard}/api/v1/get_workers", timeout=10) as answer:
        assert [one["name"] for one in json.load(answer)["workers"]] == ["worker-1"]


def test_dashboard__has_the_pages_of_dsc(kubernetes):
    with urllib.request.urlopen(f"{kubernetes[2]}/individual-dsc-error", timeout=10) as answer:
        assert answer.status == 200


def test_kubernetes__retires_a_worker_as_the_operator_asks(kubernetes, documents, processes):
    """As `retire_workers` of its controller does, before it removes the pod. It goes last."""
    one, env, dashboard = kubernetes
    spec = documents("kubernetes/cluster.yaml")[0]["spec"]["worker"]["spec"]
    processes.start(one.words(spec["containers"][0]["args"], "worker-2"), env)
    for address in probes(one, spec["containers"][0], "worker-2"):
        processes.wait_for(address)

    def names():
        with urllib.request.urlopen(f"{dashboard}/api/v1/get_workers", timeout=10) as answer:
            return sorted(one["name"] for one in json.load(answer)["workers"])

    deadline = time.monotonic() + 30
    while names() != ["worker-1", "worker-2"] and time.monotonic() < deadline:
        time.sleep(0.1)
    request = urllib.request.Request(
        f"{dashboard}/api/v1/retire_workers",
        data=json.dumps({"n": 1}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        (retired,) = [one["name"] for one in json.load(answer).values()]
    assert names() == [name for name in ("worker-1", "worker-2") if name != retired]

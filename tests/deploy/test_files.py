"""The files of `deploy/` as they stand: known settings, valid manifests, clean scripts."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import dask
import distributed
import jsonschema
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CRDS = Path(__file__).parent / "crds"  # of dask-kubernetes 2026.3.0, see its LICENSE there
POD = ("properties", "spec", "properties", "worker", "properties", "spec")  # schema of a pod


def tool(name):
    """A linter of the extra `test`."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    return found or pytest.skip(f"{name} is not installed: pip install -e '.[test]'")


def test_scripts__are_clean():
    scripts = sorted(str(path) for path in DEPLOY.rglob("*.sh"))
    assert len(scripts) >= 3
    done = subprocess.run([tool("shellcheck"), *scripts], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_dockerfile__is_clean():
    words = [tool("hadolint"), "--failure-threshold", "style", str(DEPLOY / "docker/Dockerfile")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_dockerfile__copies_what_is_there_and_not_ignored():
    text = (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8")
    kept = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.M)
    copied = [w for line in re.findall(r"^COPY (?!--)(.+) \S+$", text, re.M) for w in line.split()]
    assert len(copied) >= 7
    assert set(copied) == set(kept)
    assert all((ROOT / path).exists() for path in copied)


def leaves(tree, names=()):
    for name, value in tree.items():
        if isinstance(value, dict) and name != "pre-spawn-environ":
            yield from leaves(value, (*names, name))
        else:
            yield ".".join((*names, name)), value


def test_settings__are_known_to_dask_and_change_something():
    own = dict(leaves(yaml.safe_load((DEPLOY / "dask.yaml").read_text())["distributed"]))
    defaults = Path(distributed.__file__).parent / "distributed.yaml"
    known = dict(leaves(yaml.safe_load(defaults.read_text())["distributed"]))
    assert own
    for name, value in own.items():
        assert name in known, name
        assert value != known[name] or name.endswith("terminate"), name


def test_settings__of_jobqueue_are_known_to_it():
    jobqueue = pytest.importorskip("dask_jobqueue")
    own = yaml.safe_load((DEPLOY / "dask.yaml").read_text())["jobqueue"]["slurm"]
    defaults = Path(jobqueue.__file__).parent / "jobqueue.yaml"
    assert own.keys() <= yaml.safe_load(defaults.read_text())["jobqueue"]["slurm"].keys()


def strict(schema):
    """The same schema, in which an object has no properties but those that are listed."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
        made["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
        made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    return made


def schema_of(kind):
    """The schema that the operator gives to the cluster."""
    definition = yaml.safe_load((CRDS / f"{kind.lower()}.yaml").read_text(encoding="utf-8"))
    (version,) = definition["spec"]["versions"]
    return definition["spec"]["group"], version["name"], version["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize("name", ["cluster", "autoscaler"])
def test_manifest__is_what_the_operator_takes(name, documents):
    (document,) = [d for d in documents(f"kubernetes/{name}.yaml") if "dask" in d["apiVersion"]]
    group, version, schema = schema_of(document["kind"])
    assert document.pop("apiVersion") == f"{group}/{version}"
    document.pop("kind"), document.pop("metadata")
    jsonschema.validate(document, strict(schema))
    some = next(iter(document["spec"]))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"spec": document["spec"] | {some: []}}, strict(schema))


@pytest.mark.parametrize("name", ["job", "patches"])
def test_manifest__of_a_job_has_a_pod_as_kubernetes_takes_it(documents, name):
    schema = schema_of("DaskCluster")[2]
    for part in POD:
        schema = schema[part]
    pod = documents(f"kubernetes/{name}.yaml")[1]["spec"]["template"]["spec"]
    jsonschema.validate(pod, strict(schema))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**pod, "volume": []}, strict(schema))


def test_manifests__agree_on_names(documents):
    cluster, policy = documents("kubernetes/cluster.yaml")
    claim, job = documents("kubernetes/job.yaml")
    (scaler,) = documents("kubernetes/autoscaler.yaml")
    name = cluster["metadata"]["name"]
    assert scaler["spec"]["cluster"] == name
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    scheduler, worker = (cluster["spec"][role]["spec"] for role in ("scheduler", "worker"))
    runner = job["spec"]["template"]["spec"]
    address = f"tls://{name}-scheduler:8786"
    assert address in worker["containers"][0]["args"]
    assert address in runner["containers"][0]["args"]
    assert claim["metadata"]["name"] in str(runner["volumes"])
    images, cutting = documents("kubernetes/patches.yaml")
    cutter = cutting["spec"]["template"]["spec"]
    assert images["metadata"]["name"] in str(cutter["volumes"])
    assert f"--out {runner['containers'][0]['args'][2]}" in cutter["containers"][0]["args"][-1]
    for pod in (scheduler, worker, runner, cutter):
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["containers"][0]["resources"]["limits"]["memory"]
    for pod in (scheduler, worker, runner):
        assert {"name": "config", "mountPath": "/config", "readOnly": True} in (
            pod["containers"][0]["volumeMounts"]
        )


def test_policy__lets_in_the_cluster_and_the_operator_alone(documents):
    cluster, policy = documents("kubernetes/cluster.yaml")
    own, operator = policy["spec"]["ingress"]
    labels = {"dask.org/cluster-name": cluster["metadata"]["name"]}
    assert own == {"from": [{"podSelector": {"matchLabels": labels}}]}
    assert operator.pop("ports") == [{"port": 8787}]
    text = (DEPLOY / "kubernetes/cluster.yaml").read_text(encoding="utf-8")
    namespace = re.search(r"helm install .* --namespace (\S+) --create-namespace", text)[1]
    wanted = {"kubernetes.io/metadata.name": namespace}
    assert operator == {"from": [{"namespaceSelector": {"matchLabels": wanted}}]}


def test_lock__has_what_the_package_needs_and_hashes_only():
    text = (DEPLOY / "docker" / "requirements.lock").read_text(encoding="utf-8")
    entries = re.findall(
        r"^([a-zA-Z0-9._-]+)==(\S+) \\\n((?:    --hash=\S+(?: \\)?\n)+)", text, re.M
    )
    locked = {canonicalize_name(name): version for name, version, _ in entries}
    assert len(entries) == len(re.findall(r"^[a-zA-Z0-9]", text, re.M))  # nothing without hashes
    assert not re.search(r"^\s*--(?!hash)|^[^#]*://", text, re.M)  # nor from anywhere else
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for line in [*project["dependencies"], *extras["s3"], *extras["dashboard"]]:
        wanted = Requirement(line)
        assert locked[canonicalize_name(wanted.name)] in wanted.specifier, line


def test_documents__name_files_that_are_there():
    for path in DEPLOY.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        named = re.findall(r"`((?:local|slurm|docker|kubernetes|tests)/[\w./-]+)", text)
        for name in named:
            assert (DEPLOY / name).exists() or (ROOT / name).exists(), f"{path.name}: {name}"


def test_settings__are_read_from_the_folder_that_config_makes(tmp_path):
    subprocess.run([DEPLOY / "config.sh", tmp_path / "c"], check=True, capture_output=True)
    found = dask.config.collect([str(tmp_path / "c")], env={})["distributed"]["comm"]
    assert found["require-encryption"] is True
    files = {found["tls"]["ca-file"], *found["tls"]["worker"].values()}
    assert {Path(path).name for path in files} == {"cert.pem", "key.pem"}
    assert all(Path(path).is_file() for path in files)

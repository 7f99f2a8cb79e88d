"""What stands in deploy/ is held against the schemas of whoever will read it."""

import ast
import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

from ethnos import society as societies
from ethnos.meters import METERS
from tests.docs.pages import ROOT

DEPLOY = ROOT / "deploy"
KUBERNETES = "1.33"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
RAY_CLUSTER = {"rayVersion", "enableInTreeAutoscaling", "autoscalerOptions", "headGroupSpec", "workerGroupSpecs",
               "headServiceAnnotations", "suspend", "managedBy", "gcsFaultToleranceOptions", "authOptions"}  # fmt: skip
RAY_JOB = {"entrypoint", "runtimeEnvYAML", "backoffLimit", "activeDeadlineSeconds", "shutdownAfterJobFinishes",
           "ttlSecondsAfterFinished", "submissionMode", "suspend", "rayClusterSpec", "submitterPodTemplate",
           "submitterConfig", "jobId", "metadata", "clusterSelector", "managedBy", "deletionStrategy",
           "entrypointNumCpus", "entrypointNumGpus", "entrypointResources"}  # fmt: skip
HEAD = {"rayStartParams", "template", "serviceType", "enableIngress", "headService", "resources", "labels"}
WORKERS = {"groupName", "replicas", "minReplicas", "maxReplicas", "numOfHosts", "idleTimeoutSeconds", "suspend",
           "rayStartParams", "template", "scaleStrategy", "resources", "labels"}  # fmt: skip
"""The fields that KubeRay's API reference names (ray.io/v1, operator 1.5)."""


def objects() -> list[dict[str, Any]]:
    return [o for path in MANIFESTS for o in yaml.safe_load_all(path.read_text("utf-8"))]


def templates() -> list[dict[str, Any]]:
    """Every pod template."""
    clusters = [c for o in objects() if (c := cluster_of(o))]
    return [g["template"] for c in clusters for g in (c["headGroupSpec"], *c["workerGroupSpecs"])]


def cluster_of(thing: dict[str, Any]) -> dict[str, Any] | None:
    spec = thing.get("spec", {})
    return {"RayCluster": spec, "RayJob": spec.get("rayClusterSpec")}.get(thing["kind"])


@pytest.mark.parametrize("thing", [o for o in objects() if "ray.io" not in o["apiVersion"]], ids=lambda o: o["kind"])
def test_core_objects_of_kubernetes(thing: dict[str, Any]) -> None:
    kubernetes_validate.validate(thing, KUBERNETES, strict=True)


@pytest.mark.parametrize("number", range(len(templates())))
def test_pod_templates(number: int) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", **templates()[number]}
    pod["metadata"]["name"] = "pod"
    kubernetes_validate.validate(pod, KUBERNETES, strict=True)
    security = pod["spec"]["securityContext"]
    assert security["runAsNonRoot"]
    assert security["runAsUser"] == 1000
    names = {v["name"] for v in pod["spec"]["volumes"]}
    for container in pod["spec"]["containers"]:
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        assert container["resources"]["limits"]
        assert ":latest" not in container["image"]
        assert {m["name"] for m in container["volumeMounts"]} <= names


def test_the_check_of_pods_sees_a_slip() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": {"containers": [{"nmae": "a"}]}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


def test_objects_of_kuberay() -> None:
    rays = [o for o in objects() if o["apiVersion"] == "ray.io/v1"]
    assert {o["kind"] for o in rays} == {"RayJob", "RayCluster"}
    for thing in rays:
        if thing["kind"] == "RayJob":
            assert set(thing["spec"]) <= RAY_JOB
        cluster = cluster_of(thing)
        assert cluster is not None
        assert set(cluster) <= RAY_CLUSTER
        assert set(cluster["headGroupSpec"]) <= HEAD
        for group in cluster["workerGroupSpecs"]:
            assert set(group) <= WORKERS
            assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
        params = [g["rayStartParams"] for g in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]
        assert all(isinstance(v, str) for p in params for v in p.values()), "KubeRay takes texts"


def test_the_network_policy_fits_the_pods() -> None:
    (policy,) = [o for o in objects() if o["kind"] == "NetworkPolicy"]
    chosen = policy["spec"]["podSelector"]["matchLabels"]
    assert all(chosen.items() <= t["metadata"]["labels"].items() for t in templates())


def test_the_society_in_the_job_is_one() -> None:
    (config,) = [o for o in objects() if o["kind"] == "ConfigMap"]
    societies.parse(config["data"]["society.yaml"])
    (job,) = [o for o in objects() if o["kind"] == "RayJob"]
    done = subprocess.run(["bash", "-n", "-c", job["spec"]["entrypoint"]], capture_output=True, timeout=20)
    assert done.returncode == 0, done.stderr.decode()


def test_versions_agree() -> None:
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line)
    assert {c["rayVersion"] for o in objects() if (c := cluster_of(o))} == {pinned["ray"]}


def test_compose() -> None:
    import check_jsonschema

    vendor = Path(check_jsonschema.__file__).parent / "builtin_schemas" / "vendor"
    schema = json.loads((vendor / "compose-spec.json").read_text("utf-8"))
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    jsonschema.validate(compose, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**compose, "servcies": {}}, schema)
    assert not any("ports" in s for s in compose["services"].values()), "nothing is offered to the outside"


def test_ray_launcher() -> None:
    config = yaml.safe_load((DEPLOY / "ray" / "cluster.yaml").read_text("utf-8"))
    validate_config(prepare_config(config))
    with pytest.raises(jsonschema.ValidationError):
        validate_config({**config, "workers": 3})


def scripts() -> list[Path]:
    found = [p for folder in ("scripts", "deploy", ".ci") for p in (ROOT / folder).rglob("*") if p.is_file()]
    return [p for p in found if p.read_bytes()[:40].startswith((b"#!/usr/bin/env bash", b"#!/bin/bash"))]


@pytest.mark.parametrize("script", scripts(), ids=lambda p: p.name)
def test_shell_scripts_are_whole(script: Path) -> None:
    done = subprocess.run(["bash", "-n", str(script)], capture_output=True, timeout=20)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("script", scripts(), ids=lambda p: p.name)
def test_shell_scripts_are_sound(script: Path) -> None:
    done = subprocess.run(["shellcheck", "-x", str(script)], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stdout.decode()


IMAGES = sorted((DEPLOY / "images").glob("*.Dockerfile"))


def instructions(path: Path) -> list[tuple[str, str]]:
    """Instructions of a container file with their arguments, comments and line breaks taken out."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(w[0], w[1]) for line in joined.splitlines() if (w := line.split(None, 1))]


@pytest.mark.parametrize("path", IMAGES, ids=lambda p: p.name)
def test_images(path: Path) -> None:
    said = instructions(path)
    bases = [a.split()[0] for i, a in said if i == "FROM"]
    assert len(bases) >= 2, "what builds is not what runs"
    assert all(b.startswith("${") or re.search(r":[\w.-]*\d", b) for b in bases), "each base has its version"
    assert [a for i, a in said if i == "USER"][-1] == "1000:1000"
    stages = {a.split(" AS ")[1].strip() for i, a in said if i == "FROM" and " AS " in a}
    for _, arguments in [x for x in said if x[0] == "COPY"]:
        words = arguments.split()
        if words[0].startswith("--from="):
            assert words[0].removeprefix("--from=") in stages
        else:
            assert all((ROOT / w).exists() or w == "dashboard" for w in words[:-1])
    for _, command in [x for x in said if x[0] == "RUN"]:
        assert subprocess.run(["bash", "-n", "-c", command], timeout=20).returncode == 0


def test_what_the_image_installs_is_pinned() -> None:
    """The list that the image makes of pyproject.toml, made here."""
    (line,) = [a for i, a in instructions(DEPLOY / "images" / "cpu.Dockerfile") if i == "RUN" and "tomllib" in a]
    code = line.split('python -c "', 1)[1].split('" > wanted.txt', 1)[0]
    ast.parse(code)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=30)
    wanted = [re.split(r"[<>=!\[ ]", w)[0].lower() for w in done.stdout.decode().split("\n") if w]
    lines = (ROOT / "constraints.txt").read_text().split()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    assert len(wanted) > 15
    assert not [w for w in wanted if w.replace("_", "-") not in pinned]


def expressions() -> list[str]:
    alerts = yaml.safe_load((DEPLOY / "observability" / "alerts.yaml").read_text("utf-8"))
    board = json.loads((DEPLOY / "observability" / "grafana.json").read_text("utf-8"))
    return [
        *(r["expr"] for g in alerts["groups"] for r in g["rules"]),
        *(t["expr"] for p in board["panels"] for t in p["targets"]),
    ]


def test_alerts_and_dashboard_ask_for_what_is_measured() -> None:
    asked = set[str]()
    for expr in expressions():
        names = re.findall(r"ray_(ethnos_\w+)", expr)
        assert names, expr
        for name in names:
            plain = name.removesuffix("_bucket")
            assert METERS[plain].sort == ("histogram" if name != plain else METERS[plain].sort) and plain in METERS
            assert (METERS[plain].sort == "histogram") == (name != plain)
            asked.add(plain)
        assert expr.count("(") == expr.count(")")
        assert expr.count("{") == expr.count("}")
    assert asked == set(METERS), "what is measured is shown"


def test_the_dashboard_is_current() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "dashboard-json"))["dashboard"]()
    assert made == json.loads((DEPLOY / "observability" / "grafana.json").read_bytes())

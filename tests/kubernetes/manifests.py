# SPDX-License-Identifier: MIT
"""Reads the manifests of packaging/kubernetes, and says what is wrong with them.

manifests.py check DIRECTORY...     against the typed models of the API (package python3-kubernetes),
                                    and against each other; a line for each mistake, status 1
manifests.py unpack DIRECTORY TARGET
    writes for each container TARGET/NAME/: mounts (a line each: path in the container, path on the
    host, configMap:NAME or "-", ro or rw), command (a line for each word), capabilities, user and
    environment; for each ConfigMap its files in TARGET/configMap:NAME/; for the CDI specification
    TARGET/cdi/mounts
"""
import datetime
import json
import os
import re
import sys

import yaml

mistakes = []


def mistake(where, text):
    mistakes.append(f"{where}: {text}")


class Loader(yaml.SafeLoader):
    """YAML in which a key that is there twice is a mistake."""


def mapping(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    for key in keys:
        if keys.count(key) > 1:
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: the key {key} is there twice")
    return loader.construct_mapping(node, deep=True)


Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)


def read(directory):
    """All documents: {file name: [document...]}"""
    found = {}
    for name in sorted(os.listdir(directory)):
        if name.endswith(".yaml"):
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                try:
                    found[name] = list(yaml.load_all(file, Loader))
                except yaml.YAMLError as error:
                    mistake(name, error)
                    found[name] = []
    return found


# ---- one object against the models of the API

PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "datetime": datetime.datetime}
# What the models call an object is an integer or a text in these.
QUANTITY = re.compile(r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$")


def follow(where, value, kind):
    from kubernetes.client import models

    if value is None:
        return mistake(where, "there is no value")
    if kind.startswith("list["):
        if not isinstance(value, list):
            return mistake(where, "expected a list")
        for number, part in enumerate(value):
            follow(f"{where}[{number}]", part, kind[5:-1])
    elif kind.startswith("dict("):
        if not isinstance(value, dict):
            return mistake(where, "expected a mapping")
        for key, part in value.items():
            if not isinstance(key, str):
                mistake(where, f"the key {key} is no text")
            follow(f"{where}.{key}", part, kind[5:-1].split(", ", 1)[1])
            if re.search(r"\.(limits|requests)$", where) and not QUANTITY.match(str(part)):
                mistake(f"{where}.{key}", f"{part} is no quantity")
    elif kind in PLAIN:
        if not isinstance(value, PLAIN[kind]) or (kind != "bool" and isinstance(value, bool)):
            mistake(where, f"{value!r}: expected {kind}")
    elif kind == "object":
        if not isinstance(value, (int, str)) or isinstance(value, bool):
            mistake(where, f"{value!r}: expected a number or a text")
    else:
        model(where, value, getattr(models, kind))


def model(where, value, cls):
    if not isinstance(value, dict):
        return mistake(where, f"expected an object with the fields of {cls.__name__}")
    fields = {name: field for field, name in cls.attribute_map.items()}
    for key, part in value.items():
        if key in fields:
            follow(f"{where}.{key}", part, cls.openapi_types[fields[key]])
        else:
            mistake(where, f"{cls.__name__} has no field {key}")
    # The models know which fields must be there.
    try:
        cls(**{fields[key]: part for key, part in value.items() if key in fields})
    except (ValueError, TypeError) as error:
        mistake(where, error)


def check_object(name, document):
    from kubernetes.client import models

    if not isinstance(document, dict):
        return mistake(name, "expected an object")
    group, _, version = str(document.get("apiVersion")).rpartition("/")
    kind = str(document.get("kind"))
    where = f"{name}: {kind}"
    if (group, kind) == ("kustomize.config.k8s.io", "Kustomization"):
        for key in document.keys() - {"apiVersion", "kind", "resources", "images"}:
            mistake(where, f"unknown field {key}")
        return
    known = {"": {"Namespace", "ServiceAccount", "ConfigMap", "Pod"}, "apps": {"DaemonSet"}}
    if version != "v1" or kind not in known.get(group, set()):
        return mistake(where, f"unknown apiVersion or kind: {document.get('apiVersion')} {kind}")
    model(where, document, getattr(models, f"V1{kind}"))
    metadata = document.get("metadata") or {}
    if not re.match(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", str(metadata.get("name"))):
        mistake(where, f"metadata.name: {metadata.get('name')} is no name")


# ---- a pod by itself

MODES = {"DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice"}


def check_pod(where, pod):
    volumes = [volume.get("name") for volume in pod.get("volumes", [])]
    used = set()
    containers = pod.get("initContainers", []) + pod.get("containers", [])
    for volume in pod.get("volumes", []):
        if volumes.count(volume.get("name")) > 1:
            mistake(where, f"the volume {volume.get('name')} is there twice")
        if "hostPath" in volume and volume["hostPath"].get("type") not in MODES:
            mistake(where, f"volume {volume.get('name')}: hostPath.type: expected one of {sorted(MODES)}")
    for container in containers:
        here = f"{where}: container {container.get('name')}"
        for mount in container.get("volumeMounts", []):
            used.add(mount.get("name"))
            if mount.get("name") not in volumes:
                mistake(here, f"there is no volume {mount.get('name')}")
        security = container.get("securityContext", {})
        if security.get("privileged"):
            mistake(here, "it is privileged")
        if security.get("readOnlyRootFilesystem") is not True:
            mistake(here, "its root file system can be written")
        if security.get("capabilities", {}).get("drop") != ["ALL"]:
            mistake(here, "it does not drop all capabilities")
        added = security.get("capabilities", {}).get("add", [])
        if "SYS_ADMIN" in added:
            if "allowPrivilegeEscalation" in security:
                mistake(here, "the API refuses allowPrivilegeEscalation: false beside SYS_ADMIN")
        elif security.get("allowPrivilegeEscalation") is not False:
            mistake(here, "allowPrivilegeEscalation is not false")
    for name in set(volumes) - used:
        mistake(where, f"nothing mounts the volume {name}")
    if pod.get("automountServiceAccountToken") is not False:
        mistake(where, "it gets a token of the API")


# ---- all of them together

UNITS = {"collector": "collector_server", "monitor": "rdma_monitor", "dashboard": "rdma_dashboard"}


def find(found, kind):
    return [document for documents in found.values() for document in documents
            if isinstance(document, dict) and document.get("kind") == kind]


def unit_capabilities(program):
    with open(f"packaging/{program}.service", encoding="utf-8") as file:
        line = re.search(r"^CapabilityBoundingSet=(.*)$", file.read(), re.M).group(1)
    return sorted(name.removeprefix("CAP_") for name in line.split())


def check_all(found):
    daemons = find(found, "DaemonSet")
    if len(daemons) != 1:
        return mistake("all", "expected one DaemonSet")
    daemon = daemons[0]["spec"]
    pod = daemon["template"]["spec"]
    labels = daemon["template"]["metadata"].get("labels", {})
    if not daemon["selector"].get("matchLabels", {}).items() <= labels.items():
        mistake("DaemonSet", "its selector does not choose its own pods")
    namespace = find(found, "Namespace")[0]["metadata"]["name"]
    configs = {}
    for document in find(found, "ConfigMap") + find(found, "ServiceAccount") + daemons:
        if document["metadata"].get("namespace") != namespace:
            mistake(document["kind"], f"it is not in the namespace {namespace}")
        if document["kind"] == "ConfigMap":
            configs[document["metadata"]["name"]] = document["data"]
    for volume in pod["volumes"]:
        if "configMap" in volume and volume["configMap"]["name"] not in configs:
            mistake("DaemonSet", f"there is no ConfigMap {volume['configMap']['name']}")
    accounts = [document["metadata"]["name"] for document in find(found, "ServiceAccount")]
    if pod.get("serviceAccountName") not in accounts:
        mistake("DaemonSet", "there is no such ServiceAccount")
    if pod.get("hostPID") is not True:
        mistake("DaemonSet", "it does not see the pids of the node")
    # What the units of systemd get.
    names = [container["name"] for container in pod["containers"]]
    if sorted(names) != sorted(UNITS):
        mistake("DaemonSet", f"expected the containers {sorted(UNITS)}")
    for container in pod["containers"]:
        added = sorted(container["securityContext"]["capabilities"].get("add", []))
        if added != unit_capabilities(UNITS[container["name"]]):
            mistake(f"container {container['name']}",
                    f"capabilities {added}: its unit has {unit_capabilities(UNITS[container['name']])}")
    resources = find(found, "Kustomization")[0]["resources"]
    others = {"kustomization.yaml", "example-pod.yaml"}
    if sorted(resources) != sorted(set(found) - others):
        mistake("kustomization.yaml", f"resources: expected {sorted(set(found) - others)}")
    check_cdi(json.loads(cdi(found)), pod)


CDI_FIELDS = {
    "": {"cdiVersion", "kind", "devices", "containerEdits", "annotations"},
    "device": {"name", "containerEdits", "annotations"},
    "containerEdits": {"env", "deviceNodes", "mounts", "hooks"},
    "mount": {"hostPath", "containerPath", "options", "type"},
}


def cdi_fields(what, value):
    for key in value.keys() - CDI_FIELDS[what]:
        mistake("CDI", f"{what or 'the specification'} has no field {key}")


def check_cdi(specification, pod):
    made = {volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    cdi_fields("", specification)
    if not re.match(r"^[a-zA-Z][\w.-]*[a-zA-Z0-9]/[a-zA-Z][\w-]*[a-zA-Z0-9]$", specification["kind"]):
        mistake("CDI", f"kind: {specification['kind']} is no kind")
    for device in specification["devices"]:
        cdi_fields("device", device)
        cdi_fields("containerEdits", device["containerEdits"])
        for mount in device["containerEdits"]["mounts"]:
            cdi_fields("mount", mount)
            if not any(mount["hostPath"] == path or mount["hostPath"].startswith(path + "/") for path in made):
                mistake("CDI", f"the DaemonSet does not make {mount['hostPath']}")


# ---- what other tests run

def config(found, name):
    for document in find(found, "ConfigMap"):
        if document["metadata"]["name"] == name:
            return document["data"]
    sys.exit(f"manifests.py: no ConfigMap {name}")


def cdi(found):
    return config(found, "rdma-intercept-cdi")["rdma_intercept-library.json"]


def write(directory, name, lines):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))


def unpack_pod(pod, target):
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for container in pod.get("initContainers", []) + pod["containers"]:
        directory = os.path.join(target, container["name"])
        lines = []
        for mount in container["volumeMounts"]:
            volume = volumes[mount["name"]]
            host = volume.get("hostPath", {}).get("path", "-")
            if "configMap" in volume:
                host = "configMap:" + volume["configMap"]["name"]
            lines.append(" ".join((mount["mountPath"], host, "ro" if mount.get("readOnly") else "rw")))
        security = container["securityContext"]
        write(directory, "mounts", lines)
        write(directory, "command", [word.replace("\n", " \x01 ") for word in container["command"]])
        write(directory, "capabilities", security["capabilities"].get("add", []))
        write(directory, "user", [str(security["runAsUser"])])
        write(directory, "environment", [f"{each['name']}={each['value']}" for each in container.get("env", [])
                                         if "value" in each])


def unpack(found, target):
    for kind in ("DaemonSet", "Pod"):
        for document in find(found, kind):
            spec = document["spec"]
            unpack_pod(spec["template"]["spec"] if kind == "DaemonSet" else spec, target)
    for document in find(found, "ConfigMap"):
        for name, text in document["data"].items():
            write(os.path.join(target, "configMap:" + document["metadata"]["name"]), name, [text.rstrip("\n")])
    edits = json.loads(cdi(found))["devices"][0]["containerEdits"]["mounts"]
    write(os.path.join(target, "cdi"), "mounts",
          [f"{mount['containerPath']} {mount['hostPath']} {mount['options'][0]}" for mount in edits])


def check(directory):
    mistakes.clear()
    found = read(directory)
    for file, documents in found.items():
        for document in documents:
            check_object(file, document)
    if not mistakes:
        for document in find(found, "Pod"):
            check_pod(document["metadata"]["name"], document["spec"])
        for document in find(found, "DaemonSet"):
            check_pod("DaemonSet", document["spec"]["template"]["spec"])
        check_all(found)
    for text in mistakes:
        print(f"{directory}: {text}")
    return bool(mistakes)


def main(what, directory, *names):
    if what == "check":
        return max([check(each) for each in (directory, *names)])
    if what == "unpack":
        unpack(read(directory), *names)
        return 0
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

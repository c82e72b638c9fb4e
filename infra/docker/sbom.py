"""Prints the Python packages, Debian packages and jars of an image as CycloneDX. Usage: `sbom.py IMAGE`."""

import json
import subprocess
import sys
from typing import Any, Final
from urllib.parse import quote

INSIDE: Final = r"""
import importlib.metadata, json, os, platform, re, zipfile
found = [("generic", "", "python", platform.python_version())]
found += [("pypi", "", re.sub("[-_.]+", "-", package.metadata["Name"]).lower(), package.version)
          for package in importlib.metadata.distributions()]
with open("/var/lib/dpkg/status") as status:
    for block in status.read().split("\n\n"):
        fields = dict(re.findall(r"^(Package|Status|Version): (.+)$", block, re.M))
        if fields.get("Status", "").endswith(" installed"):
            found.append(("deb", "debian", fields["Package"], fields["Version"]))
for folder, _, names in os.walk("/opt"):
    for name in (file for file in names if file.endswith(".jar")):
        of_maven = re.compile(r"META-INF/maven/([^/]+)/([^/]+)/pom\.properties")
        with zipfile.ZipFile(os.path.join(folder, name)) as jar:
            known = [made.groups() for entry in jar.namelist() if (made := of_maven.fullmatch(entry))]
        named = [("", ""), *(pair for pair in known if name.startswith(pair[1] + "-"))]
        group, artifact = max(named, key=lambda pair: len(pair[1]))
        artifact = artifact or re.match(r"(.+?)(?=-\d|\.jar)", name)[1]
        found.append(("maven", group, artifact, name[len(artifact) + 1 : -len(".jar")]))
print(json.dumps(sorted(set(found))))
"""


class ImageError(Exception):
    """The image cannot be inspected. The message is one sentence with the remedy."""


def list_packages(image: str) -> list[tuple[str, str, str, str]]:
    """Return (kind, namespace, name, version) of each package. Kinds are those of package URLs. Raises ImageError."""
    command = ["docker", "run", "--rm", "--network", "none", "--pull", "never", image, "python", "-c", INSIDE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    except FileNotFoundError as missing:
        raise ImageError("docker is not installed; install Docker Engine") from missing
    except subprocess.TimeoutExpired as error:
        raise ImageError(f"{image}: no answer within {error.timeout:.0f} s; check `docker info`") from error
    if done.returncode:
        error = (done.stderr.strip().splitlines() or [f"exit status {done.returncode} without a message"])[0]
        hint = "; run `docker compose build`" if "o such image" in error else ""
        raise ImageError(f"{image}: {error}{hint}")
    return [tuple(package) for package in json.loads(done.stdout)]


def bill(image: str, packages: list[tuple[str, str, str, str]]) -> dict[str, Any]:
    """Return the bill of materials as a CycloneDX 1.6 document."""
    name, _, version = image.partition(":")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "container", "bom-ref": image, "name": name, "version": version}},
        "components": [
            {"type": "library", "bom-ref": url, "purl": url, "name": package, "version": release}
            | ({"group": space} if space else {})
            for kind, space, package, release in packages
            for url in [_url(kind, space, package, release)]
        ],
    }


def _url(*parts: str) -> str:
    kind, space, name, version = (quote(part, safe="") for part in parts)
    return f"pkg:{'/'.join(part for part in (kind, space, name) if part)}{f'@{version}' if version else ''}"


def main(image: str) -> None:
    """Print the bill of materials."""
    try:
        print(json.dumps(bill(image, list_packages(image)), indent=1))  # noqa: T201
    except ImageError as failed:
        sys.exit(f"sbom: {failed}")


if __name__ == "__main__":
    main(*sys.argv[1:])

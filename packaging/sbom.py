# SPDX-License-Identifier: Apache-2.0
"""What a release is made of, as SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/): sbom.py VERSION WHEN FILE... writes JSON to stdout.

The files of the release with their sums, sonde itself, and the libraries that are in the static programs, with the versions that this
machine's packages have (packaging/libraries.txt)."""
import hashlib
import json
import os
import subprocess
import sys
import time
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))


def sums(path):
    found = {"SHA1": hashlib.sha1(), "SHA256": hashlib.sha256()}  # SPDX wants SHA1 of each file
    with open(path, "rb") as f:
        while piece := f.read(1 << 20):
            for h in found.values():
                h.update(piece)
    return [{"algorithm": name, "checksumValue": h.hexdigest()} for name, h in found.items()]


def library(package):
    told = subprocess.run(["dpkg-query", "-W", "-f", "${source:Package} ${source:Version}\n", package], capture_output=True, text=True, check=True)
    source, version = told.stdout.splitlines()[0].split()
    return {"SPDXID": f"SPDXRef-library-{package.replace('+', 'plus').replace('_', '-')}", "name": source, "versionInfo": version,
            "supplier": "Organization: Debian", "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
            "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:deb/debian/{source}@{version}"}]}


def main():
    version, when, *paths = sys.argv[1:]
    with open(os.path.join(HERE, "libraries.txt"), encoding="ascii") as f:
        libraries = [library(line.strip()) for line in f if line.strip()]
    licence = "Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)"
    sonde = {"SPDXID": "SPDXRef-sonde", "name": "sonde", "versionInfo": version, "supplier": "NOASSERTION", "downloadLocation": "NOASSERTION",
             "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION"}
    files = [{"SPDXID": f"SPDXRef-file-{i}", "fileName": f"./{os.path.basename(p)}", "checksums": sums(p), "licenseConcluded": "NOASSERTION",
              "copyrightText": "NOASSERTION"} for i, p in enumerate(sorted(paths))]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-sonde")]
    relations += [("SPDXRef-sonde", "STATIC_LINK", x["SPDXID"]) for x in libraries]
    relations += [(f["SPDXID"], "GENERATED_FROM", "SPDXRef-sonde") for f in files]
    name = f"sonde-{version}"
    made_of = hashlib.sha256(json.dumps([files, libraries]).encode()).hexdigest()
    json.dump({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
               "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, name + made_of)}",
               "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(when))), "creators": ["Tool: packaging/sbom.py"]},
               "packages": [sonde, *libraries], "files": files,
               "relationships": [{"spdxElementId": a, "relationshipType": r, "relatedSpdxElement": b} for a, r, b in relations]},
              sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()

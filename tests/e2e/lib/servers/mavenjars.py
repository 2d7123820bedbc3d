# SPDX-License-Identifier: Apache-2.0
"""Java's servers and libraries of Maven, under build/, and programs of tests/workloads/jars that use them."""
import fcntl
import glob
import os
import subprocess

import pytest

from conftest import BUILD, ROOT, need

NETTY = ["io.netty:netty-codec-http:4.1.118.Final", "io.netty:netty-codec-http2:4.1.118.Final", "io.netty:netty-tcnative-boringssl-static:2.0.77.Final:linux-x86_64", "io.netty:netty-tcnative-classes:2.0.77.Final"]
SETS = {
    "tomcat": ["org.apache.tomcat.embed:tomcat-embed-core:10.1.34", "org.postgresql:postgresql:42.7.5"],
    "jdbc": ["org.postgresql:postgresql:42.7.5"],
    "asyncprofiler": ["tools.profiler:async-profiler:4.1"],
    "jetty": ["org.eclipse.jetty:jetty-server:12.0.16", "org.eclipse.jetty.http2:jetty-http2-server:12.0.16", "org.eclipse.jetty:jetty-alpn-java-server:12.0.16"],
    "kafka": ["org.apache.kafka:kafka_2.13:3.9.0"],
    "netty": NETTY,
}


def dependency(name):
    group, artifact, version, *kind = name.split(":")
    more = f"<classifier>{kind[0]}</classifier>" if kind else ""
    return f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>{more}</dependency>"


def jars(which):
    """The class path of one of SETS; skips where it cannot be had."""
    need("mvn")
    at = os.path.join(BUILD, "maven", which)
    os.makedirs(at, exist_ok=True)
    with open(f"{at}/lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(f"{at}/pom.xml", "w", encoding="utf-8") as f:
            f.write("<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version><packaging>pom</packaging><dependencies>"
                    + "".join(map(dependency, SETS[which])) + "</dependencies></project>")
        if not os.path.exists(f"{at}/done"):
            try:
                subprocess.run(["mvn", "-q", "-B", "-f", f"{at}/pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={at}/jars"], check=True, capture_output=True,
                               timeout=900)
            except subprocess.SubprocessError as e:
                pytest.skip(f"missing: {SETS[which][0]} of Maven: {type(e).__name__}")
            with open(f"{at}/done", "w", encoding="utf-8"):
                pass
    return ":".join(sorted(glob.glob(f"{at}/jars/*.jar")))


def program(name, which, release=17):
    """The class path of a program of tests/workloads/jars, for this JDK and later."""
    need("javac")
    path, folder = jars(which), os.path.join(BUILD, "java", name)
    subprocess.run(["javac", "-Xlint:-options", "--release", str(release), "-cp", path, "-d", folder, os.path.join(ROOT, "tests", "workloads", "jars", f"{name}.java")], check=True)
    return f"{folder}:{path}"


def line_of(name, mark, folder="jars"):
    """The line of a program that has this mark."""
    with open(os.path.join(ROOT, "tests", "workloads", folder, f"{name}.java"), encoding="utf-8") as f:
        return next(n for n, line in enumerate(f, 1) if f"planted: {mark}" in line)

# SPDX-License-Identifier: Apache-2.0
"""The container image, in a Docker engine of our own, with the rights of the compose file and no other: it sees the whole host, is
healthy, keeps its store over a new container, serves its page, and stops in order; by Docker Compose as its file says; and under Podman.
make long-package."""
import glob
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import pytest
from roots import BUILD, ROOT

sys.path[:0] = [os.path.join(ROOT, "tests", "e2e", d) for d in ("", "lib", "lib/servers")]
from containers import engine  # noqa: E402

yaml = pytest.importorskip("yaml", reason="missing: python3-yaml (sh scripts/deps.sh package)")
BURN = os.path.join(BUILD, "tests/workloads/burn-static")


def made(pattern):
    found = glob.glob(f"{BUILD}/{pattern}")
    if not found:
        pytest.skip(f"missing: {pattern} (make image)")
    return found[0]


@pytest.fixture(scope="module")
def docker():
    image = made("sonde-*-x86_64.image.tar.xz")
    e = engine()
    try:
        unpacked = subprocess.run(["xz", "-dc", image], capture_output=True, check=True).stdout
        done = subprocess.run(["docker", "-H", e.socket, "load"], input=unpacked, capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr
        yield e
    finally:
        e.stop()


@pytest.fixture(scope="module")
def services():
    with open(made("sonde-*.compose.yaml"), encoding="utf-8") as f:
        told = yaml.safe_load(f)
    assert "docker.sock" not in json.dumps(told)
    return told["services"]


def flags(service):
    """What the compose file says of a service, as `docker run` takes it; what is not known here fails the test."""
    out = []
    for key, value in service.items():
        if key in ("image", "command", "ports", "secrets", "healthcheck"):
            continue
        out += {"restart": lambda v: ["--restart", v], "pid": lambda v: ["--pid", v], "cgroup": lambda v: ["--cgroupns", v],
                "uts": lambda v: ["--uts", v], "network_mode": lambda v: ["--network", v],
                "read_only": lambda v: ["--read-only"] if v else [],
                "cap_drop": lambda v: [f"--cap-drop={c}" for c in v], "cap_add": lambda v: [f"--cap-add={c}" for c in v],
                "security_opt": lambda v: [f"--security-opt={s}" for s in v],
                "ulimits": lambda v: [f"--ulimit={k}={n}" for k, n in v.items()], "mem_limit": lambda v: [f"--memory={v}"],
                "volumes": lambda v: [f"--volume={m}" for m in v], "tmpfs": lambda v: [f"--tmpfs={t}" for t in v]}[key](value)
    return out


def until(said, what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = said()
        if what(got):
            return got
        time.sleep(0.5)
    raise AssertionError(got)


def may_raise_limits():
    with open("/proc/self/status", encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("CapEff")).split()[1], 16) >> 24 & 1  # CAP_SYS_RESOURCE


def start(docker, services):
    """An engine that does not know the names BPF and PERFMON gets what the file says for such ones."""
    with_rights = flags(services["recorder"])
    done = docker.docker("create", *with_rights, services["recorder"]["image"])
    if "unknown capability" in done.stderr:
        with_rights = [f for f in with_rights if f not in ("--cap-add=BPF", "--cap-add=PERFMON")] + ["--cap-add=SYS_ADMIN"]
    else:
        docker.docker("rm", done.stdout.strip())
    if not may_raise_limits():
        with_rights = [f for f in with_rights if not f.startswith("--ulimit")]
    done = docker.docker("run", "-d", "--name", "recorder", *with_rights, services["recorder"]["image"])
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def recorder(docker, services):
    start(docker, services)
    yield "recorder"
    print(docker.docker("logs", "recorder").stderr)
    docker.docker("rm", "-f", "recorder")


def sonde(docker, *args, check=True):
    done = docker.docker("exec", "recorder", "sonde", *args)
    assert done.returncode == 0 or not check, (args, done.stdout, done.stderr)
    return done


def test_the_image_holds_no_shell_and_no_library(docker, services):
    made = docker.docker("create", services["recorder"]["image"])
    assert made.returncode == 0, made.stderr
    names = subprocess.run(f"docker -H {docker.socket} export {made.stdout.strip()} | tar -t", shell=True, capture_output=True, text=True, check=True)
    docker.docker("rm", made.stdout.strip())
    assert "bin/sonde" in names.stdout and not [n for n in names.stdout.split() if n.endswith("/sh") or ".so" in n]


def test_it_is_healthy_and_sees_the_whole_host(docker, recorder):
    until(lambda: docker.docker("inspect", "-f", "{{.State.Health.Status}}", recorder).stdout.strip(), lambda s: s == "healthy", 90)
    burn = subprocess.Popen([BURN, "60000"], stdout=subprocess.DEVNULL)
    try:
        rows = until(lambda: json.loads(sonde(docker, "stacks", "--comm", "burn-static", "--json", check=False).stdout or '{"rows": []}')["rows"],
                     lambda rows: rows and rows[0]["self_samples"] > 20)
        assert rows[0]["function"] == "burn_leaf", rows[:3]
    finally:
        burn.kill()
        burn.wait()
    said = sonde(docker, "status").stdout
    assert "offcpu" in said and "host" in said, said
    told = json.loads(sonde(docker, "ps", "--json", check=False).stdout)
    assert any(r["comm"] == "burn-static" for r in told["rows"])


def test_other_containers_are_told_apart(docker, recorder):
    name = docker.image()
    done = docker.docker("run", "-d", "--name", "busy", "--network", "none", name, "/bin/burn-static", "60000")
    assert done.returncode == 0, done.stderr
    try:
        rows = until(lambda: json.loads(sonde(docker, "containers", "--json", check=False).stdout or '{"rows": []}')["rows"],
                     lambda rows: any(done.stdout.strip().startswith(r["container_id"] or "?") for r in rows))
        assert [r for r in rows if done.stdout.strip().startswith(r["container_id"] or "?")][0]["container"] == "busy"
    finally:
        docker.docker("rm", "-f", "busy")


def test_a_record_and_a_doctor_run_beside_it(docker, recorder):
    said = sonde(docker, "doctor", check=False)
    assert "cpu" in said.stdout and "[no]" not in said.stdout.split("cpu", 1)[1].split("\n")[0], said.stdout
    done = sonde(docker, "record", "-d", "3s", "--store", "/tmp/one")
    assert "samples" in done.stdout + done.stderr, (done.stdout, done.stderr)


def test_its_page_is_served_from_the_same_store(docker, services, recorder, tmp_path):
    page = services["page"]
    token = tmp_path / "token"
    token.write_text("correct-horse-battery\n")
    token.chmod(0o600)
    done = docker.docker("run", "-d", "--name", "page", *flags(page), "--network", "none", "--volume", f"{token}:/run/secrets/token:ro", page["image"],
                         *page["command"])
    assert done.returncode == 0, done.stderr
    try:
        ask = ("import sys, urllib.request as u; print(u.urlopen(u.Request('http://127.0.0.1:7766/api/v1/status', "
               "headers={'Authorization': 'Bearer correct-horse-battery'}), timeout=20).read().decode())")
        pid = docker.docker("inspect", "-f", "{{.State.Pid}}", "page").stdout.strip()
        said = until(lambda: subprocess.run(["nsenter", "-t", pid, "-n", "--", "/usr/bin/python3", "-c", ask], capture_output=True, text=True),
                     lambda d: d.returncode == 0)
        assert json.loads(said.stdout)["rows"], said.stdout
    finally:
        print(docker.docker("logs", "page").stderr)
        docker.docker("rm", "-f", "page")


def test_it_stops_in_order_and_a_new_container_goes_on_with_the_store(docker, services, recorder):
    before = json.loads(sonde(docker, "status", "--json").stdout)
    assert docker.docker("stop", "-t", "20", recorder).returncode == 0
    assert docker.docker("inspect", "-f", "{{.State.ExitCode}}", recorder).stdout.strip() == "0"
    docker.docker("rm", recorder)
    start(docker, services)
    until(lambda: sonde(docker, "status", "--check", check=False).returncode, lambda rc: rc == 0)
    after = json.loads(sonde(docker, "status", "-n", "50", "--json").stdout)
    assert len(after["rows"]) > len(before["rows"]) and not any(r.get("state") == "killed" for r in after["rows"])


def compose():
    """Docker Compose 2 (Debian 12 has the first one, whose files have no `name`), or a skip."""
    own = shutil.which("docker-compose")
    for command in ([own] if own else [], ["docker", "compose"]):
        done = subprocess.run([*command, "version", "--short"], capture_output=True, text=True) if command else None
        if done and done.returncode == 0 and not done.stdout.startswith("1."):
            return command
    pytest.skip("missing: Docker Compose 2 (as docker-compose on the path: GOBIN=DIR go install github.com/docker/compose/v2/cmd@latest)")


def test_compose_starts_both_as_its_file_says(docker, tmp_path):
    command = compose()
    file = tmp_path / "compose.yaml"
    shutil.copy(made("sonde-*.compose.yaml"), file)
    token = tmp_path / "sonde.token"
    token.write_text("correct-horse-battery\n")
    token.chmod(0o600)
    os.chown(token, 1000, 1000)  # of whoever made it, as on a host where people use Docker without being root
    own = {"recorder": {}, "page": {"ports": []}}
    if "unknown capability" in docker.docker("create", "--cap-add=BPF", f"{yaml.safe_load(file.read_text())['services']['page']['image']}").stderr:
        own["recorder"]["cap_add"] = ["SYS_ADMIN"]
        file.write_text(file.read_text().replace("      - BPF ", "      #").replace("      - PERFMON ", "      #"))
    if not may_raise_limits():
        file.write_text(file.read_text().replace("ulimits: {memlock: -1}", "#"))
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"services": own}))
    run = lambda *args: subprocess.run([*command, "-f", str(file), "-f", str(tmp_path / "own.yaml"), *args], capture_output=True, text=True,  # noqa: E731
                                       timeout=120, env={**os.environ, "DOCKER_HOST": docker.socket}, stdin=subprocess.DEVNULL)
    done = run("up", "-d")
    try:
        assert done.returncode == 0, done.stderr
        until(lambda: run("ps", "--format", "json").stdout, lambda s: '"Health":"healthy"' in s, 90)
        said = until(lambda: run("exec", "-T", "recorder", "sonde", "status").stdout, lambda s: "recording  cpu" in s)
        assert "offcpu" in said, said
        assert "http://0.0.0.0:7766/" in until(lambda: run("logs", "page").stdout + run("logs", "page").stderr, lambda s: "7766" in s)
    finally:
        print(run("logs").stdout)
        run("down", "-v")


@pytest.fixture
def podman():
    """podman(ARGS...): one with storage of its own, whose runtime takes this host's cgroups."""
    if not shutil.which("podman"):
        pytest.skip("missing: podman (sh scripts/deps.sh package)")
    hybrid = os.path.ismount("/sys/fs/cgroup/unified")
    if hybrid and not shutil.which("runc"):
        pytest.skip("missing: runc (crun takes no hybrid hierarchy of cgroups)")
    work = tempfile.mkdtemp(prefix="sonde-podman-")  # podman wants a short path
    own = ["podman", "--root", f"{work}/root", "--runroot", f"{work}/run", *(["--runtime", "runc"] if hybrid else [])]

    def call(*args, **kw):
        return subprocess.run([*own, *args], capture_output=True, timeout=300, **kw)
    yield call
    call("rm", "-fa")
    call("system", "reset", "-f")
    shutil.rmtree(work, ignore_errors=True)


def bounded():
    """What an engine would raise and may not here stays as it is."""
    if may_raise_limits():
        return []
    return [f"--ulimit={name}={hard}:{hard}" for name, hard in (("nofile", resource.getrlimit(resource.RLIMIT_NOFILE)[1]), ("nproc", 1000))]


def test_podman_runs_it_with_the_same_rights_and_a_wider_filter(podman, services):
    unpacked = subprocess.run(["xz", "-dc", made("sonde-*-x86_64.image.tar.xz")], capture_output=True, check=True).stdout
    done = podman("load", input=unpacked)
    assert done.returncode == 0, done.stderr
    with_rights = [f for f in flags(services["recorder"]) if not f.startswith("--ulimit") and f not in ("--restart", "unless-stopped")]
    done = podman("run", "-d", "--name", "recorder", "--no-healthcheck", *bounded(), *with_rights, "--security-opt=seccomp=unconfined",
                  services["recorder"]["image"])
    assert done.returncode == 0, done.stderr
    burn = subprocess.Popen([BURN, "60000"], stdout=subprocess.DEVNULL)
    try:
        rows = until(lambda: json.loads(podman("exec", "recorder", "sonde", "stacks", "--comm", "burn-static", "--json").stdout or '{"rows": []}')["rows"],
                     lambda rows: rows and rows[0]["self_samples"] > 20)
        assert rows[0]["function"] == "burn_leaf", rows[:3]
    finally:
        burn.kill()
        burn.wait()
    assert podman("stop", "-t", "20", "recorder").returncode == 0
    assert podman("inspect", "-f", "{{.State.ExitCode}}", "recorder").stdout.strip() == b"0"

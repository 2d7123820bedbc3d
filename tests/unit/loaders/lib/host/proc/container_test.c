/* SPDX-License-Identifier: Apache-2.0 */
/* container: cgroup paths as the runtimes make them, Docker's files, and the path from a cgroup's
 * id on this host's hierarchies. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/containerfile.h"
#include "loaders/lib/host/proc/containernames.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/array.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

struct expected {
	const char *path, *runtime, *id, *pod, *unit;
};

static const struct expected cases[] = {
	{"/docker/" ID, "docker", ID, "", ""},
	{"/docker/" ID "/init.scope", "docker", ID, "", ""},
	{"/system.slice/docker-" ID ".scope", "docker", ID, "", ""},
	{"/docker/buildx/" ID, "container", ID, "", ""},
	{"/docker/" ID "/docker/" ID2, "docker", ID2, "", ""},
	{"/docker/" ID "/kubelet.slice/kubepods.slice/kubepods-pod1a_2b.slice/cri-containerd-" ID2
	 ".scope",
	 "containerd", ID2, "1a-2b", ""},
	{"/kubepods/burstable/pod1a-2b-3c/" ID, "containerd", ID, "1a-2b-3c", ""},
	{"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1a_2b.slice/cri-containerd-" ID
	 ".scope",
	 "containerd", ID, "1a-2b", ""},
	{"/kubepods.slice/kubepods-pod1a_2b.slice/crio-" ID ".scope", "cri-o", ID, "1a-2b", ""},
	{"/system.slice/containerd.service/kubepods-burstable-pod1a_2b.slice:cri-containerd:" ID,
	 "containerd", ID, "1a-2b", "containerd.service"},
	{"/default/" ID, "containerd", ID, "", ""},
	{"/system.slice/nerdctl-" ID ".scope", "containerd", ID, "", ""},
	{"/machine.slice/libpod-" ID ".scope", "podman", ID, "", ""},
	{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container",
	 "podman", ID, "", "user@1000.service"},
	{"/libpod_parent/libpod-" ID, "podman", ID, "", ""},
	{"/machine.slice/libpod-conmon-" ID ".scope", "", "", "", "libpod-conmon-" ID ".scope"},
	{"/lxc/web1", "lxc", "web1", "", ""},
	{"/lxc.payload.web1/system.slice/nginx.service", "lxc", "web1", "", ""},
	{"/lxc.payload/web1", "lxc", "web1", "", ""},
	{"/machine.slice/systemd-nspawn@deb\\x2d12.service/payload", "nspawn", "deb-12", "", ""},
	{"/machine.slice/machine-deb.scope", "nspawn", "deb", "", ""},
	{"/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", "", "", "", "machine-qemu-1-vm.scope"},
	{"/system.slice/nginx.service", "", "", "", "nginx.service"},
	{"/system.slice/system-getty.slice/getty@tty1.service", "", "", "", "getty@tty1.service"},
	{"/system.slice/my\\x2dapp.service", "", "", "", "my-app.service"},
	{"/user.slice/user-0.slice/session-4.scope", "", "", "", "session-4.scope"},
	{"/user.slice/user-0.slice/user@0.service/app.slice/x.service", "", "", "", "x.service"},
	/* k3s and kind: a node in a container, its pods in it */
	{"/docker/" ID "/kubelet/kubepods/besteffort/pod1a-2b/" ID2, "containerd", ID2, "1a-2b",
	 ""},
	{"/system.slice/k3s.service/kubepods/besteffort/pod1a-2b/" ID, "containerd", ID, "1a-2b",
	 "k3s.service"},
	{"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod1a_2b.slice/"
	 "cri-containerd-" ID ".scope",
	 "containerd", ID, "1a-2b", ""},
	{"/kubelet/kubepods/burstable/pod1a-2b/" ID, "containerd", ID, "1a-2b", ""},
	/* CRI-O without systemd's names, and under its own unit; Docker where runc was given
	   systemd's form of a parent */
	{"/kubepods/burstable/pod1a-2b/crio-" ID, "cri-o", ID, "1a-2b", ""},
	{"/system.slice/crio.service/kubepods-burstable-pod1a_2b.slice:crio:" ID, "cri-o", ID,
	 "1a-2b", "crio.service"},
	{"/kubepods.slice/kubepods-pod1a_2b.slice/crio-" ID ".scope/container", "cri-o", ID,
	 "1a-2b", ""},
	{"/system.slice:docker:" ID, "docker", ID, "", ""},
	/* Docker on v1: a custom parent, as cgroup_parent of compose and of the daemon makes it */
	{"/build.slice/docker-" ID ".scope", "docker", ID, "", ""},
	{"/system.slice/docker-" ID ".scope/system.slice/cron.service", "docker", ID, "", ""},
	{"/actions_job/" ID, "container", ID, "", ""},
	{"/ecs/0123456789abcdef0123456789abcdef/" ID, "container", ID, "", ""},
	/* rootless */
	{"/user.slice/user-1000.slice/user@1000.service/app.slice/docker.service/docker/" ID,
	 "docker", ID, "", "docker.service"},
	{"/user.slice/user-1000.slice/user@1000.service/user.slice/user-libpod_pod_" ID2
	 ".slice/libpod-" ID ".scope",
	 "podman", ID, "", "user@1000.service"},
	{"/machine.slice/machine-libpod_pod_" ID2 ".slice/libpod-" ID ".scope", "podman", ID, "",
	 ""},
	{"/machine.slice/libpod-" ID ".scope/libpod-payload-" ID, "podman", ID, "", ""},
	/* Quadlet: the unit that starts it holds it, delegated */
	{"/system.slice/web.service/libpod-payload-" ID, "podman", ID, "", "web.service"},
	/* CRI-O: its monitor is no container */
	{"/kubepods.slice/kubepods-pod1a_2b.slice/crio-conmon-" ID ".scope", "", "", "1a-2b",
	 "crio-conmon-" ID ".scope"},
	/* LXD and Incus */
	{"/lxc.payload.db-1/docker/" ID, "docker", ID, "", ""},
	{"/lxc.monitor.db-1", "", "", "", ""},
	/* systemd: transient and templated units, user's own */
	{"/system.slice/run-r0123456789abcdef.scope", "", "", "", "run-r0123456789abcdef.scope"},
	{"/system.slice/postgresql@15-main.service", "", "", "", "postgresql@15-main.service"},
	{"/user.slice/user-1000.slice/user@1000.service/session.slice/pipewire.service", "", "", "",
	 "pipewire.service"},
	{"/", "", "", "", ""},
	{"", "", "", "", ""},
	{"/init.scope", "", "", "", "init.scope"},
	{"/process_api/2af51415d9f08500fdb34a14ce1ac034", "", "", "", ""},
	{"/docker/" ID "0", "", "", "", ""},
	{"/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", "", "", "",
	 ""},
	{"/system.slice/docker-.scope", "", "", "", "docker-.scope"},
};

TEST(each_runtimes_paths_are_told_apart)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct expected *c = &cases[i];
		struct container_ref ref;
		bool got = container_parse(c->path, strlen(c->path), &ref);

		if (got != (c->runtime[0] != 0) || strcmp(ref.runtime, c->runtime) ||
		    strcmp(ref.id, c->id) || strcmp(ref.pod, c->pod) || strcmp(ref.unit, c->unit))
			fail_msg("%s: runtime '%s' id '%s' pod '%s' unit '%s'", c->path,
				 ref.runtime, ref.id, ref.pod, ref.unit);
	}
}

TEST(of_several_paths_that_of_a_container_tells_most)
{
	static const struct {
		const char *paths[4];
		size_t chosen;
	} table[] = {
		{{"/system.slice/containerd.service", "/docker/" ID, "/", NULL}, 1},
		{{"/docker/" ID, "/docker/" ID2, NULL, NULL}, 0},
		{{"/a.slice", "/b.slice", NULL, NULL}, 0},
		{{"/", NULL, "/b.slice", NULL}, 2},
		{{NULL, "", NULL, "/"}, 3},
		{{NULL, NULL, NULL, NULL}, 4},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		size_t lens[4];

		for (size_t k = 0; k < 4; k++)
			lens[k] = table[i].paths[k] ? strlen(table[i].paths[k]) : 0;
		assert_int_equal(container_choose(table[i].paths, lens, 4), table[i].chosen);
	}
}

/* /proc/PID/cgroup whole, as hosts have it: version 1, version 2, and both. */
TEST(whole_files_of_hosts_of_every_version_lead_to_the_container)
{
	static const struct {
		const char *text, *runtime, *id, *unit;
	} hosts[] = {
		/* v2 */
		{"0::/system.slice/docker-" ID ".scope\n", "docker", ID, ""},
		{"0::/kubepods.slice/kubepods-pod1a_2b.slice/cri-containerd-" ID ".scope\n",
		 "containerd", ID, ""},
		{"0::/machine.slice/libpod-" ID ".scope/container\n", "podman", ID, ""},
		{"0::/lxc.payload.web1/system.slice/nginx.service\n", "lxc", "web1", ""},
		{"0::/system.slice/nginx.service\n", "", "", "nginx.service"},
		/* v1: no v2 hierarchy at all, or an empty one; controllers mounted together */
		{"12:pids:/docker/" ID "\n4:memory:/docker/" ID "\n3:cpu,cpuacct:/docker/" ID
		 "\n1:name=systemd:/docker/" ID "\n",
		 "docker", ID, ""},
		{"11:memory:/kubepods/burstable/pod1a-2b/" ID
		 "\n1:name=systemd:/kubepods/burstable/pod1a-2b/" ID "\n0::/\n",
		 "containerd", ID, ""},
		{"8:memory:/kubepods.slice/kubepods-pod1a_2b.slice/crio-" ID ".scope\n0::/\n",
		 "cri-o", ID, ""},
		{"10:memory:/machine.slice/libpod-" ID
		 ".scope\n1:name=systemd:/machine.slice/libpod-" ID ".scope\n0::/\n",
		 "podman", ID, ""},
		{"9:memory:/lxc/web1\n1:name=systemd:/lxc/web1/init.scope\n", "lxc", "web1", ""},
		{"9:memory:/machine.slice/systemd-nspawn@deb.service\n1:name=systemd:/machine.slice/systemd-nspawn@deb.service\n",
		 "nspawn", "deb", ""},
		{"9:memory:/system.slice/nginx.service\n1:name=systemd:/system.slice/nginx.service\n",
		 "", "", "nginx.service"},
		{"9:cpuset:/\n8:pids:/docker/" ID "\n0::/\n", "docker", ID, ""},
		/* hybrid: systemd's units on v2, the runtime's groups where the controllers are */
		{"8:memory:/docker/" ID "\n1:name=systemd:/docker/" ID
		 "\n0::/system.slice/containerd.service\n",
		 "docker", ID, ""},
		{"8:memory:/kubepods/besteffort/pod1a-2b/" ID
		 "\n0::/system.slice/containerd.service\n",
		 "containerd", ID, ""},
		{"8:memory:/system.slice/crio.service/kubepods-pod1a_2b.slice:crio:" ID
		 "\n0::/system.slice/crio.service\n",
		 "cri-o", ID, "crio.service"},
		{"8:memory:/libpod_parent/libpod-" ID
		 "\n0::/user.slice/user-0.slice/session-1.scope\n",
		 "podman", ID, ""},
		{"8:memory:/user.slice\n1:name=systemd:/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
		 ".scope\n"
		 "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
		 ".scope\n",
		 "podman", ID, "user@1000.service"},
		{"8:memory:/lxc.payload.web1\n0::/lxc.payload.web1\n", "lxc", "web1", ""},
		{"8:memory:/system.slice/nginx.service\n0::/system.slice/nginx.service\n", "", "",
		 "nginx.service"},
		{"8:memory:/user.slice\n0::/user.slice/user-0.slice/session-4.scope\n", "", "",
		 "session-4.scope"},
		/* nested: a runtime in a container, its group on all hierarchies below that
		   container's */
		{"8:memory:/docker/" ID "/docker/" ID2 "\n0::/system.slice/containerd.service\n",
		 "docker", ID2, ""},
		{"0::/lxc.payload.web1/docker/" ID "\n", "docker", ID, ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		struct container_ref ref;
		struct proc_cgroup cg;
		const char *path;
		size_t len;

		assert_int_equal(proc_parse_cgroup(hosts[i].text, strlen(hosts[i].text), &cg), 0);
		path = proc_cgroup_path(&cg, &len);
		container_parse(path, len, &ref);
		if (strcmp(ref.runtime, hosts[i].runtime) || strcmp(ref.id, hosts[i].id) ||
		    strcmp(ref.unit, hosts[i].unit))
			fail_msg("%s: runtime '%s' id '%s' unit '%s'", hosts[i].text, ref.runtime,
				 ref.id, ref.unit);
	}
}

TEST(the_container_around_a_nested_one_is_found)
{
	static const char path[] = "/docker/" ID "/docker/" ID2 "/x";
	struct container_ref in, out;

	assert_true(container_parse(path, strlen(path), &in));
	assert_string_equal(in.id, ID2);
	assert_int_equal(in.end, strlen(path) - 2);
	assert_true(container_outer(path, &in, &out));
	assert_string_equal(out.id, ID);
	assert_false(container_outer(path, &out, &in));
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int in_docker(const char *docker_root, const char *id, struct container_names *out)
{
	struct container_ref ref = {.runtime = "docker"};

	snprintf(ref.id, sizeof(ref.id), "%s", id);
	return containernames_find(docker_root, "/nonexistent", &ref, out);
}

TEST(dockers_file_gives_name_image_project_and_restarts)
{
	char root[] = "/tmp/sonde-docker-XXXXXX", path[512];
	struct container_names n = {0}, copy;

	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "mkdir -p %s/containers/" ID, root);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof(path), "%s/containers/" ID "/config.v2.json", root);
	assert_int_equal(in_docker(root, ID, &n), -ENOENT);
	write_file(
		path,
		"{\"Name\": \"/web\", \"Config\": {\"Image\": \"nginx:1.25\", \"Labels\": {}}, \"ID\": \"x\"}");
	assert_int_equal(in_docker(root, ID, &n), 0);
	assert_string_equal(n.name, "web");
	assert_string_equal(n.image, "nginx:1.25");
	assert_null(n.labels);
	container_names_release(&n);
	/* created, and not started yet according to the file */
	write_file(path,
		   "{\"Name\": \"/web\", \"State\": {\"StartedAt\": \"0001-01-01T00:00:00Z\"}}");
	assert_int_equal(in_docker(root, ID, &n), 0);
	assert_null(n.started);
	container_names_release(&n);
	write_file(
		path,
		"{\"Name\": \"/web\", \"RestartCount\": 4, \"State\": {\"StartedAt\": \"2026-11-21T03:10:00.5Z\"}, \"Config\": {"
		"\"Image\": \"x\", \"Labels\": {\"z\": \"1\", \"com.docker.compose.project\": \"shop\", "
		"\"com.docker.compose.service\": \"front\"}}}");
	assert_int_equal(in_docker(root, ID, &n), 0);
	assert_string_equal(n.project, "shop");
	assert_string_equal(n.service, "front");
	assert_string_equal(n.started, "2026-11-21T03:10:00.5Z");
	assert_int_equal(n.restarts, 4);
	assert_string_equal(
		n.labels,
		"{\"com.docker.compose.project\":\"shop\",\"com.docker.compose.service\":\"front\",\"z\":\"1\"}");
	container_names_copy(&copy, &n);
	assert_true(container_names_same(&copy, &n));
	copy.restarts++;
	assert_false(container_names_same(&copy, &n));
	container_names_release(&copy);
	container_names_release(&n);
	write_file(path,
		   "{\"Name\": \"/web\", \"RestartCount\": -1, \"Config\": {\"Labels\": [1]}}");
	assert_int_equal(in_docker(root, ID, &n), 0);
	assert_null(n.project);
	assert_int_equal(n.restarts, 0);
	container_names_release(&n);
	write_file(path, "{\"Name\": 7}");
	assert_int_equal(in_docker(root, ID, &n), 0);
	assert_null(n.name);
	write_file(path, "[\"Name\"");
	assert_int_equal(in_docker(root, ID, &n), -EBADMSG);
	assert_int_equal(truncate(path, 1 << 30), 0);
	assert_int_equal(in_docker(root, ID, &n), -EFBIG);
	unlink(path);
	assert_int_equal(symlink("/etc/hostname", path), 0);
	assert_int_equal(in_docker(root, ID, &n), -ELOOP);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(in_docker(root, ID, &n), -EINVAL);
	assert_int_equal(in_docker(root, "../../../etc", &n), -ENOENT);
	snprintf(path, sizeof(path), "rm -r %s", root);
	assert_int_equal(system(path), 0);
}

static void put_under(const char *root, const char *dir, const char *name, const char *text)
{
	char cmd[700], path[700];

	snprintf(cmd, sizeof(cmd), "mkdir -p %s/%s", root, dir);
	assert_int_equal(system(cmd), 0);
	snprintf(path, sizeof(path), "%s/%s/%s", root, dir, name);
	write_file(path, text);
}

TEST(podmans_crios_and_containerds_files_give_name_and_image)
{
	static const char storage[] =
		"[{\"id\":\"" ID2 "\",\"names\":[\"other\"]},{\"id\":\"" ID
		"\",\"names\":[\"web\"],\"image\":\"5e2c\","
		"\"metadata\":\"{\\\"image-name\\\":\\\"docker.io/library/nginx:1.25\\\",\\\"name\\\":\\\"web\\\"}\"}]";
	static const char bundle[] =
		"{\"ociVersion\":\"1.1\",\"annotations\":{\"io.kubernetes.cri.container-name\":\"app\","
		"\"io.kubernetes.cri.image-name\":\"app:2\",\"io.kubernetes.cri.sandbox-name\":\"web-0\"}}";
	char root[] = "/tmp/sonde-runtimes-XXXXXX", cmd[64];
	struct container_ref ref = {.runtime = "podman", .id = ID};
	struct container_names n = {0};

	assert_non_null(mkdtemp(root));
	assert_int_equal(containernames_find("/nonexistent", root, &ref, &n), -ENOENT);
	put_under(root, "var/lib/containers/storage/overlay-containers", "containers.json", "[]");
	put_under(root, "var/lib/containers/storage/overlay-containers", "volatile-containers.json",
		  storage);
	for (int i = 0; i < 2; i++) {
		ref.runtime = i ? "cri-o" : "podman";
		assert_int_equal(containernames_find("/nonexistent", root, &ref, &n), 0);
		assert_string_equal(n.name, "web");
		assert_string_equal(n.image, "docker.io/library/nginx:1.25");
		container_names_release(&n);
	}
	ref.runtime = "containerd";
	assert_int_equal(containernames_find("/nonexistent", root, &ref, &n), -ENOENT);
	put_under(root, "run/containerd/io.containerd.runtime.v2.task/default", "x", "");
	put_under(root, "run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID, "config.json",
		  bundle);
	assert_int_equal(containernames_find("/nonexistent", root, &ref, &n), 0);
	assert_string_equal(n.name, "web-0/app");
	assert_string_equal(n.image, "app:2");
	container_names_release(&n);
	put_under(root, "run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID, "config.json",
		  "{\"annotations\":{\"nerdctl/name\":\"db\"}}");
	assert_int_equal(containernames_find("/nonexistent", root, &ref, &n), 0);
	assert_string_equal(n.name, "db");
	container_names_release(&n);
	assert_int_equal(containerfile_bundle("{\"annotations\":7}", 17, &n), -ENOENT);
	assert_int_equal(containerfile_bundle("[", 1, &n), -EBADMSG);
	assert_int_equal(containerfile_storage("{}", 2, ID, &n), -EBADMSG);
	snprintf(ref.id, sizeof(ref.id), "../../../../etc");
	assert_int_equal(containernames_find("/nonexistent", root, &ref, &n), -ENOENT);
	snprintf(cmd, sizeof(cmd), "rm -r %s", root);
	assert_int_equal(system(cmd), 0);
}

#define OWNER "/home/user/.local/share/"

/* In a separate tree that belongs to the user `uid`. */
static void put_as(const char *root, const char *dir, const char *name, const char *text, uid_t uid)
{
	char path[700];

	put_under(root, dir, name, text);
	snprintf(path, sizeof(path), "%s/%s/%s", root, dir, name);
	assert_int_equal(chown(path, uid, (gid_t)-1), 0);
}

static void expect_names(const char *root, const char *cgroup, const char *name, const char *image,
			 const char *project)
{
	struct container_names n = {0};
	struct container_ref ref;

	container_parse(cgroup, strlen(cgroup), &ref);
	if (containernames_find("/nonexistent", root, &ref, &n) || !n.name)
		fail_msg("%s: no name", cgroup);
	assert_string_equal(n.name, name);
	assert_string_equal(n.image ? n.image : "", image);
	assert_string_equal(n.project ? n.project : "", project);
	container_names_release(&n);
}

#define USERS "/user.slice/user-4242.slice/user@4242.service/"
#define STORAGE          \
	"[{\"id\":\"" ID \
	"\",\"names\":[\"%s\"],\"metadata\":\"{\\\"image-name\\\":\\\"web:1\\\"}\"}]"

TEST(files_of_rootless_and_of_packaged_runtimes_are_found)
{
	static const char docker[] =
		"{\"Name\":\"/%s\",\"Config\":{\"Image\":\"web:1\",\"Labels\":{\"com.docker.compose.project\":\"shop\"}}}";
	static const char bundle[] =
		"{\"annotations\":{\"nerdctl/name\":\"%s\",\"com.docker.compose.project\":\"shop\"}}";
	static const struct {
		const char *dir, *file, *text, *cgroup;
		uid_t uid;
		const char *name, *image, *project;
	} table[] = {
		{"var/snap/docker/common/var-lib-docker/containers/" ID, "config.v2.json", docker,
		 "/docker/" ID, 0, "snapped", "web:1", "shop"},
		{OWNER "docker/containers/" ID, "config.v2.json", docker,
		 USERS "app.slice/docker.service/docker/" ID, 4242, "rootless", "web:1", "shop"},
		{"var/lib/containers/storage/vfs-containers", "containers.json", STORAGE,
		 "/machine.slice/libpod-" ID ".scope", 0, "vfs", "web:1", ""},
		{OWNER "containers/storage/overlay-containers", "containers.json", STORAGE,
		 USERS "user.slice/libpod-" ID ".scope", 4242, "mine", "web:1", ""},
		{"run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/" ID, "config.json",
		 bundle, "/k8s.io/" ID, 0, "k3", "", "shop"},
		{"run/user/4242/containerd/io.containerd.runtime.v2.task/default/" ID,
		 "config.json", bundle, USERS "nerdctl-" ID ".scope", 4242, "nerd", "", "shop"},
	};
	char root[] = "/tmp/sonde-rootless-XXXXXX", text[512], cmd[64];

	if (geteuid())
		skip_missing("root");
	assert_non_null(mkdtemp(root));
	put_under(root, "etc", "passwd",
		  "root:x:0:0::/root:/bin/sh\nann:x:4242:4242:Ann:/home/user:/bin/sh\n");
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		snprintf(text, sizeof(text), table[i].text, table[i].name);
		put_as(root, table[i].dir, table[i].file, text, table[i].uid);
		expect_names(root, table[i].cgroup, table[i].name, table[i].image,
			     table[i].project);
	}
	snprintf(cmd, sizeof(cmd), "rm -r %s", root);
	assert_int_equal(system(cmd), 0);
}

TEST(a_user_lends_no_file_of_somebody_else_and_lets_nobody_wait)
{
	static const char cgroup[] = USERS "user.slice/libpod-" ID ".scope";
	char root[] = "/tmp/sonde-rootless-XXXXXX", path[256], other[256], text[512], cmd[64];
	struct container_names n = {0};
	struct container_ref ref;

	if (geteuid())
		skip_missing("root");
	assert_non_null(mkdtemp(root));
	container_parse(cgroup, strlen(cgroup), &ref);
	assert_int_equal(ref.owner, 4242);
	put_under(root, "etc", "passwd", "ann:x:4242:4242:Ann:/home/user:/bin/sh\n");
	snprintf(text, sizeof(text), STORAGE, "secret");
	put_under(root, "roots", "containers.json", text);
	put_under(root, OWNER "containers/storage/overlay-containers", "x", "");
	snprintf(path, sizeof(path),
		 "%s" OWNER "containers/storage/overlay-containers/containers.json", root);
	snprintf(other, sizeof(other), "%s/roots/containers.json", root);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(containernames_find("/nonexistent", root, &ref, &n), -ENOENT);
	assert_int_equal(chown(other, 4242, (gid_t)-1), 0); /* it was for whose it is alone */
	assert_int_equal(containernames_find("/nonexistent", root, &ref, &n), 0);
	container_names_release(&n);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(chown(path, 4242, (gid_t)-1), 0);
	assert_int_equal(containernames_find("/nonexistent", root, &ref, &n), -ENOENT);
	snprintf(cmd, sizeof(cmd), "rm -r %s", root);
	assert_int_equal(system(cmd), 0);
}

TEST(annotations_tell_what_podman_and_crio_keep_beside_the_storage)
{
	static const char crio[] =
		"{\"annotations\":{\"io.kubernetes.container.name\":\"app\",\"io.kubernetes.pod.name\":\"web-0\","
		"\"io.kubernetes.cri-o.ImageName\":\"app:2\",\"io.kubernetes.cri-o.Labels\":\"{\\\"tier\\\":\\\"front\\\"}\","
		"\"io.kubernetes.cri-o.Annotations\":\"{\\\"x\\\":\\\"secret\\\"}\"}}";
	static const char podman[] =
		"{\"annotations\":{\"io.podman.annotations.autoremove\":\"FALSE\",\"io.container.manager\":\"libpod\","
		"\"io.podman.compose.project\":\"lab\",\"io.podman.compose.service\":\"db\"}}";
	struct container_names n = {0};
	char root[] = "/tmp/sonde-notes-XXXXXX", text[512], cmd[64];

	assert_int_equal(containerfile_bundle(crio, strlen(crio), &n), 0);
	assert_string_equal(n.name, "web-0/app");
	assert_string_equal(n.image, "app:2");
	assert_string_equal(n.project, "web-0");
	assert_string_equal(n.labels, "{\"tier\":\"front\"}");
	container_names_release(&n);
	assert_non_null(mkdtemp(root));
	snprintf(text, sizeof(text), STORAGE, "lab_db_1");
	put_under(root, "var/lib/containers/storage/overlay-containers", "containers.json", text);
	put_under(root, "var/lib/containers/storage/overlay-containers/" ID "/userdata",
		  "config.json", podman);
	expect_names(root, "/machine.slice/libpod-" ID ".scope", "lab_db_1", "web:1", "lab");
	put_under(root, "var/lib/containers/storage/overlay-containers/" ID "/userdata",
		  "config.json", crio);
	expect_names(root, "/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope", "web-0/app",
		     "web:1", "web-0");
	snprintf(cmd, sizeof(cmd), "rm -r %s", root);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(containerfile_bundle(podman, strlen(podman), &n), 0);
	assert_null(n.name);
	assert_string_equal(n.service, "db");
	assert_string_equal(
		n.labels,
		"{\"io.podman.compose.project\":\"lab\",\"io.podman.compose.service\":\"db\"}");
	container_names_release(&n);
}

TEST(a_home_is_read_from_passwd)
{
	static const char passwd[] =
		"root:x:0:0:root:/root:/bin/sh\n\n+::::::\nbad:x:12\nann:x:1000:1000:A,,:/home/user:/bin/sh\n"
		"rel:x:1001:1001::home/rel:\nlast:x:1002:1002::/home/last:";
	static const struct {
		uint32_t uid;
		const char *home;
	} table[] = {{0, "/root"}, {1000, "/home/user"}, {100, ""},           {10001, ""},
		     {12, ""},     {1001, ""},           {1002, "/home/last"}};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		char home[24] = "";

		assert_int_equal(containerfile_home(passwd, strlen(passwd), table[i].uid, home,
						    sizeof(home)),
				 *table[i].home ? 0 : -ENOENT);
		assert_string_equal(home, table[i].home);
	}
}

TEST(an_unknown_container_is_refused_with_those_that_are_there)
{
	struct container_found f;
	struct err e = {0};

	assert_int_equal(container_resolve("no-such-container", &f, &e), -ENOENT);
	assert_int_equal(e.exit, EXIT_USAGE);
	assert_non_null(strstr(e.what, "no container 'no-such-container' is running"));
	assert_true(e.fix[0]);
}

static const char *v2_mount(void)
{
	if (!access("/sys/fs/cgroup/cgroup.procs", F_OK))
		return "/sys/fs/cgroup";
	return access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) ? NULL :
								     "/sys/fs/cgroup/unified";
}

static bool has_id(const uint64_t *ids, size_t n, uint64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}

/* A cgroup named as a container's, with a process in a cgroup below it, on the real hierarchy. */
TEST(a_container_is_found_by_the_beginning_of_its_id)
{
	static const char id[] = "5011de50"
				 "5011de50"
				 "5011de50"
				 "5011de50"
				 "5011de50"
				 "5011de50"
				 "5011de50"
				 "5011de50";
	char dir[256], below[300], procs[320], pid_text[32], path[512] = "";
	struct container_found f;
	struct err e = {0};
	struct stat st, st_below;
	pid_t pid;

	if (geteuid() || !v2_mount())
		skip_missing("root, or a cgroup2 mount");
	snprintf(dir, sizeof(dir), "%s/docker-%s.scope", v2_mount(), id);
	snprintf(below, sizeof(below), "%s/below", dir);
	if (mkdir(dir, 0755) || mkdir(below, 0755)) {
		rmdir(dir);
		skip_missing("the right to make a cgroup");
	}
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", below);
	snprintf(pid_text, sizeof(pid_text), "%d\n", pid);
	write_file(procs, pid_text);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(stat(below, &st_below), 0);

	assert_int_equal(container_resolve("5011de505011", &f, &e), 0);
	assert_string_equal(f.ref.id, id);
	assert_string_equal(f.ref.runtime, "docker");
	assert_int_equal(f.n_cgroup_ids, 2);
	assert_true(has_id(f.cgroup_ids, 2, st.st_ino) && has_id(f.cgroup_ids, 2, st_below.st_ino));
	assert_int_equal(f.n_pids, 1);
	assert_int_equal(f.pids[0], pid);
	container_found_release(&f);

	assert_int_equal(container_cgroup_path(st_below.st_ino, 0, path, sizeof(path)), 0);
	assert_string_equal(path, below + strlen(v2_mount()));
	assert_int_not_equal(container_cgroup_path(0xdead0000beefull, 0, path, sizeof(path)), 0);

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	rmdir(below);
	rmdir(dir);
}

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# image: the static programs as a container image from scratch: image.sh BUILD VERSION leaves BUILD/sonde-VERSION-x86_64.image.tar.xz, which
# `docker load` and `podman load` read (the layout of `docker save`; moby's image specification 1.2). No registry and no engine is needed.
# Two runs give the same bytes: names are sorted, all times are that of debian/changelog.
set -eu
cd "$(dirname "$0")/.."
build=$1 version=$2
from=$build/tarball/sonde-$version-x86_64
work=$build/image
root=$work/root
stamp=$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)
when=$(date -d "$stamp" +%s)
archive() { tar --sort=name --mtime="@$when" --owner=0 --group=0 --numeric-owner --format=gnu "$@"; }

rm -rf "$work"
mkdir -p "$root/bin" "$root/libexec/sonde" "$root/etc/sonde" "$root/var/lib/sonde" "$root/tmp" "$root/share/doc" "$work/image"
cp "$from"/bin/* "$root/bin/"
cp "$from"/libexec/sonde/* "$root/libexec/sonde/"
rm -f "$root/libexec/sonde/sonde-debuginfod" "$root/libexec/sonde/sonde-nvml" "$root/libexec/sonde/sonde-push" # those that need the host's libraries
cp -r "$from/share/doc/sonde" "$root/share/doc/"
printf 'root:x:0:0:root:/:/sbin/nologin\n' >"$root/etc/passwd"
printf 'root:x:0:\n' >"$root/etc/group"
chmod -R go=rX "$root"
chmod 1777 "$root/tmp"
chmod 0750 "$root/var/lib/sonde"

archive -C "$root" -cf "$work/layer.tar" bin etc libexec share tmp var
layer=$(sha256sum "$work/layer.tar" | cut -d ' ' -f 1)
mkdir "$work/image/$layer"
mv "$work/layer.tar" "$work/image/$layer/layer.tar"
created=$(date -u -d "@$when" +%Y-%m-%dT%H:%M:%SZ)
sed "s|@layer@|$layer|; s|@created@|$created|g; s|@version@|$version|g" packaging/container/config.json >"$work/config.json"
config=$(sha256sum "$work/config.json" | cut -d ' ' -f 1)
mv "$work/config.json" "$work/image/$config.json"
printf '[{"Config":"%s.json","RepoTags":["sonde:%s","sonde:latest"],"Layers":["%s/layer.tar"]}]\n' "$config" "$version" "$layer" >"$work/image/manifest.json"
archive -C "$work/image" -c . | xz -9e -T1 >"$build/sonde-$version-x86_64.image.tar.xz"
sed "s|@version@|$version|g" packaging/container/compose.yaml >"$build/sonde-$version.compose.yaml"
rm -rf "$work"
ls -l "$build/sonde-$version-x86_64.image.tar.xz"

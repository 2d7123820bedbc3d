#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: what sonde-nvml says.
set -eu
out=$1/gpuparse_fuzz
mkdir -p "$out"
printf 'driver 535.104.05\nlibrary 12.535\ndevices 2\nmissing nvmlDeviceGetSamples\nready\n' >"$out/hello"
printf 'error no driver\nfix load it\n' >"$out/error"
printf 'device GPU-1\ngpu 0\nname A100\nbusy_us 5\nmem_used 4096\nprocess 7 1 4096 10 - 30 40\ndone\nend\n' >"$out/device"

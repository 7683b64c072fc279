#!/usr/bin/env bash
# Makes the bundle that is carried to a machine with a GPU: the program, its modules for CUDA and NCCL, the tests that
# need a GPU, and the scripts. That machine needs libc, a driver and, for training, cuBLASLt (and NCCL for --backend nccl).
#   bash tools/gpu_bundle.sh FOLDER [BUILD]      (build/cuda unless given)
# There: `bash tools/gpu_run.sh smoke results` in FOLDER. The exit status is 1 if the bundle has more than 64 MiB, or a
# file in it needs a library that such a machine may lack.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:?usage: gpu_bundle.sh FOLDER [BUILD]}
build=${2:-build/cuda}
max_bytes=$((64 * 1024 * 1024))

mkdir -p "$folder/tests" "$folder/tools"
carried=()
carry() {  # FILE TO: without symbols
  cp "$build/$1" "$folder/$2"
  strip --strip-unneeded "$folder/$2"
  carried+=("$folder/$2")
}
carry bubblescope bubblescope
carry bubblescope_cuda.so bubblescope_cuda.so
carry tests/gpu_tests tests/gpu_tests
if [ -e "$build/bubblescope_nccl.so" ]; then
  carry bubblescope_nccl.so bubblescope_nccl.so
else
  echo "gpu_bundle.sh: there is no bubblescope_nccl.so in $build; --backend nccl cannot run from this bundle" >&2
fi
cp tools/gpu_run.sh tools/gpu_sections.sh tools/gpu_summary.py tools/gpu_attention.py tools/gpu_nccl.sh "$folder/tools/"

sound=true
for file in "${carried[@]}"; do
  allowed='^(libc|libm|libdl|libpthread|librt|ld-linux-x86-64|ld-linux-aarch64)\.so'
  [ "${file##*/}" != bubblescope_nccl.so ] || allowed="$allowed|^libnccl\.so\.2$"  # it is opened for --backend nccl only
  for library in $(readelf --dynamic "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    if ! grep -qE "$allowed" <<< "$library"; then
      echo "gpu_bundle.sh: ${file##*/} needs $library, which the other machine may lack" >&2
      sound=false
    fi
  done
done
bytes=$(du --bytes --summarize "$folder" | cut -f1)
echo "$folder: $((bytes / 1024)) KiB"
if [ "$bytes" -gt "$max_bytes" ]; then
  echo "gpu_bundle.sh: the bundle has more than $((max_bytes / 1024 / 1024)) MiB" >&2
  sound=false
fi
$sound

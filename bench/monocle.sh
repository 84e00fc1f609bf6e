#!/usr/bin/env bash
# Measures the Monocle operator next to the same one written with controller-runtime and with kube-rs alone.
# usage: bench/monocle.sh [BIN] [-- OPTIONS of windlass-bench-monocle]
# With BIN, a folder with kube-apiserver, etcd and kube-controller-manager, on those; else on the drydock.
set -euo pipefail
cd "$(dirname "$0")/.."
REAL=()
if [ $# -gt 0 ] && [ "$1" != -- ]; then
  REAL=(--real "$1")
  shift
fi
[ "${1:-}" != -- ] || shift
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cargo build --release -p windlass-bench-monocle -p monocle-kube-rs
# As a user of the framework ships it: small.
cargo build --profile ship -p monocle-windlass

GO=()
if command -v go >/dev/null; then
  (cd bench/peers/monocle-controller-runtime && go build -o "$WORK/monocle-controller-runtime" .)
  GO=(--operator "monocle-controller-runtime=$WORK/monocle-controller-runtime --workers 8")
else
  echo "there is no Go: measuring without controller-runtime"
fi
# Copies: a build that goes on beside it would replace the programs.
cp target/ship/monocle-windlass target/release/monocle-kube-rs "$WORK"
./target/release/windlass-bench-monocle "${REAL[@]}" \
  --operator "monocle-windlass=$WORK/monocle-windlass" "${GO[@]}" \
  --operator "monocle-kube-rs=$WORK/monocle-kube-rs --workers 8" "$@"

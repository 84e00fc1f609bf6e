#!/usr/bin/env bash
# Measures the drydock's API server next to kube-apiserver + etcd from the folder BIN, where it is given.
# usage: bench/apiserver.sh [BIN] [-- OPTIONS of windlass-bench-apiserver]
set -euo pipefail
cd "$(dirname "$0")/.."
BIN=
if [ $# -gt 0 ] && [ "$1" != -- ]; then BIN=$1; shift; fi
[ "${1:-}" != -- ] || shift
WORK=$(mktemp -d)
PIDS=()
trap 'kill "${PIDS[@]}" 2>/dev/null || true; tools/control-plane.sh stop "$WORK/peer"; rm -rf "$WORK"' EXIT
cargo build --release -p windlass-cli -p windlass-bench-apiserver
# A file for each of ten thousand watchers.
ulimit -n "$(ulimit -Hn)"
memory() { cat "${@/%//status}" | awk '/VmRSS/ {sum += $2} END {print int(sum / 1024)}'; }

begin=$(date +%s%N)
./target/release/windlass drydock --kubeconfig "$WORK/drydock.kubeconfig" >"$WORK/drydock.log" & PIDS+=($!)
until grep -q ready "$WORK/drydock.log"; do sleep 0.002; done
echo "drydock ready after $((($(date +%s%N) - begin) / 1000000)) ms, $(memory "/proc/${PIDS[0]}") MB"

PEER=()
if [ -n "$BIN" ]; then
  # Without controllers, although the drydock has its own.
  CONTROLLERS=0 tools/control-plane.sh start "$BIN" "$WORK/peer" 23443
  servers=("$(cat "$WORK/peer/apiserver.pid")" "$(cat "$WORK/peer/etcd.pid")")
  echo "peer ready, $(memory "${servers[@]/#//proc/}") MB"
  PEER=(--peer "$WORK/peer/kubeconfig" --peer-pid "${servers[0]},${servers[1]}")
fi
./target/release/windlass-bench-apiserver "$WORK/drydock.kubeconfig" --pid "${PIDS[0]}" "${PEER[@]}" "$@"

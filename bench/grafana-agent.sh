#!/usr/bin/env bash
# Measures the Grafana Agent operator, a process of its own, against the drydock; or against kube-apiserver + etcd from
# the folder BIN, where it is given.
# usage: bench/grafana-agent.sh [BIN] [-- arguments of the benchmark]
set -euo pipefail
cd "$(dirname "$0")/.."
BIN=
if [ $# -gt 0 ] && [ "$1" != -- ]; then BIN=$1; shift; fi
if [ $# -gt 0 ]; then shift; fi
WORK=$(mktemp -d)
PIDS=()
trap 'kill "${PIDS[@]}" 2>/dev/null || true; tools/control-plane.sh stop "$WORK/peer"; wait; rm -rf "$WORK"' EXIT
cargo build --release -p windlass-cli -p windlass-bench-grafana-agent

if [ -z "$BIN" ]; then
  ./target/release/windlass drydock --kubeconfig "$WORK/kubeconfig" >"$WORK/drydock.log" & PIDS+=($!)
  until grep -q ready "$WORK/drydock.log"; do sleep 0.01; done
  CONFIG=$WORK/kubeconfig
else
  CONTROLLERS=0 tools/control-plane.sh start "$BIN" "$WORK/peer" 23444
  CONFIG=$WORK/peer/kubeconfig
fi
./target/release/windlass-bench-grafana-agent "$CONFIG" "$@"

#!/usr/bin/env bash
# Measures the checkup controller with 200 Checkups at once on the drydock. Pods are simulated and take a second; the
# benchmark plays the checkups.
# usage: bench/kiagnose.sh [COUNT]
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release -p windlass-bench-kiagnose
./target/release/windlass-bench-kiagnose "${1:-200}"

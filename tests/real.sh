#!/usr/bin/env bash
# Runs the end-to-end tests on a real kube-apiserver, whose pods the drydock's node drives.
#
#   tests/real.sh BIN                    starts kube-apiserver, etcd and kube-controller-manager of the folder BIN
#   tests/real.sh --kubeconfig FILE      uses a cluster that runs; it must have no nodes of its own
#
# `tools/control-plane.sh build BIN` makes the folder. Further arguments go to `cargo test`, such as a test's name.
set -euo pipefail
cd "$(dirname "$0")/.."

STATE=
finish() { [ -z "$STATE" ] || { tools/control-plane.sh stop "$STATE"; rm -rf "$STATE"; }; }
trap finish EXIT

case ${1:-} in
  --kubeconfig) export WINDLASS_E2E_KUBECONFIG=$(realpath "${2:?name a kubeconfig}"); shift 2 ;;
  '') sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2 ;;
  *)
    for program in kube-apiserver etcd kube-controller-manager; do
      [ -x "$1/$program" ] || { echo "skipped: there is no $program in $1; make it with: tools/control-plane.sh build $1"; exit 0; }
    done
    STATE=$(mktemp -d)
    tools/control-plane.sh start "$1" "$STATE" "${PORT:-26443}"
    export WINDLASS_E2E_KUBECONFIG=$STATE/kubeconfig
    shift ;;
esac

failed=()
for suite in windlass-testkit windlass-monocle windlass-kiagnose; do
  echo "== $suite"
  cargo test -p "$suite" --test e2e "$@" || failed+=("$suite")
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed on the real cluster: ${failed[*]}"
  exit 1
fi
echo "all end-to-end tests passed on the real cluster"

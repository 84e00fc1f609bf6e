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
trap 'kill "${PIDS[@]}" 2>/dev/null || true; wait; rm -rf "$WORK"' EXIT
cargo build --release -p windlass-cli -p windlass-bench-grafana-agent

if [ -z "$BIN" ]; then
  ./target/release/windlass drydock --kubeconfig "$WORK/kubeconfig" >"$WORK/drydock.log" & PIDS+=($!)
  until grep -q ready "$WORK/drydock.log"; do sleep 0.01; done
else
  ROOT=$PWD
  cd "$WORK"
  openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=ca 2>/dev/null
  sign() {
    openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -out "$1.crt" -days 2 -extfile <(echo "$3") 2>/dev/null
  }
  sign server /CN=kube-apiserver subjectAltName=IP:127.0.0.1,DNS:localhost
  sign admin /O=system:masters/CN=admin extendedKeyUsage=clientAuth
  openssl genrsa -out sa.key 2048 2>/dev/null
  "$BIN/etcd" --data-dir etcd --listen-client-urls http://127.0.0.1:23791 --advertise-client-urls http://127.0.0.1:23791 --listen-peer-urls http://127.0.0.1:23801 --unsafe-no-fsync >etcd.log 2>&1 & PIDS+=($!)
  "$BIN/kube-apiserver" --etcd-servers=http://127.0.0.1:23791 --bind-address=127.0.0.1 --secure-port=23444 --tls-cert-file=server.crt --tls-private-key-file=server.key --client-ca-file=ca.crt --service-account-key-file=sa.key --service-account-signing-key-file=sa.key --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=10.0.0.0/16 --authorization-mode=RBAC --endpoint-reconciler-type=none >apiserver.log 2>&1 & PIDS+=($!)
  until curl -sf --cacert ca.crt --cert admin.crt --key admin.key https://127.0.0.1:23444/readyz >/dev/null 2>&1; do sleep 0.05; done
  cat >kubeconfig <<K
apiVersion: v1
kind: Config
clusters: [{name: p, cluster: {server: "https://127.0.0.1:23444", certificate-authority: $WORK/ca.crt}}]
users: [{name: a, user: {client-certificate: $WORK/admin.crt, client-key: $WORK/admin.key}}]
contexts: [{name: p, context: {cluster: p, user: a}}]
current-context: p
K
  cd "$ROOT"
fi
./target/release/windlass-bench-grafana-agent "$WORK/kubeconfig" "$@"

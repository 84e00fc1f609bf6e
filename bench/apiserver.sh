#!/usr/bin/env bash
# Measures the drydock's API server next to kube-apiserver + etcd from the folder BIN, where it is given.
# usage: bench/apiserver.sh [BIN]
set -euo pipefail
cd "$(dirname "$0")/.."
BIN=${1:-}
WORK=$(mktemp -d)
PIDS=()
trap 'kill "${PIDS[@]}" 2>/dev/null || true; rm -rf "$WORK"' EXIT
cargo build --release -p windlass-cli -p windlass-bench-apiserver

begin=$(date +%s%N)
./target/release/windlass drydock --kubeconfig "$WORK/drydock.kubeconfig" >"$WORK/drydock.log" & PIDS+=($!)
until grep -q ready "$WORK/drydock.log"; do sleep 0.002; done
echo "drydock ready after $((($(date +%s%N) - begin) / 1000000)) ms, $(awk '/VmRSS/ {print int($2 / 1024)}' "/proc/${PIDS[0]}/status") MB"

PEER=()
if [ -x "$BIN/kube-apiserver" ] && [ -x "$BIN/etcd" ]; then
  cd "$WORK"
  openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=ca 2>/dev/null
  sign() {
    openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -out "$1.crt" -days 2 -extfile <(echo "$3") 2>/dev/null
  }
  sign server /CN=kube-apiserver subjectAltName=IP:127.0.0.1,DNS:localhost
  sign admin /O=system:masters/CN=admin extendedKeyUsage=clientAuth
  openssl genrsa -out sa.key 2048 2>/dev/null
  begin=$(date +%s%N)
  "$BIN/etcd" --data-dir etcd --listen-client-urls http://127.0.0.1:23790 --advertise-client-urls http://127.0.0.1:23790 --listen-peer-urls http://127.0.0.1:23800 --unsafe-no-fsync >etcd.log 2>&1 & PIDS+=($!)
  "$BIN/kube-apiserver" --etcd-servers=http://127.0.0.1:23790 --bind-address=127.0.0.1 --secure-port=23443 --tls-cert-file=server.crt --tls-private-key-file=server.key --client-ca-file=ca.crt --service-account-key-file=sa.key --service-account-signing-key-file=sa.key --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=10.0.0.0/16 --authorization-mode=RBAC --endpoint-reconciler-type=none >apiserver.log 2>&1 & PIDS+=($!)
  until curl -sf --cacert ca.crt --cert admin.crt --key admin.key https://127.0.0.1:23443/readyz >/dev/null 2>&1; do sleep 0.05; done
  echo "peer ready after $((($(date +%s%N) - begin) / 1000000)) ms, $(cat "/proc/${PIDS[1]}/status" "/proc/${PIDS[2]}/status" | awk '/VmRSS/ {sum += $2} END {print int(sum / 1024)}') MB"
  cat >peer.kubeconfig <<K
apiVersion: v1
kind: Config
clusters: [{name: p, cluster: {server: "https://127.0.0.1:23443", certificate-authority: $WORK/ca.crt}}]
users: [{name: a, user: {client-certificate: $WORK/admin.crt, client-key: $WORK/admin.key}}]
contexts: [{name: p, context: {cluster: p, user: a}}]
current-context: p
K
  cd - >/dev/null
  PEER=(--peer "$WORK/peer.kubeconfig")
elif [ -n "$BIN" ]; then
  echo "no kube-apiserver and etcd in $BIN: measuring the drydock alone"
fi
./target/release/windlass-bench-apiserver "$WORK/drydock.kubeconfig" "${PEER[@]}"
echo "drydock memory afterwards: $(awk '/VmRSS/ {print int($2 / 1024)}' "/proc/${PIDS[0]}/status") MB"

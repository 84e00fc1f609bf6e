#!/usr/bin/env bash
# A real Kubernetes control plane on loopback, without containers or root: kube-apiserver, etcd and
# kube-controller-manager. It has no node: `windlass node` is one.
#
#   tools/control-plane.sh build BIN                 builds them into the folder BIN from the Go module proxy (Go needed)
#   tools/control-plane.sh start BIN STATE [PORT]    starts them; STATE/kubeconfig leads to it. PORT and the next three
#                                                    are used, 26443 unless told otherwise. With AUDIT=1 every request
#                                                    is written to STATE/audit.log, with CONTROLLERS=0 there is no
#                                                    kube-controller-manager
#   tools/control-plane.sh stop STATE                stops them
set -euo pipefail

KUBERNETES=${KUBERNETES:-1.36.3}
ETCD=${ETCD:-3.6.5}

build() {
  local bin work minor
  bin=$(mkdir -p "$1" && cd "$1" && pwd)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' RETURN
  minor=${KUBERNETES#1.}
  mkdir "$work/kubernetes" "$work/etcd"

  cd "$work/kubernetes"
  go mod init control-plane 2>/dev/null
  go mod edit -require "k8s.io/kubernetes@v$KUBERNETES"
  # The module k8s.io/kubernetes wants its libraries from folders beside it; they are published as v0.<the same>.
  local theirs library
  theirs=$(go mod download -json "k8s.io/kubernetes@v$KUBERNETES" | sed -n 's/^\s*"GoMod": "\(.*\)",\?$/\1/p')
  for library in $(sed -n 's/^\s*\(k8s\.io\/[a-z-]*\) v0\.0\.0$/\1/p' "$theirs" | sort -u); do
    go mod edit -replace "$library=$library@v0.$minor"
  done
  cat >programs.go <<'GO'
//go:build tools

package controlplane

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
GO
  go mod tidy
  local version=k8s.io/component-base/version program
  for program in kube-apiserver kube-controller-manager; do
    echo "building $program"
    go build -trimpath -o "$bin/" \
      -ldflags "-s -w -X $version.gitVersion=v$KUBERNETES -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}" \
      "k8s.io/kubernetes/cmd/$program"
  done

  cd "$work/etcd"
  go mod init etcd 2>/dev/null
  go get "go.etcd.io/etcd/server/v3@v$ETCD"
  echo "building etcd"
  go build -trimpath -ldflags "-s -w" -o "$bin/etcd" go.etcd.io/etcd/server/v3
}

start() {
  local bin state port=${3:-26443} program programs=(etcd kube-apiserver)
  [ "${CONTROLLERS:-1}" = 0 ] || programs+=(kube-controller-manager)
  for program in "${programs[@]}"; do
    [ -x "$1/$program" ] || { echo "there is no $program in $1; make it with: $0 build $1" >&2; exit 1; }
  done
  bin=$(cd "$1" && pwd)
  state=$(mkdir -p "$2" && cd "$2" && pwd)
  cd "$state"
  rm -rf etcd audit.log
  [ -f ca.crt ] || certificates
  cat >kubeconfig <<YAML
apiVersion: v1
kind: Config
clusters: [{name: real, cluster: {server: "https://127.0.0.1:$port", certificate-authority: $state/ca.crt}}]
users: [{name: admin, user: {client-certificate: $state/admin.crt, client-key: $state/admin.key}}]
contexts: [{name: real, context: {cluster: real, user: admin}}]
current-context: real
YAML
  local audit=()
  if [ -n "${AUDIT:-}" ]; then
    printf 'apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n' >audit.yaml
    audit=(--audit-policy-file=audit.yaml --audit-log-path=audit.log --audit-log-mode=blocking)
  fi
  local begin
  begin=$(date +%s%N)
  "$bin/etcd" --data-dir etcd --unsafe-no-fsync --quota-backend-bytes=6000000000 \
    --listen-client-urls "http://127.0.0.1:$((port + 1))" --advertise-client-urls "http://127.0.0.1:$((port + 1))" \
    --listen-peer-urls "http://127.0.0.1:$((port + 2))" >etcd.log 2>&1 &
  echo $! >etcd.pid
  "$bin/kube-apiserver" --etcd-servers="http://127.0.0.1:$((port + 1))" --bind-address=127.0.0.1 \
    --advertise-address=127.0.0.1 --secure-port="$port" --tls-cert-file=server.crt --tls-private-key-file=server.key \
    --client-ca-file=ca.crt --service-account-key-file=sa.key --service-account-signing-key-file=sa.key \
    --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=10.0.0.0/16 \
    --authorization-mode=RBAC --endpoint-reconciler-type=none --allow-privileged=true "${audit[@]}" >apiserver.log 2>&1 &
  echo $! >apiserver.pid
  local turn
  for turn in $(seq 1200); do
    curl -sf --cacert ca.crt --cert admin.crt --key admin.key "https://127.0.0.1:$port/readyz" >/dev/null 2>&1 && break
    kill -0 "$(cat apiserver.pid)" 2>/dev/null && [ "$turn" -lt 1200 ] || { echo "kube-apiserver did not come up; see $state/apiserver.log" >&2; stop "$state"; exit 1; }
    sleep 0.05
  done
  if [ "${CONTROLLERS:-1}" = 0 ]; then
    echo "API server on https://127.0.0.1:$port after $((($(date +%s%N) - begin) / 1000000)) ms with kubeconfig $state/kubeconfig"
    return
  fi
  # The node's own binder makes volumes; two would be in each other's way.
  "$bin/kube-controller-manager" --kubeconfig=kubeconfig --service-account-private-key-file=sa.key --root-ca-file=ca.crt \
    --use-service-account-credentials=true --leader-elect=false --controllers='*,-persistentvolume-binder-controller' \
    --kube-api-qps=1000 --kube-api-burst=2000 --concurrent-statefulset-syncs=20 --concurrent-deployment-syncs=20 \
    --concurrent-replicaset-syncs=20 --secure-port=$((port + 3)) --bind-address=127.0.0.1 >controllers.log 2>&1 &
  echo $! >controllers.pid
  echo "control plane on https://127.0.0.1:$port with kubeconfig $state/kubeconfig"
}

# An authority, and certificates of the server and of somebody who may do everything.
certificates() {
  openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 30 -subj /CN=ca 2>/dev/null
  certificate server /CN=kube-apiserver subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc
  certificate admin /O=system:masters/CN=admin extendedKeyUsage=clientAuth
  openssl genrsa -out sa.key 2048 2>/dev/null
}

certificate() {
  openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -out "$1.crt" -days 30 -extfile <(echo "$3") 2>/dev/null
}

stop() {
  local file pid
  for file in "$1"/controllers.pid "$1"/apiserver.pid "$1"/etcd.pid; do
    [ -f "$file" ] || continue
    pid=$(cat "$file")
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
    rm "$file"
  done
}

case ${1:-} in
  build) [ $# -eq 2 ] && build "$2" ;;
  start) [ $# -ge 3 ] && start "${@:2}" ;;
  stop) [ $# -eq 2 ] && stop "$2" ;;
  *) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

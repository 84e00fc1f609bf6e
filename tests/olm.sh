#!/usr/bin/env bash
# Holds bundles and catalogs of `windlass` against OLM's own programs: the validators of operator-framework/api and
# operator-registry, and opm. Good ones must be good for both; a set of broken ones must be refused by both.
#
#   tests/olm.sh [TOOLS]    TOOLS is the folder of OLM's programs, target/olm unless told otherwise. What is missing in it
#                           is built from the Go module proxy, which takes some minutes and needs Go and a C compiler.
#
# CARGO is the cargo to use.
set -euo pipefail
cd "$(dirname "$0")/.."

API=${API:-0.41.0}
REGISTRY=${REGISTRY:-1.64.0}
CARGO=${CARGO:-cargo}
tools=${1:-target/olm}

# Versions are named one by one: nothing is asked from the proxy that it might not list.
build() {
  mkdir -p "$tools/source"
  cp tests/olm/verify.go "$tools/source/verify.go"
  cat >"$tools/source/opm.go" <<'GO'
//go:build tools

package main

import _ "github.com/operator-framework/operator-registry/cmd/opm"
GO
  (
    cd "$tools/source"
    [ -f go.mod ] || go mod init olm 2>/dev/null
    go mod edit -require "github.com/operator-framework/api@v$API" \
      -require "github.com/operator-framework/operator-registry@v$REGISTRY"
    go mod tidy
    tags=json1,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper,containers_image_openpgp
    go build -trimpath -tags "$tags" -o ../opm github.com/operator-framework/operator-registry/cmd/opm
    go build -trimpath -tags "$tags" -o ../verify .
  )
}

if [ ! -x "$tools/opm" ] || [ ! -x "$tools/verify" ] || [ tests/olm/verify.go -nt "$tools/verify" ]; then
  if ! command -v go >/dev/null; then
    echo "skipped: OLM's programs are not in $tools, and Go is not installed to build them"
    exit 0
  fi
  echo "building OLM's programs into $tools"
  build
fi
opm=$(realpath "$tools/opm") verify=$(realpath "$tools/verify")

"$CARGO" build -q -p windlass-cli
windlass=$(realpath "${CARGO_TARGET_DIR:-target}/debug/windlass")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
complain() { echo "DIFFERENT: $*"; failures=$((failures + 1)); }

echo "== bundles and the catalog of all operators"
image=registry.example.org/bundle:1
for operator in kiagnose monocle grafana-agent; do
  for version in 0.1.0 0.2.0; do
    replaces=()
    [ $version = 0.1.0 ] || replaces=(--replaces 0.1.0)
    for flags in "" --webhooks --shards; do
      dir=$work/bundles/$operator/$version$flags
      "$windlass" bundle $operator --version $version "${replaces[@]}" $flags --image registry.example.org/windlass:$version \
        --output "$dir" >"$work/ours" 2>"$work/next" || complain "windlass refuses its own bundle: $(cat "$work/ours")"
      "$verify" bundles "$dir" >"$work/theirs" || true
      grep -q "errors=0 warnings=0" "$work/theirs" || complain "OLM's validators on $operator $flags: $(cat "$work/theirs")"
    done
    "$windlass" catalog add "$work/bundles/$operator/$version" --bundle-image "$image" --catalog "$work/catalog" 2>/dev/null
  done
  "$verify" same "$work/catalog" "$image" "$work/bundles/$operator/0.1.0" "$work/bundles/$operator/0.2.0" ||
    complain "the catalog of $operator"
done
"$windlass" catalog validate "$work/catalog" || complain "windlass refuses its own catalog"
"$opm" validate "$work/catalog" && echo "opm validate: good" || complain "opm refuses the catalog"

echo "== broken bundles, one for each rule"
WINDLASS_BROKEN_BUNDLES=$work/broken "$CARGO" test -q -p windlass-cli each_rule_finds_what_it_is_for >"$work/test" 2>&1 ||
  { cat "$work/test"; exit 1; }
for dir in "$work"/broken/*/*; do
  rule=$(basename "$dir")
  "$verify" bundles "$dir" >"$work/theirs" 2>&1 || true
  numbers=$(tail -1 "$work/theirs")
  case $dir in
    */error/*) expected='errors=[1-9]' ;;
    */warning/*) expected='errors=0 warnings=[1-9]' ;;
    # Rules of our own, which OLM's validators do not have.
    */alone/*) expected='errors=0' ;;
  esac
  if grep -Eq "$expected" <<<"$numbers"; then
    case $dir in
      */alone/*) echo "only windlass refuses $rule" ;;
      *) echo "both find $rule" ;;
    esac
  else
    complain "$rule: OLM's validators say: $(cut -c1-300 "$work/theirs")"
  fi
done

echo "== broken catalogs"
file=kiagnose-operator/catalog.yaml
broken() {
  rm -rf "$work/other"
  cp -r "$work/catalog" "$work/other"
  sed -i "$2" "$work/other/$file"
  cmp -s "$work/catalog/$file" "$work/other/$file" && complain "nothing was broken: $1"
  "$windlass" catalog validate "$work/other" >"$work/ours" && complain "windlass takes a catalog with $1"
  "$opm" validate "$work/other" 2>"$work/theirs" && complain "opm takes a catalog with $1"
  echo "both refuse $1"
}
broken "two ends of a channel" '/replaces: kiagnose-operator.v0.1.0/d'
broken "a circle" 's/^\( *\)- name: kiagnose-operator.v0.1.0$/&\n\1  replaces: kiagnose-operator.v0.2.0/'
broken "an unknown default channel" 's/^defaultChannel: .*/defaultChannel: nowhere/'
broken "an entry without a bundle" 's/^name: kiagnose-operator.v0.1.0$/name: kiagnose-operator.v0.0.1/'
broken "a bundle without its version" 's/^\( *\)version: "0.1.0"$/\1version: "1"/'

if [ $failures -gt 0 ]; then
  echo "$failures differences between windlass and OLM"
  exit 1
fi
echo "windlass and OLM agree"

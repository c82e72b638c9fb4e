#!/usr/bin/env bash
# The benchmark on Google Kubernetes Engine, step by step; docs/howto/gke.md says what they cost.
#   PROJECT=my-project infra/gke.sh create|images|kafka|run|delete [targets, after images; arguments of `tailpack dev bench cluster`, after run]
#   DRY_RUN=1 prints the commands and runs none. REGION, ZONE, CLUSTER, NODES, MACHINE: see below.
#   For an existing cluster: CONTEXT of the kubeconfig, REGISTRY, PUSH (command that pushes an image) and OVERLAY instead of PROJECT.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "gke.sh: $*" >&2; exit 1; }

step=${1:-}
[ -n "$step" ] || fail "no step given; use create, images, kafka, run or delete"
shift
there=${CONTEXT:+${REGISTRY:-}}
[ -n "${PROJECT:-}$there" ] || fail "set PROJECT to the id of a Google Cloud project with billing, or CONTEXT and REGISTRY"
region=${REGION:-us-central1} zone=${ZONE:-${REGION:-us-central1}-a} cluster=${CLUSTER:-tailpack}
nodes=${NODES:-5} machine=${MACHINE:-e2-standard-4}
registry=${REGISTRY:-$region-docker.pkg.dev/${PROJECT:-}/tailpack}
context=${CONTEXT:-gke_${PROJECT:-}_${zone}_$cluster}
overlay=${OVERLAY:-infra/k8s/overlays/gke}
read -ra push <<<"${PUSH:-docker push}"

do_it() {
  if [ -n "${DRY_RUN:-}" ]; then printf '%q ' "$@"; echo; return; fi
  command -v "$1" >/dev/null || fail "$1 is not installed or not in PATH"
  "$@"
}

case $step in
  create | delete)
    [ -z "${CONTEXT:-}" ] || fail "this script cannot $step $CONTEXT, because it did not create it; use your own tools"
    ;;&
  create)
    do_it gcloud services enable container.googleapis.com artifactregistry.googleapis.com --project "$PROJECT"
    do_it gcloud container clusters create "$cluster" --project "$PROJECT" --zone "$zone" --num-nodes "$nodes" \
      --machine-type "$machine" --enable-dataplane-v2 --release-channel regular
    do_it gcloud container clusters get-credentials "$cluster" --project "$PROJECT" --zone "$zone"
    ;;
  images)
    platform=()
    if [ -z "${REGISTRY:-}" ]; then
      platform=(--platform linux/amd64)
      if [ -n "${DRY_RUN:-}" ] || ! gcloud artifacts repositories describe tailpack --project "$PROJECT" --location "$region" >/dev/null 2>&1; then
        do_it gcloud artifacts repositories create tailpack --project "$PROJECT" --location "$region" --repository-format docker
      fi
      do_it gcloud auth configure-docker "$region-docker.pkg.dev" --quiet
    fi
    [ $# -gt 0 ] || set -- tailpack report
    for target; do
      name=$registry/tailpack:0.1.0
      [ "$target" = tailpack ] || name=$registry/tailpack-report:0.1.0
      do_it docker build "${platform[@]}" --file infra/docker/Dockerfile --target "$target" --tag "$name" .
      do_it "${push[@]}" "$name"
    done
    ;;
  kafka)
    if [ ! -f "$overlay/strimzi.yaml" ]; then echo "$overlay contains its own Kafka: nothing to do"; exit; fi
    do_it kubectl --context "$context" create namespace kafka
    do_it kubectl --context "$context" --namespace kafka create -f "https://strimzi.io/install/latest?namespace=kafka"
    do_it kubectl --context "$context" --namespace kafka wait deployment/strimzi-cluster-operator --for=condition=Available --timeout=300s
    do_it kubectl --context "$context" apply -f "$overlay/strimzi.yaml"
    do_it kubectl --context "$context" --namespace kafka wait kafka/tailpack --for=condition=Ready --timeout=900s
    ;;
  run)
    do_it .venv/bin/python -m tailpack dev bench cluster --context "$context" --overlay "$overlay" \
      --image "$registry/tailpack:0.1.0" --report-image "$registry/tailpack-report:0.1.0" "$@"
    ;;
  delete)
    do_it gcloud container clusters delete "$cluster" --project "$PROJECT" --zone "$zone" --quiet
    do_it gcloud artifacts repositories delete tailpack --project "$PROJECT" --location "$region" --quiet
    ;;
  *) fail "unknown step $step; use create, images, kafka, run or delete" ;;
esac

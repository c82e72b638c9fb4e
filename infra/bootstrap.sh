#!/usr/bin/env bash
# bootstrap.sh VENV: create the environment with uv, or else venv and pip, and install everything.
#   bootstrap.sh VENV demo   install what the demo needs, without Spark, and run it
set -euo pipefail
venv=${1:-.venv} what=${2:-all}

fail() { echo "tailpack: $*" >&2; exit 1; }

python=""
for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
  if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$(command -v "$candidate"); break
  fi
done
[ -n "$python" ] || fail "Python 3.11 or newer is required, found $(python3 --version 2>&1 || echo none); install it: \`sudo apt-get install python3.11 python3.11-venv\` (Debian, Ubuntu) or \`brew install python@3.12\` (macOS)"

java_hint="install it: \`sudo apt-get install openjdk-17-jre-headless\` (Debian, Ubuntu) or \`brew install openjdk@17\` (macOS)"
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
command -v "$java" >/dev/null || fail "Java 17 or newer is required, $java was not found; $java_hint"
version=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1)
[ "${version:-0}" -ge 17 ] || fail "Java 17 or newer is required, $java is version ${version:-unknown}; $java_hint"

install() {  # takes the arguments of `pip install`
  if command -v uv >/dev/null; then uv pip install --quiet --python "$venv/bin/python" "$@"
  else "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; fi
}
newer() { [ -e "$venv/$1" ] && [ "$venv/$1" -nt pyproject.toml ] && [ "$venv/$1" -nt infra/bootstrap.sh ]; }

if [ ! -x "$venv/bin/python" ]; then
  if command -v uv >/dev/null; then uv venv --quiet --python "$python" "$venv"; else
    "$python" -m venv "$venv" || fail "$python lacks venv; install it: \`sudo apt-get install python3-venv\`"
  fi
fi

compile() {  # policies and simulator, if their sources are newer
  if [ ! -e "$venv/.compiled" ] || [ -n "$(find autoscaler -name '*.py' -newer "$venv/.compiled" -print -quit)" ]; then
    echo "tailpack: compiling the policies (once, about 30 s)"
    "$venv/bin/python" -m tailpack.first_run compile && touch "$venv/.compiled" || true  # on failure the first run compiles
  fi
}

if [ "$what" = all ]; then
  echo "tailpack: installing into $venv (once, about 1.5 GB, a third of it Spark)"
  install -e '.[load,bench,spark,keda,kubernetes,traces,lessons,dev]'
  compile
  touch "$venv/.demo" "$venv/.ready"
  exit
fi

if ! newer .demo; then
  echo "tailpack: installing the demo into $venv (once: 200 MB to download, 0.7 GB on disk)"
  install -e '.[load,bench]'
  "$venv/bin/tailpack" dev jars || true  # the demo retries and prints the error
  touch "$venv/.demo"
fi
compile
"$venv/bin/tailpack" demo

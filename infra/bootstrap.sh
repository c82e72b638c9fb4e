#!/usr/bin/env bash
# Make the environment: find a Python and a Java that will do, then install with uv if it is there, else venv and pip.
set -euo pipefail
venv=${1:-.venv}

fail() { echo "tailpack: $*" >&2; exit 1; }

python=""
for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
  if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$(command -v "$candidate"); break
  fi
done
[ -n "$python" ] || fail "Python 3.11 or newer is needed, found $(python3 --version 2>&1 || echo none); install it: \`sudo apt-get install python3.11 python3.11-venv\` (Debian, Ubuntu) or \`brew install python@3.12\` (macOS)"

java_hint="install it: \`sudo apt-get install openjdk-17-jre-headless\` (Debian, Ubuntu) or \`brew install openjdk@17\` (macOS)"
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
command -v "$java" >/dev/null || fail "Java 17 or newer is needed, $java was not found; $java_hint"
version=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1)
[ "${version:-0}" -ge 17 ] || fail "Java 17 or newer is needed, $java is version ${version:-unknown}; $java_hint"

echo "tailpack: installing into $venv (about 1.8 GB, a third of it Spark; once)"
if command -v uv >/dev/null; then
  [ -x "$venv/bin/python" ] || uv venv --quiet --python "$python" "$venv"
  uv pip install --quiet --python "$venv/bin/python" -e '.[load,bench,dev]'
else
  [ -x "$venv/bin/python" ] || "$python" -m venv "$venv" || fail "$python lacks venv; install it: \`sudo apt-get install python3-venv\`"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[load,bench,dev]'
fi

#!/bin/sh
# Create certificates and a login for one broker and its clients at the first start: a CA, which signs the broker's
# certificate and is then deleted, and a password. Only the broker mounts /broker; clients mount /tls.
set -eu
[ ! -e /tls/client.properties ] || exit 0
cd "$(mktemp -d)"
openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj "/CN=tailpack" -keyout ca.key -out ca.pem 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj "/CN=kafka" -keyout kafka.key -out kafka.csr 2>/dev/null
printf 'subjectAltName=DNS:kafka\nextendedKeyUsage=serverAuth\n' >kafka.ext
openssl x509 -req -in kafka.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 365 -extfile kafka.ext -out kafka.crt 2>/dev/null
password=$(openssl rand -hex 16)
cat kafka.key kafka.crt >/broker/kafka.pem
printf 'SCRAM-SHA-512=password=%s\n' "$password" >/broker/scram.properties
cp ca.pem /tls/ca.pem
printf '%s\n' "$password" >/tls/password
cat >/tls/client.properties <<'P'
security.protocol=SASL_SSL
ssl.ca.location=/tls/ca.pem
sasl.mechanism=SCRAM-SHA-512
sasl.username=tailpack
sasl.password.file=/tls/password
P
chmod a+r /broker/* /tls/*  # access is controlled by the volume

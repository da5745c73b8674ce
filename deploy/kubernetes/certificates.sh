#!/bin/sh
# Makes what the webhook and the API server know each other by, with a CA of its
# own that signs nothing else:
#
#   certificates.sh DIRECTORY [SERVICE [NAMESPACE]]
#
#   ca.crt ca.key           the CA; keep the key away from the cluster
#   tls.crt tls.key         the webhook's, for SERVICE.NAMESPACE.svc
#   client.crt client.key   the API server's, named kube-apiserver-weir
#   kueue.crt kueue.key     the Kueue controller's, named weir-kueue
#
# They hold for a year. Run it again to renew all but the CA.
set -eu
dir=${1:?usage: certificates.sh DIRECTORY [SERVICE [NAMESPACE]]}
host=${2:-weir}.${3:-weir}.svc
umask 077
mkdir -p "$dir"
cd "$dir"
if [ ! -e ca.crt ]; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -keyout ca.key -out ca.crt -subj /CN=weir-hook-ca \
		-addext basicConstraints=critical,CA:TRUE,pathlen:0 -addext keyUsage=critical,keyCertSign,cRLSign
fi
issue() { # file, common name, use, more extensions
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$2"
	printf 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=%s\n%s\n' "$3" "${4:-}" >"$1.ext"
	openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -out "$1.crt" -extfile "$1.ext"
	rm "$1.csr" "$1.ext"
}
issue tls "$host" serverAuth "subjectAltName=DNS:$host"
issue client kube-apiserver-weir clientAuth
issue kueue weir-kueue clientAuth

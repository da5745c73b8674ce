#!/bin/sh
# PrologSlurmctld=/etc/slurm/weir-prolog.sh: a job of a training partition starts
# only if the spec that its comment names is admitted now. Submit with
#   sbatch --comment "weir:$(sha256sum <train.yaml | cut -d' ' -f1)" job.sh
# A refused batch job goes back into the queue and is asked for again.
PATH=/usr/bin:/bin
set -u
. "${WEIR_ENV:-/etc/slurm/weir.env}" || exit 1 # WEIR_SERVER, WEIR_KEY, WEIR_PARTITIONS
say() {
	echo "weir gate: $1" >&2
	logger -t weir "$1" 2>/dev/null
}
closed() {
	say "closed: job ${SLURM_JOB_ID:-?}: $1"
	exit 1
}

[ -n "${SLURM_JOB_PARTITION:-}" ] || closed "SLURM_JOB_PARTITION is not set"
case " $WEIR_PARTITIONS " in
*" $SLURM_JOB_PARTITION "*) ;;
*) exit 0 ;; # no training here
esac

sum=${SLURM_JOB_COMMENT:-}
sum=${sum#weir:}
case $sum in *[!0-9a-f]*) sum= ;; esac
[ ${#sum} -eq 64 ] || closed "its comment names no spec"

answer=$(printf 'header = "Authorization: Bearer %s"\n' "$WEIR_KEY" |
	curl -q -fsS -K - -m "${WEIR_TIMEOUT:-10}" -H 'Content-Type: application/json' \
		--data "{\"spec_sha256\":\"$sum\"}" "$WEIR_SERVER/v1/gate/check" 2>&1) ||
	closed "$(echo "$answer" | grep -m 1 '^curl: ')"
case $answer in
*'"gate":"admitted"'*"\"spec_sha256\":\"$sum\""*'}') exit 0 ;;
*'"gate":"'*'"would":"block"'*"\"spec_sha256\":\"$sum\""*'}' | *'"gate":"'*'"would":"escalate"'*"\"spec_sha256\":\"$sum\""*'}')
	say "report mode lets job ${SLURM_JOB_ID:-?} pass; weir explain says what would stop it"
	exit 0
	;;
esac
closed "not a whole answer of a weir"

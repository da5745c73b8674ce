# A static binary and nothing else: no shell, no Postgres. Give it DATABASE_URL.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags=-s -o /weir ./cmd/weir

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /weir /weir
USER 65532:65532
EXPOSE 8080 8443
# people.yaml and policies.yaml are mounted here.
VOLUME ["/etc/weir"]
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["/weir", "ready"]
ENTRYPOINT ["/weir"]
CMD ["serve", "--listen", "0.0.0.0:8080"]

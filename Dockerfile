# k6 with every broker in it, and the scenarios: docker build -t xk6-broker . && docker run --rm xk6-broker run scenarios/quickstart.js
FROM --platform=$BUILDPLATFORM golang:1.26.8-alpine@sha256:8ac98ca534ac3f51e1f420a1dd2c15e74c75cfa0f23f3ad27eb5d7236c349a0c AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION
WORKDIR /src
COPY go.mod go.sum register.go ./
COPY cmd cmd
COPY extensions extensions
COPY e2e/notices e2e/notices
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -o /image/k6 \
    -ldflags "-s -w -X github.com/xk6-broker/xk6-broker/extensions/xk6-broker.version=$VERSION" ./cmd/k6 && \
    mkdir -p /image/licenses && go run ./e2e/notices . /image/k6 >/image/licenses/NOTICES
COPY LICENSE /image/licenses/xk6-broker
COPY scenarios /image/home/k6/scenarios

# Nothing but a shell and its tools, which the jobs of k6-operator want beside k6. Whoever runs k6 is 12345, as in k6's own image.
FROM busybox:1.37.0-musl@sha256:5cec3fc171c87218698e85a52af7087de727372aae264a787b8112901a5b0092
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /image/k6 /usr/bin/k6
COPY --from=build /image/licenses /licenses
COPY --from=build --chown=12345:12345 /image/home /home
ENV HOME=/home/k6
USER 12345:12345
WORKDIR /home/k6
ENTRYPOINT ["/usr/bin/k6"]

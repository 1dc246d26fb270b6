# k6 with every broker in it, and the scenarios: docker build -t xk6-broker . && docker run --rm xk6-broker run scenarios/quickstart.js
FROM golang:1.26.8-alpine AS build
WORKDIR /src
COPY go.mod go.sum register.go ./
COPY cmd cmd
COPY extensions extensions
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -o /k6 ./cmd/k6

FROM alpine:3.22.1
RUN adduser -D -u 12345 k6
COPY --from=build /k6 /usr/bin/k6
COPY scenarios /home/k6/scenarios
USER 12345
WORKDIR /home/k6
ENTRYPOINT ["k6"]
